//! Files that get their names when they are whole, and parts of files that are written in any order.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tw_ir::{Error, Result};

/// A file under a hidden name beside the one that it will have. One that is dropped before it is committed leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Temporary {
    path: PathBuf,
    temporary: PathBuf,
    pub(crate) file: File,
    committed: AtomicBool,
}

/// Tells apart the temporaries of one process.
static NEXT: AtomicU64 = AtomicU64::new(0);

impl Temporary {
    pub(crate) fn create(path: &Path) -> Result<Temporary> {
        let name = path.file_name().ok_or_else(|| Error::io(format!("{} does not name a file", path.display())))?;
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}-{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        let temporary = path.with_file_name(hidden);
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&temporary)
            .map_err(|error| failed(path, "cannot be created", &error))?;
        Ok(Temporary { path: path.to_path_buf(), temporary, file, committed: AtomicBool::new(false) })
    }

    pub(crate) fn write_at(&self, bytes: &[u8], at: u64) -> Result<()> {
        let written = self.file.write_all_at(bytes, at);
        written.map_err(|error| failed(&self.path, &format!("cannot be written at byte {at}"), &error))
    }

    /// Makes the file durable and gives it its name.
    pub(crate) fn commit(&self) -> Result<()> {
        self.file.sync_all().map_err(|error| failed(&self.path, "cannot be made durable", &error))?;
        fs::rename(&self.temporary, &self.path).map_err(|error| failed(&self.path, "cannot be replaced", &error))?;
        self.committed.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !*self.committed.get_mut() {
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
}

impl Spool {
    /// Begins a file with these bytes.
    pub(crate) fn create(path: &Path, head: Vec<u8>) -> Result<Spool> {
        let temporary = Temporary::create(path)?;
        temporary.write_at(&head, 0)?;
        let end = AtomicU64::new(head.len() as u64);
        Ok(Spool { temporary, head, end })
    }

    /// Writes a part; where it lies until the file is finished.
    pub(crate) fn put(&self, part: &[u8]) -> Result<Range<u64>> {
        let n = part.len() as u64;
        let start = self.end.fetch_add(n, Ordering::Relaxed);
        self.temporary.write_at(part, start)?;
        Ok(start..start + n)
    }

    /// Puts the parts in order, writes more bytes behind them, and gives the file its name. The parts are all that were put.
    pub(crate) fn finish(&self, parts: &[Range<u64>], tail: &[u8]) -> Result<()> {
        let (mut end, mut in_order) = (self.head.len() as u64, true);
        for part in parts {
            in_order &= part.start == end;
            end += part.end - part.start;
        }
        if in_order {
            self.temporary.write_at(tail, end)?;
            return self.temporary.commit();
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
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok(())
        };
        moved().map_err(|error| failed(&self.temporary.path, "cannot be put together", &error))?;
        sorted.write_at(tail, end)?;
        sorted.commit()
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
            spool.finish(&parts, b">").unwrap();
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
