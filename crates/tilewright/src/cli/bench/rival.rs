//! dask, in a Python environment that is made on demand.
//!
//! Everything that can go wrong here (no Python, no package registry, no network) comes back as a sentence: then we are measured alone.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tw_ir::error::{Error, Result};

use super::Bench;

const SCRIPT: &str = include_str!("dask_overhead.py");
const PACKAGES: [&str; 2] = ["dask[array]", "numpy"];

/// A Python process that answers with times.
pub(super) struct Rival {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    version: String,
}

impl Rival {
    /// Starts the process; makes the environment first if it is not there.
    pub(super) fn start(directory: Option<PathBuf>) -> Result<Rival, String> {
        let directory = directory.unwrap_or_else(default_directory);
        let python = environment(&directory)?;
        let mut process = Command::new(&python)
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{} cannot be started: {error}", python.display()))?;
        let (Some(questions), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("the Python process has no pipes".to_string());
        };
        let mut rival = Rival { process, questions, answers: BufReader::new(answers), version: String::new() };
        rival.version = rival.answer().map_err(|error| error.message().to_string())?;
        Ok(rival)
    }

    /// Name and version.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Seconds per unit of the rival's bench.
    pub(super) fn measure(&mut self, bench: Bench, quick: bool) -> Result<f64> {
        // Its times per task hardly depend on the number of tasks, and a million would take minutes.
        let size = match (bench, quick) {
            (Bench::Overhead, false) => 40_000,
            (Bench::Overhead, true) => 10_000,
            (Bench::Plan, false) => 40,
            (Bench::Plan, true) => 20,
            (Bench::Segment, false) => 200,
            (Bench::Segment, true) => 50,
        };
        writeln!(self.questions, "{} {size}", bench.name())
            .and_then(|()| self.questions.flush())
            .map_err(|error| Error::io(format!("the Python process does not listen: {error}")))?;
        let answer = self.answer()?;
        answer.parse().map_err(|_| Error::io(format!("the Python process answered `{answer}`")))
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(n) if n > 0 => Ok(line.trim().to_string()),
            Ok(_) => Err(Error::io("the Python process ended")),
            Err(error) => Err(Error::io(format!("the Python process cannot be heard: {error}"))),
        }
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        // It would end by itself at the end of its input, but not in the middle of a long answer.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Under the build directory this program was built in, or with temporary files.
fn default_directory() -> PathBuf {
    let built_in = std::env::current_exe().ok().and_then(|exe| {
        let target = exe.ancestors().find(|directory| directory.file_name().is_some_and(|name| name == "target"));
        target.map(Path::to_path_buf)
    });
    built_in.unwrap_or_else(std::env::temp_dir).join("tw-bench-env")
}

/// The interpreter of an environment with dask, made if need be.
fn environment(directory: &Path) -> Result<PathBuf, String> {
    let python = directory.join("bin").join("python");
    if works(&python) {
        return Ok(python);
    }
    let note = format!("making a Python environment with dask in {}", directory.display());
    let _ = writeln!(std::io::stderr(), "{note}");
    step(Command::new("python3").args(["-m", "venv", "--clear"]).arg(directory), "python3 -m venv")?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(PACKAGES);
    step(&mut install, "pip install dask")?;
    if works(&python) { Ok(python) } else { Err("dask is installed but cannot be imported".to_string()) }
}

fn works(python: &Path) -> bool {
    let mut import = Command::new(python);
    import.args(["-c", "import dask.array"]).stdout(Stdio::null()).stderr(Stdio::null());
    import.status().is_ok_and(|status| status.success())
}

/// Runs one step of the set-up; on failure the last line it said is the reason.
fn step(command: &mut Command, what: &str) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{what} cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let reason = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it gave no reason");
    Err(format!("{what} failed: {}", reason.trim()))
}
