//! The description of the machine at the top of the tables.

use std::fs;
use std::path::Path;

use tw_block::{Provider, provider};

use crate::explain::units;

/// The number of threads of each side.
pub(super) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// True if matrix products go to a BLAS and not to our own kernel.
pub(super) fn has_blas() -> bool {
    provider() != Provider::rust().name()
}

/// What results depend on, a line each. What cannot be found out is left away.
pub(super) fn describe() -> Vec<(&'static str, String)> {
    let processor = field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_string());
    let memory = field("/proc/meminfo", "MemTotal")
        .and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok())
        .map(|kilobytes| units::bytes(kilobytes << 10));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let system = format!("{} {}", std::env::consts::OS, kernel.trim());
    let lines = [
        ("processor", Some(format!("{processor}, {}", units::counted(threads() as u64, "thread")))),
        ("caches", caches()),
        ("memory", memory),
        ("system", Some(system.trim().to_string())),
        ("compiler", Some(env!("TW_RUSTC").to_string())),
        ("matrix products", Some(provider().to_string())),
        ("note", Provider::note().map(str::to_string)),
    ];
    lines.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
}

/// `L1 32K, L2 512K, L3 32768K`: data caches as the first processor sees them.
fn caches() -> Option<String> {
    let mut found = Vec::new();
    for index in 0..8 {
        let directory = Path::new("/sys/devices/system/cpu/cpu0/cache").join(format!("index{index}"));
        let read = |name| fs::read_to_string(directory.join(name)).map(|text| text.trim().to_string());
        if let (Ok(level), Ok(kind), Ok(size)) = (read("level"), read("type"), read("size"))
            && kind != "Instruction"
        {
            found.push(format!("L{level} {size}"));
        }
    }
    (!found.is_empty()).then(|| found.join(", "))
}

/// The text after `name :` in a file of the system.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

/// The most memory that the process has had since the start of this; only Linux tells.
pub(super) struct ResidentPeak {
    known: bool,
}

impl ResidentPeak {
    pub(super) fn start() -> ResidentPeak {
        // Sets the peak back to what is resident now.
        ResidentPeak { known: fs::write("/proc/self/clear_refs", "5").is_ok() }
    }

    pub(super) fn bytes(&self) -> Option<u64> {
        let text = field("/proc/self/status", "VmHWM").filter(|_| self.known)?;
        Some(text.split_whitespace().next()?.parse::<u64>().ok()? << 10)
    }
}
