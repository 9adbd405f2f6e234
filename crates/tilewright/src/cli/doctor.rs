//! `tw doctor`: what this machine gives Tilewright, and what could be better.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tw_block::{Provider, SpillFile, provider};
use tw_ir::error::{Error, Result};

use super::Failure;
use super::out::Out;
use crate::available::{available_bytes, default_budget, is_kept_in_memory, machine_bytes, spill_directory};
use crate::explain::units;
use crate::session::budget_of_environment;

/// Arguments of `tw doctor`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Look at this spill directory instead of the default.
    #[arg(long, value_name = "DIR")]
    spill: Option<PathBuf>,
    /// Bytes that are written to measure the disk.
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = crate::units::parse_bytes)]
    disk_sample: u64,
}

/// One thing that was looked at.
struct Finding {
    subject: &'static str,
    found: String,
    /// What the user could do, if there is something.
    advice: Option<String>,
}

/// Runs the command. It fails only if the spill directory cannot be written.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<(), Failure> {
    let directory = args.spill.clone().unwrap_or_else(spill_directory);
    for look in [cores, vectors, products, memory, budget] {
        show(&look(), out);
    }
    show(&spill(&directory), out);
    show(&disk(&directory, args.disk_sample)?, out);
    Ok(())
}

fn show(finding: &Finding, out: &mut Out) {
    out.line(format_args!("{:<16} {}", finding.subject, finding.found));
    if let Some(advice) = &finding.advice {
        out.line(format_args!("{:<16} -> {advice}", ""));
    }
}

fn cores() -> Finding {
    let usable = std::thread::available_parallelism().map_or(1, |n| n.get());
    let model = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name =
        model.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name.trim()));
    let online = model.lines().filter(|line| line.starts_with("processor")).count();
    let advice = (online > usable)
        .then(|| format!("the machine has {online}; a control group or an affinity mask gives this process {usable}"));
    let name = name.map(|name| format!(", {name}")).unwrap_or_default();
    Finding { subject: "cores", found: format!("{usable}{name}"), advice }
}

fn vectors() -> Finding {
    let found = vector_extensions();
    let advice =
        found.is_empty().then(|| "kernels run with the vectors that every processor of this kind has".to_string());
    let found = if found.is_empty() { "baseline".to_string() } else { found.join(", ") };
    Finding { subject: "vectors", found, advice }
}

#[cfg(target_arch = "x86_64")]
fn vector_extensions() -> Vec<&'static str> {
    let all = [
        ("AVX2", std::is_x86_feature_detected!("avx2")),
        ("FMA", std::is_x86_feature_detected!("fma")),
        ("AVX-512", std::is_x86_feature_detected!("avx512f")),
    ];
    all.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn vector_extensions() -> Vec<&'static str> {
    Vec::new()
}

fn products() -> Finding {
    let own = provider() == Provider::rust().name();
    let advice = own.then(|| "install OpenBLAS (libopenblas0) for faster products of large matrices".to_string());
    let advice = Provider::note().map(str::to_string).or(advice);
    Finding { subject: "matrix products", found: provider().to_string(), advice }
}

fn memory() -> Finding {
    let (machine, available) = (machine_bytes().unwrap_or(0), available_bytes().unwrap_or(0));
    let advice = (available < machine / 4)
        .then(|| "other processes hold most of the memory: budgets beyond what is available are cut".to_string());
    let found = format!("{} available of {}", units::bytes(available), units::bytes(machine));
    Finding { subject: "memory", found, advice }
}

fn budget() -> Finding {
    let (found, advice) = match budget_of_environment() {
        Ok(Some(bytes)) => (format!("{} (TILEWRIGHT_MEMORY)", units::bytes(bytes)), None),
        Ok(None) => {
            let bytes = default_budget().map_or_else(|| "unknown".to_string(), units::bytes);
            (format!("{bytes} (70 % of what the machine or the control group allows)"), None)
        }
        Err(error) => ("none".to_string(), Some(error.message().to_string())),
    };
    Finding { subject: "memory budget", found, advice }
}

fn spill(directory: &Path) -> Finding {
    let capacity = SpillFile::new(directory, None).capacity();
    let room = capacity.map_or_else(|| "unknown".to_string(), units::bytes);
    let in_memory = is_kept_in_memory(directory);
    let advice = if in_memory {
        Some("this directory is kept in memory: set TILEWRIGHT_SPILL or --spill to one on a disk".to_string())
    } else if capacity < machine_bytes() {
        Some("less than the memory of the machine: set TILEWRIGHT_SPILL to a larger disk".to_string())
    } else {
        None
    };
    Finding { subject: "spill directory", found: format!("{}, room for {room}", directory.display()), advice }
}

/// Writes a file to the disk and measures how long that takes.
fn disk(directory: &Path, bytes: u64) -> Result<Finding> {
    let path = directory.join(format!("tilewright-doctor-{}", std::process::id()));
    let failed = |error: std::io::Error| {
        Error::io(format!("cannot write to the spill directory {}: {error}", directory.display()))
            .help("name a directory that can be written with --spill or TILEWRIGHT_SPILL")
    };
    let mut file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
    // The file has no name any more: its space is free whatever happens.
    fs::remove_file(&path).map_err(failed)?;
    let mut piece = vec![0u8; 1 << 20];
    // Bytes without a pattern, so that a disk that compresses does not look faster than it is.
    let mut state = 1u64;
    piece.iter_mut().for_each(|byte| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *byte = (state >> 56) as u8;
    });
    let start = Instant::now();
    let mut left = bytes.max(1 << 20);
    while left > 0 {
        let n = left.min(piece.len() as u64);
        file.write_all(&piece[..n as usize]).map_err(failed)?;
        left -= n;
    }
    file.sync_data().map_err(failed)?;
    let speed = bytes.max(1 << 20) as f64 / start.elapsed().as_secs_f64();
    let advice = (speed < 200e6)
        .then(|| "spilling to this disk is slow: give a larger budget, or another directory".to_string());
    Ok(Finding {
        subject: "disk",
        found: format!("{} per second, written and synced", units::bytes(speed as u64)),
        advice,
    })
}
