//! The memory that the system has for this process, and the disk for what does not fit.

use std::path::{Path, PathBuf};

/// The share of the memory of the machine, or of the control group, that is the budget where nobody has set one.
const DEFAULT_SHARE: u64 = 70;

/// The budget of a process that nobody has set.
pub(crate) fn default_budget() -> Option<u64> {
    let machine = machine_bytes()?;
    let limit = group_limit().map_or(machine, |group| group.min(machine));
    Some(limit / 100 * DEFAULT_SHARE)
}

/// The directory that blocks are spilled to where nobody has named one: `TILEWRIGHT_SPILL`, or the first directory for temporary files that is not kept in
/// memory.
pub(crate) fn spill_directory() -> PathBuf {
    if let Some(named) = std::env::var_os("TILEWRIGHT_SPILL").filter(|named| !named.is_empty()) {
        return PathBuf::from(named);
    }
    let candidates = [std::env::temp_dir(), PathBuf::from("/var/tmp"), PathBuf::from(".")];
    let is_good = |directory: &&PathBuf| directory.is_dir() && !is_kept_in_memory(directory);
    candidates.iter().find(is_good).cloned().unwrap_or_else(std::env::temp_dir)
}

/// True if a directory lies in a file system that is kept in memory.
pub(crate) fn is_kept_in_memory(directory: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    directory.canonicalize().is_ok_and(|directory| is_in_memory(&directory, &mounts))
}

/// True if a directory lies in a file system that is kept in memory. `mounts` are the lines of `/proc/mounts`.
fn is_in_memory(directory: &Path, mounts: &str) -> bool {
    let fields = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        // Spaces in paths are written as octal numbers.
        Some((fields.next()?.replace("\\040", " "), fields.next()?))
    });
    let within = fields.filter(|(point, _)| directory.starts_with(point));
    // Later lines cover earlier ones.
    let nearest = within.fold(None, |best: Option<(String, &str)>, (point, kind)| match &best {
        Some((longest, _)) if longest.len() > point.len() => best,
        _ => Some((point, kind)),
    });
    nearest.is_some_and(|(_, kind)| matches!(kind, "tmpfs" | "ramfs"))
}

/// The limit of the control group of this process.
fn group_limit() -> Option<u64> {
    of_groups(&|folder| std::fs::read_to_string(folder.join("memory.max")).ok()?.trim().parse().ok())
}

/// Bytes that this process may still allocate, if the system reports them: free and reclaimable memory plus free swap, within the limit of its
/// control group.
pub(crate) fn available_bytes() -> Option<u64> {
    let machine = of_machine(&std::fs::read_to_string("/proc/meminfo").ok()?)?;
    Some(of_group().map_or(machine, |group| group.min(machine)))
}

/// Bytes of memory of the machine, if the system reports them.
pub(crate) fn machine_bytes() -> Option<u64> {
    field(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemTotal")
}

/// From the lines of `/proc/meminfo`.
fn of_machine(lines: &str) -> Option<u64> {
    Some(field(lines, "MemAvailable")?.saturating_add(field(lines, "SwapFree").unwrap_or(0)))
}

/// A number of bytes of `/proc/meminfo`.
fn field(lines: &str, name: &str) -> Option<u64> {
    let line = lines.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The bytes left within the limits of the control group of this process; `None` without limits.
fn of_group() -> Option<u64> {
    of_groups(&of_folder)
}

/// The smallest number of bytes that `bytes` gives for the control group of this process and its ancestors.
fn of_groups(bytes: &dyn Fn(&Path) -> Option<u64>) -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    of_groups_in(Path::new("/sys/fs/cgroup"), own, bytes)
}

/// The same for a group. Inside a container the group itself may be invisible, and only an ancestor can be read.
fn of_groups_in(root: &Path, own: &str, bytes: &dyn Fn(&Path) -> Option<u64>) -> Option<u64> {
    root.join(own).ancestors().take_while(|folder| folder.starts_with(root)).filter_map(bytes).min()
}

fn of_folder(folder: &Path) -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    let limit: u64 = read("memory.max")?.trim().parse().ok()?;
    let used: u64 = read("memory.current")?.trim().parse().ok()?;
    // Files that were read are given up when memory is short.
    let stat = read("memory.stat").unwrap_or_default();
    let field = |name: &str| stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    let cached = field("inactive_file ").unwrap_or(0).saturating_add(field("active_file ").unwrap_or(0));
    Some(limit.saturating_sub(used.saturating_sub(cached)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_in_memory_are_told_apart() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/vdb /tmp/my\\040disk ext4 rw 0 0\n";
        let is_in_memory = |path: &str| is_in_memory(Path::new(path), mounts);
        assert!(!is_in_memory("/var/tmp") && is_in_memory("/tmp") && is_in_memory("/tmp/x"));
        assert!(!is_in_memory("/tmp/my disk/x") && !is_in_memory("/tmpx"));
    }

    #[test]
    fn lines_of_the_system_are_read() {
        let lines = "MemTotal:       100 kB\nMemAvailable:    50 kB\nSwapFree:         2 kB\n";
        assert_eq!(of_machine(lines), Some(52 * 1024));
        assert_eq!(of_machine("MemTotal: 100 kB\n"), None);
        assert_eq!(of_machine("MemAvailable: many kB\n"), None);
    }

    #[test]
    fn the_smallest_limit_counts() {
        let root = std::env::temp_dir().join(format!("tw-groups-{}", std::process::id()));
        let own = root.join("job/step");
        std::fs::create_dir_all(&own).unwrap();
        let write = |folder: &Path, max: &str, current: &str| {
            std::fs::write(folder.join("memory.max"), max).unwrap();
            std::fs::write(folder.join("memory.current"), current).unwrap();
        };
        write(&own, "max\n", "10\n");
        assert_eq!(of_groups_in(&root, "job/step", &of_folder), None);
        write(&root.join("job"), "100\n", "30\n");
        assert_eq!(of_groups_in(&root, "job/step", &of_folder), Some(70));
        std::fs::write(root.join("job/memory.stat"), "anon 5\nactive_file 4\ninactive_file 6\n").unwrap();
        assert_eq!(of_groups_in(&root, "job/step", &of_folder), Some(80));
        write(&own, "50\n", "10\n");
        assert_eq!(of_groups_in(&root, "job/step", &of_folder), Some(40));
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_running_machine_has_memory_left() {
        assert!(available_bytes().is_some_and(|bytes| bytes > 0));
    }
}
