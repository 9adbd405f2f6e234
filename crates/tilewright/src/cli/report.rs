//! `--report`: costs and results of a run, as JSON.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tw_ir::error::{Error, Result};

use super::digest::Sum;
use super::run::Shown;
use crate::report::Totals;

/// A report that will be written. The file gets its name when the run has succeeded, but a path that cannot be written is found before.
pub(crate) struct ReportFile {
    path: PathBuf,
    temporary: PathBuf,
    file: File,
}

impl ReportFile {
    pub(crate) fn create(path: &Path) -> Result<ReportFile> {
        let name = path.file_name().ok_or_else(|| Error::io(format!("{} does not name a file", path.display())))?;
        let temporary = path.with_file_name(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
        let file = File::create(&temporary).map_err(|error| failed(path, &error))?;
        Ok(ReportFile { path: path.to_path_buf(), temporary, file })
    }

    pub(crate) fn write(mut self, report: &Value) -> Result<()> {
        writeln!(self.file, "{report:#}")
            .and_then(|()| fs::rename(&self.temporary, &self.path))
            .map_err(|error| failed(&self.path, &error))
    }
}

impl Drop for ReportFile {
    fn drop(&mut self) {
        // Gone already if the report was written.
        let _ = fs::remove_file(&self.temporary);
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::io(format!("the report {} cannot be written: {error}", path.display()))
}

/// The report of a run.
pub(crate) fn report(totals: &Totals, planning: Duration, budget: Option<u64>, results: &[Shown]) -> Value {
    let result = |shown: &Shown| {
        let sum = match shown.digest.sum() {
            Sum::Integer(sum) => i64::try_from(sum).map_or_else(|_| json!(sum as f64), |sum| json!(sum)),
            Sum::Float(sum) => json!(sum),
            Sum::Complex(re, im) => json!([re, im]),
            Sum::None => json!(null),
        };
        let checksum = shown.digest.checksum();
        let value = json!({ "shape": shown.shape, "dtype": shown.dtype.to_string(), "sum": sum, "checksum": checksum });
        (shown.name.clone(), value)
    };
    let results: serde_json::Map<String, Value> = results.iter().map(result).collect();
    json!({
        "planning_s": (planning + totals.planning).as_secs_f64(),
        "run_s": totals.running.as_secs_f64(),
        "tasks": totals.tasks,
        "read_bytes": totals.read_bytes,
        "written_bytes": totals.written_bytes,
        // By this rank, of several.
        "wire_bytes": totals.sent_bytes,
        "spilled_bytes": totals.spilled_bytes,
        "fetched_bytes": totals.fetched_bytes,
        "resumed_steps": totals.resumed_steps,
        "peak_bytes": totals.peak_bytes,
        "budget_bytes": budget,
        "flops": totals.flops,
        "results": results,
    })
}
