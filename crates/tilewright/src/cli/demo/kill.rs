//! `tw demo --kill`: a run that is killed in the middle goes on where it was, with the same bits.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tw_ir::error::{Error, Result};

use super::{Args, PROGRAM, title};
use crate::cli::out::Out;
use crate::explain::units;

/// How often the run is killed.
const KILLS: u32 = 3;

/// Runs that are begun to be killed, at most: on a machine that others use, some end too soon.
const MOST_RUNS: u32 = 10;

/// A directory for the program, its checkpoint and its reports.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        // The system clears its directory of temporary files some time.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the demo.
pub(super) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let directory = std::env::temp_dir().join(format!("tilewright-demo-{}", std::process::id()));
    fs::create_dir_all(&directory).map_err(|error| failed("make", &directory, &error))?;
    let place = Place(directory);
    fs::write(place.0.join("demo.tw"), PROGRAM).map_err(|error| failed("write", &place.0, &error))?;
    let rows = (args.rows / 4).max(800);
    let start = |more: &[&str]| -> Result<Child> {
        let tool = std::env::current_exe().map_err(|error| Error::io(format!("this program is not found: {error}")))?;
        let mut command = Command::new(tool);
        command.args(["run", "demo.tw", "--quiet", "--report", "report.json", "--set", &format!("n={rows}")]);
        if let Some(threads) = args.threads {
            command.args(["--threads", &threads.to_string()]);
        }
        command.args(more).current_dir(&place.0).stdin(Stdio::null()).stdout(Stdio::null());
        command.spawn().map_err(|error| Error::io(format!("a process cannot be started: {error}")))
    };

    title(out, &format!("the program, with n = {}, in a process of its own", units::count(rows.into())));
    let begin = Instant::now();
    let whole = finish(start(&[])?, &place.0)?;
    let usual = begin.elapsed();
    out.line(format_args!("{} in {}", sums(&whole), units::duration(usual)));

    title(out, "the same with a checkpoint, killed again and again");
    let (mut kills, mut usual) = (0, usual);
    for _ in 0..MOST_RUNS {
        let mut child = start(&["--resume", "checkpoint"])?;
        let begin = Instant::now();
        let most = usual.mul_f64(f64::from(2 * kills + 1) / f64::from(2 * KILLS + 1));
        let ended = loop {
            let status = child.try_wait().map_err(|error| Error::io(format!("a process is lost: {error}")))?;
            if status.is_some() || begin.elapsed() >= most {
                break status;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        if ended.is_some() {
            // It was faster than the first one. The next begins anew, and is killed sooner.
            (kills, usual) = (0, begin.elapsed());
            out.line("a run has ended before it was killed");
            continue;
        }
        child.kill().and_then(|()| child.wait()).map_err(|error| Error::io(format!("it cannot be killed: {error}")))?;
        kills += 1;
        let kept = units::bytes(bytes_below(&place.0.join("checkpoint")));
        let after = units::duration(begin.elapsed());
        out.line(format_args!("run {kills} was killed after {after}; the checkpoint has {kept}"));
        if kills == KILLS {
            break;
        }
    }

    title(out, "run once more with the checkpoint");
    let begin = Instant::now();
    let resumed = finish(start(&["--resume", "checkpoint"])?, &place.0)?;
    let is_equal = whole["results"] == resumed["results"];
    let steps = |report: &Value, name: &str| report[name].as_u64().unwrap_or(0);
    out.line(format_args!(
        "{} in {}: {} of {} steps of this run were there already, and the bits are {}",
        sums(&resumed),
        units::duration(begin.elapsed()),
        units::count(steps(&resumed, "resumed_steps")),
        units::count(steps(&resumed, "tasks")),
        if is_equal { "equal" } else { "DIFFERENT" },
    ));
    if is_equal { Ok(()) } else { Err(Error::internal("a run that was resumed gave other bits")) }
}

/// Waits for a process and reads its report.
fn finish(mut child: Child, directory: &Path) -> Result<Value> {
    let status = child.wait().map_err(|error| Error::io(format!("a process is lost: {error}")))?;
    if !status.success() {
        return Err(Error::internal(format!("the program failed: {status}")));
    }
    let path = directory.join("report.json");
    let bytes = fs::read(&path).map_err(|error| failed("read", &path, &error))?;
    serde_json::from_slice(&bytes).map_err(|error| Error::internal(format!("a report that is no JSON: {error}")))
}

fn sums(report: &Value) -> String {
    let results = report["results"].as_object().into_iter().flatten();
    results.map(|(name, result)| format!("{name} = {}", result["sum"])).collect::<Vec<_>>().join(", ")
}

/// Bytes of all files below a directory.
fn bytes_below(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| {
            if entry.path().is_dir() {
                bytes_below(&entry.path())
            } else {
                entry.metadata().map_or(0, |data| data.len())
            }
        })
        .sum()
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::io(format!("cannot {what} {}: {error}", path.display()))
}
