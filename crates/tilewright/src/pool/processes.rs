//! What other processes of the same user were promised and have not taken yet.
//!
//! The system says how much memory is free, but a process that has just begun a run has taken little of what it was promised. Two processes that begin together would both take
//! most of the machine. So each writes what it was promised into a file of its own, in a directory that belongs to the user. Whoever computes a default budget adds up, over all other
//! processes that live, what they were promised beyond the memory they have. A lock on the directory makes looking and writing one step.
//!
//! All of this is advice: where the directory cannot be written, or does not belong to the user, nothing is known of others. A file says when its process began, so that a later
//! process with the same number is not mistaken for it.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Where processes write what they were promised.
pub(crate) struct Board {
    directory: PathBuf,
    /// Where the system describes processes.
    system: PathBuf,
    process: u32,
}

/// The lock on a board; as long as it lives, no other process looks or writes.
pub(crate) struct Locked<'a> {
    board: &'a Board,
    /// Closing it unlocks.
    _file: File,
}

impl Board {
    /// The board of this user, if there is one.
    pub(crate) fn of_user() -> Option<Board> {
        let system = PathBuf::from("/proc");
        let user = fs::metadata(system.join("self")).ok()?.uid();
        let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|directory| directory.is_dir());
        let directory = named.unwrap_or_else(std::env::temp_dir).join(format!("tilewright-memory-{user}"));
        Board::new(directory, system, user, std::process::id())
    }

    fn new(directory: PathBuf, system: PathBuf, user: u32, process: u32) -> Option<Board> {
        // It may be there already.
        let _ = DirBuilder::new().mode(0o700).create(&directory);
        let found = fs::symlink_metadata(&directory).ok()?;
        (found.is_dir() && found.uid() == user && found.mode() & 0o022 == 0).then_some(Board {
            directory,
            system,
            process,
        })
    }

    /// Waits until no other process looks or writes. The time that takes is short: a lock is never held during a run.
    pub(crate) fn lock(&self) -> Option<Locked<'_>> {
        let file = File::create(self.directory.join("lock")).ok()?;
        file.lock().ok()?;
        Some(Locked { board: self, _file: file })
    }

    /// Says what this process was promised, what it holds included; without a lock, since others read whole files.
    pub(crate) fn write(&self, promised: u64) {
        let (own, new) = (self.file_of(self.process), self.directory.join(format!("{}.new", self.process)));
        if promised == 0 {
            let _ = fs::remove_file(own);
        } else if let Some(begun) = self.begun(self.process)
            && fs::write(&new, format!("{begun} {promised}\n")).is_ok()
        {
            let _ = fs::rename(new, own);
        }
    }

    fn file_of(&self, process: u32) -> PathBuf {
        self.directory.join(process.to_string())
    }

    /// When a process began, in units of the system; `None` if it is gone.
    fn begun(&self, process: u32) -> Option<u64> {
        let text = fs::read_to_string(self.system.join(format!("{process}/stat"))).ok()?;
        // The name of the program, in parentheses, may hold anything. The beginning is the 20th field after it.
        text.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
    }

    /// Bytes that a process has taken.
    fn taken(&self, process: u32) -> u64 {
        let text = fs::read_to_string(self.system.join(format!("{process}/status"))).unwrap_or_default();
        let lines = text.lines().filter(|line| line.starts_with("RssAnon:") || line.starts_with("RssShmem:"));
        let sizes = lines.filter_map(|line| line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok());
        sizes.fold(0, |sum: u64, kibibytes| sum.saturating_add(kibibytes.saturating_mul(1024)))
    }

    /// What the file of a process promises beyond what the process has; `None` if nobody will take it any more.
    fn outstanding(&self, path: &Path, process: u32) -> Option<u64> {
        let text = fs::read_to_string(path).ok()?;
        let (begun, promised) = text.trim().split_once(' ')?;
        (begun.parse().ok() == Some(self.begun(process)?)).then_some(())?;
        Some(promised.parse::<u64>().ok()?.saturating_sub(self.taken(process)))
    }
}

impl Locked<'_> {
    /// Bytes that other processes may still take. Files of processes that are gone are removed.
    pub(crate) fn outstanding_of_others(&self) -> u64 {
        let mut sum = 0u64;
        for entry in fs::read_dir(&self.board.directory).into_iter().flatten().flatten() {
            let process = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
            let Some(process) = process.filter(|&process| process != self.board.process) else { continue };
            match self.board.outstanding(&entry.path(), process) {
                Some(bytes) => sum = sum.saturating_add(bytes),
                None => drop(fs::remove_file(entry.path())),
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with two processes.
    struct Machine {
        root: PathBuf,
    }

    impl Machine {
        fn new(name: &str) -> Machine {
            let root = std::env::temp_dir().join(format!("tw-board-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&root);
            fs::create_dir_all(&root).unwrap();
            Machine { root }
        }

        fn process(&self, number: u32, begun: u64, kibibytes: u64) -> Board {
            let directory = self.root.join("proc").join(number.to_string());
            fs::create_dir_all(&directory).unwrap();
            let fields: Vec<String> = (0..18).map(|k| k.to_string()).collect();
            fs::write(directory.join("stat"), format!("{number} (a (b) c) R {} {begun} 7\n", fields.join(" ")))
                .unwrap();
            fs::write(directory.join("status"), format!("Name:\ttw\nRssAnon:\t{kibibytes} kB\nRssFile:\t9 kB\n"))
                .unwrap();
            let user = fs::metadata(&self.root).unwrap().uid();
            Board::new(self.root.join("board"), self.root.join("proc"), user, number).unwrap()
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.root);
        }
    }

    #[test]
    fn promises_of_others_count_until_they_are_taken() {
        let machine = Machine::new("taken");
        let (first, second) = (machine.process(11, 500, 0), machine.process(12, 600, 0));
        let others = |board: &Board| board.lock().unwrap().outstanding_of_others();
        assert_eq!(others(&second), 0);
        first.write(10 << 20);
        assert_eq!((others(&second), others(&first)), (10 << 20, 0));
        machine.process(11, 500, 4 << 10);
        assert_eq!(others(&second), 6 << 20);
        machine.process(11, 500, 40 << 10);
        assert_eq!(others(&second), 0);
        machine.process(11, 500, 0);
        first.write(0);
        assert_eq!(others(&second), 0);
    }

    #[test]
    fn what_is_left_of_dead_processes_is_removed() {
        let machine = Machine::new("dead");
        let (first, second) = (machine.process(11, 500, 0), machine.process(12, 600, 0));
        first.write(10 << 20);
        // Another process with the same number.
        machine.process(11, 700, 0);
        assert_eq!(second.lock().unwrap().outstanding_of_others(), 0);
        assert!(!machine.root.join("board/11").exists());
        first.write(10 << 20);
        fs::remove_dir_all(machine.root.join("proc/11")).unwrap();
        assert_eq!(second.lock().unwrap().outstanding_of_others(), 0);
        fs::write(machine.root.join("board/13"), "nonsense").unwrap();
        assert_eq!(second.lock().unwrap().outstanding_of_others(), 0);
    }

    #[test]
    fn a_directory_that_others_can_write_is_not_trusted() {
        use std::os::unix::fs::PermissionsExt;
        let machine = Machine::new("trust");
        let directory = machine.root.join("open");
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        let user = fs::metadata(&directory).unwrap().uid();
        assert!(Board::new(directory, machine.root.clone(), user, 1).is_none());
    }
}
