//! Rivals in Python: one process per library, which keeps its data and computes only on request.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use super::declare::Rival;
use super::environment::Environment;
use super::machine;

const SCRIPT: &str = concat!(include_str!("rivals/programs.py"), include_str!("rivals/driver.py"));
/// Runs the script, which comes first in the input: as an argument it would fill the system's list of processes.
const START: &str = "import sys; exec(compile(sys.stdin.read(int(sys.argv[2])), 'rivals', 'exec'))";

/// The libraries that were asked for so far.
pub(super) struct Libraries {
    environment: Result<Environment, String>,
    started: BTreeMap<Rival, Result<Library, String>>,
}

impl Libraries {
    pub(super) fn new(environment: Result<Environment, String>) -> Libraries {
        Libraries { environment, started: BTreeMap::new() }
    }

    /// The process of a library, started if need be, or why there is none.
    pub(super) fn get(&mut self, rival: Rival) -> Result<&mut Library, String> {
        let environment = self.environment.as_ref();
        let start = || environment.map_err(Clone::clone).and_then(|found| Library::start(&found.python, rival));
        self.started.entry(rival).or_insert_with(start).as_mut().map_err(|why| why.clone())
    }

    /// Names and versions of those that run.
    pub(super) fn versions(&self) -> Vec<String> {
        self.started.values().flatten().map(|library| library.version.clone()).collect()
    }
}

/// A Python process with one library.
pub(super) struct Library {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    version: String,
}

impl Library {
    fn start(python: &Path, rival: Rival) -> Result<Library, String> {
        let threads = machine::threads().to_string();
        // dask runs as many tasks as there are cores; each of them must multiply with one thread.
        let blas_threads = if rival == Rival::Dask { "1" } else { &threads };
        let mut process = Command::new(python)
            .args(["-c", START, rival.name(), &SCRIPT.chars().count().to_string()])
            .env("TW_BENCH_THREADS", &threads)
            .env("NUMEXPR_MAX_THREADS", &threads)
            .envs(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"].map(|name| (name, blas_threads)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{} cannot be started: {error}", python.display()))?;
        let (Some(questions), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("the Python process has no pipes".to_string());
        };
        let mut library = Library { process, questions, answers: BufReader::new(answers), version: String::new() };
        library.say(SCRIPT)?;
        library.version = library.answer()?["version"].as_str().unwrap_or(rival.name()).to_string();
        Ok(library)
    }

    /// Asks and waits for the answer.
    pub(super) fn ask(&mut self, question: &Value) -> Result<Value, String> {
        self.say(&format!("{question}\n"))?;
        self.answer()
    }

    fn say(&mut self, text: &str) -> Result<(), String> {
        let said = self.questions.write_all(text.as_bytes()).and_then(|()| self.questions.flush());
        said.map_err(|error| format!("the Python process does not listen: {error}"))
    }

    fn answer(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        let n = self.answers.read_line(&mut line).map_err(|error| format!("the Python process is silent: {error}"))?;
        if n == 0 {
            return Err("the Python process ended".to_string());
        }
        let answer: Value = serde_json::from_str(&line).map_err(|_| format!("the answer was `{}`", line.trim()))?;
        match answer["error"].as_str() {
            Some(error) => Err(error.to_string()),
            None => Ok(answer),
        }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // It would end by itself at the end of its input, but not in the middle of a long answer.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
