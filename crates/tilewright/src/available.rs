//! How much memory the system has left for this process.

use std::path::{Path, PathBuf};

/// Bytes that this process may still take, where the system tells: what is free or can be freed, and free swap space, within the limit of its
/// control group.
pub(crate) fn available_bytes() -> Option<u64> {
    let machine = of_machine(&std::fs::read_to_string("/proc/meminfo").ok()?)?;
    Some(of_group().map_or(machine, |group| group.min(machine)))
}

/// From the lines of `/proc/meminfo`.
fn of_machine(lines: &str) -> Option<u64> {
    let field = |name: &str| {
        let line = lines.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kibibytes.checked_mul(1024)
    };
    Some(field("MemAvailable")?.saturating_add(field("SwapFree").unwrap_or(0)))
}

/// What the limit of the control group leaves; nothing if it has none.
fn of_group() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // Inside a container the group is the root of what is seen.
    let root = Path::new("/sys/fs/cgroup");
    let folder: PathBuf =
        [root.join(own), root.to_path_buf()].into_iter().find(|path| path.join("memory.max").exists())?;
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let limit: u64 = read("memory.max")?.trim().parse().ok()?;
    let used: u64 = read("memory.current")?.trim().parse().ok()?;
    // Files that were read are given up when memory is short.
    let cached = read("memory.stat")?.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse().ok());
    Some(limit.saturating_sub(used.saturating_sub(cached.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_system_are_read() {
        let lines = "MemTotal:       100 kB\nMemAvailable:    50 kB\nSwapFree:         2 kB\n";
        assert_eq!(of_machine(lines), Some(52 * 1024));
        assert_eq!(of_machine("MemTotal: 100 kB\n"), None);
        assert_eq!(of_machine("MemAvailable: many kB\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_running_machine_has_memory_left() {
        assert!(available_bytes().is_some_and(|bytes| bytes > 0));
    }
}
