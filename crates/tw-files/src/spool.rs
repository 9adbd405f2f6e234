//! Files that get their names when they are whole, and parts of files that are written in any order.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tw_ir::{Error, Result};

/// A file under a hidden name beside the one that it will have. One that is dropped before it is committed leaves nothing behind, unless somebody else goes on with it.
#[derive(Debug)]
pub(crate) struct Temporary {
    path: PathBuf,
    temporary: PathBuf,
    pub(crate) file: File,
    committed: AtomicBool,
    owner: Owner,
}

/// Who gives a file its name, or removes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// This process.
    This,
    /// This process, or a later one that goes on with it.
    Later,
    /// Another process, which has begun it.
    Other,
}

/// A part of a hidden name that nothing else has which this process makes.
pub(crate) fn unique_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A name beside a path, hidden from listings.
pub(crate) fn hidden(path: &Path, name: &str) -> Result<PathBuf> {
    let own = path.file_name().ok_or_else(|| Error::io(format!("{} does not name a file", path.display())))?;
    let mut hidden = OsString::from(".");
    hidden.push(own);
    hidden.push(format!(".{name}.tmp"));
    Ok(path.with_file_name(hidden))
}

impl Temporary {
    /// Begins a file that nobody else writes.
    pub(crate) fn create(path: &Path) -> Result<Temporary> {
        loop {
            let temporary = hidden(path, &unique_name())?;
            match File::options().read(true).write(true).create_new(true).open(&temporary) {
                Ok(file) => return Ok(Temporary::new(path, temporary, file, Owner::This)),
                // A process that was killed has left it, and numbers of processes come again: those of containers at once.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(path, "cannot be created", &error)),
            }
        }
    }

    /// Begins a file with this part of its hidden name, or goes on with the one that has it. It stays when it is dropped.
    pub(crate) fn kept(path: &Path, name: &str) -> Result<Temporary> {
        let temporary = hidden(path, name)?;
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&temporary);
        let file = file.map_err(|error| failed(path, "cannot be created", &error))?;
        Ok(Temporary::new(path, temporary, file, Owner::Later))
    }

    fn new(path: &Path, temporary: PathBuf, file: File, owner: Owner) -> Temporary {
        Temporary { path: path.to_path_buf(), temporary, file, committed: AtomicBool::new(false), owner }
    }

    /// Joins a file that another process has begun: `joint` is what [`Temporary::joint`] says there.
    pub(crate) fn join(path: &Path, joint: &str) -> Result<Temporary> {
        let temporary = PathBuf::from(joint);
        let file = File::options().read(true).write(true).open(&temporary).map_err(|error| {
            failed(path, "was begun by another rank and cannot be opened", &error)
                .help("ranks write to one file system: choose a directory that all of them share")
        })?;
        Ok(Temporary::new(path, temporary, file, Owner::Other))
    }

    /// What another process needs to know to join.
    pub(crate) fn joint(&self) -> Option<String> {
        let absolute = std::path::absolute(&self.temporary).ok()?;
        absolute.to_str().map(str::to_string)
    }

    pub(crate) fn begins_with(&self, bytes: &[u8]) -> bool {
        let mut start = vec![0; bytes.len()];
        self.file.read_exact_at(&mut start, 0).is_ok() && start == bytes
    }

    pub(crate) fn write_at(&self, bytes: &[u8], at: u64) -> Result<()> {
        let written = self.file.write_all_at(bytes, at);
        written.map_err(|error| failed(&self.path, &format!("cannot be written at byte {at}"), &error))
    }

    /// Makes what was written durable.
    pub(crate) fn make_durable(&self) -> Result<()> {
        self.file.sync_all().map_err(|error| failed(&self.path, "cannot be made durable", &error))
    }

    /// Gives the file its name, unless another process does.
    pub(crate) fn commit(&self) -> Result<()> {
        if self.owner != Owner::Other {
            let named = fs::rename(&self.temporary, &self.path);
            named.map_err(|error| failed(&self.path, "cannot be replaced", &error))?;
        }
        self.committed.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !*self.committed.get_mut() && self.owner == Owner::This {
            // Nothing can be done about a failure here, and the error that led here is more important.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Parts of a file whose lengths are not known before they are there. Each is written behind those that came before it in time. In the end they follow each other as they are meant to,
/// whichever thread was faster: so equal results are equal files.
#[derive(Debug)]
pub(crate) struct Spool {
    temporary: Temporary,
    /// Bytes that the file begins with.
    head: Vec<u8>,
    end: AtomicU64,
    /// The whole file, if its parts had to be put in order.
    sorted: OnceLock<Temporary>,
    is_finished: AtomicBool,
}

impl Spool {
    /// Begins a file with these bytes.
    pub(crate) fn create(path: &Path, head: Vec<u8>) -> Result<Spool> {
        let temporary = Temporary::create(path)?;
        temporary.write_at(&head, 0)?;
        let end = AtomicU64::new(head.len() as u64);
        Ok(Spool { temporary, head, end, sorted: OnceLock::new(), is_finished: AtomicBool::new(false) })
    }

    /// Writes a part; where it lies until the file is finished.
    pub(crate) fn put(&self, part: &[u8]) -> Result<Range<u64>> {
        let n = part.len() as u64;
        let start = self.end.fetch_add(n, Ordering::Relaxed);
        self.temporary.write_at(part, start)?;
        Ok(start..start + n)
    }

    /// Puts the parts in order, writes more bytes behind them, and makes the file durable. The parts are all that were put.
    pub(crate) fn finish(&self, parts: &[Range<u64>], tail: &[u8]) -> Result<()> {
        let (mut end, mut in_order) = (self.head.len() as u64, true);
        for part in parts {
            in_order &= part.start == end;
            end += part.end - part.start;
        }
        if in_order {
            self.temporary.write_at(tail, end)?;
            self.temporary.make_durable()?;
            self.is_finished.store(true, Ordering::Release);
            return Ok(());
        }
        let sorted = Temporary::create(&self.temporary.path)?;
        sorted.write_at(&self.head, 0)?;
        let moved = || -> std::io::Result<()> {
            let (mut from, mut to) = (&self.temporary.file, &sorted.file);
            to.seek(SeekFrom::Start(self.head.len() as u64))?;
            for part in joined(parts) {
                from.seek(SeekFrom::Start(part.start))?;
                let n = part.end - part.start;
                // The system copies from file to file by itself where it can.
                if std::io::copy(&mut from.take(n), &mut to)? != n {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
            }
            Ok(())
        };
        moved().map_err(|error| failed(&self.temporary.path, "cannot be put together", &error))?;
        sorted.write_at(tail, end)?;
        sorted.make_durable()?;
        let is_first = self.sorted.set(sorted).is_ok();
        self.is_finished.store(true, Ordering::Release);
        if is_first { Ok(()) } else { Err(Error::internal("a file is finished twice")) }
    }

    /// Gives the file its name, once, when it is finished.
    pub(crate) fn commit(&self) -> Result<()> {
        match self.is_finished.swap(false, Ordering::AcqRel) {
            true => self.sorted.get().unwrap_or(&self.temporary).commit(),
            false => Ok(()),
        }
    }
}

/// The same ranges, with neighbours as one.
fn joined(parts: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for part in parts {
        match joined.last_mut() {
            Some(last) if last.end == part.start => last.end = part.end,
            _ => joined.push(part.clone()),
        }
    }
    joined
}

fn failed(path: &Path, what: &str, error: &std::io::Error) -> Error {
    Error::io(format!("{} {what}: {error}", path.display()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Files that a killed process with the same number has left, under the next names.
    #[test]
    fn what_others_have_left_is_in_nobodys_way() {
        let directory = std::env::temp_dir().join(format!("{}-left", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("x");
        let name = unique_name();
        let (process, number) = name.split_once('-').unwrap();
        let number: u64 = number.parse().unwrap();
        for later in number + 1..number + 100 {
            fs::write(hidden(&path, &format!("{process}-{later}")).unwrap(), "left").unwrap();
        }
        let temporary = Temporary::create(&path).unwrap();
        temporary.write_at(b"new", 0).unwrap();
        temporary.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn parts_come_in_order_whatever_the_time() {
        let directory = std::env::temp_dir().join(format!("{}-spool", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("x");
        for order in [[0, 1, 2, 3], [2, 0, 3, 1], [3, 2, 1, 0]] {
            let spool = Spool::create(&path, b"<".to_vec()).unwrap();
            let mut parts = vec![0..0; 4];
            for k in order {
                parts[k] = spool.put(["a", "bb", "", "dddd"][k].as_bytes()).unwrap();
            }
            spool.commit().unwrap();
            assert!(
                !path.exists() || fs::read(&path).unwrap() == b"<abbdddd>",
                "nothing has a name before it is finished"
            );
            spool.finish(&parts, b">").unwrap();
            spool.commit().unwrap();
            drop(spool);
            assert_eq!(fs::read(&path).unwrap(), b"<abbdddd>");
            assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "{order:?}");
        }
        // One that is not finished changes nothing.
        let spool = Spool::create(&path, Vec::new()).unwrap();
        spool.put(b"z").unwrap();
        drop(spool);
        assert_eq!(fs::read(&path).unwrap(), b"<abbdddd>");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        fs::remove_dir_all(&directory).unwrap();
    }
}
