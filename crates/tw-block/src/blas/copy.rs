//! Copies of libraries that share nothing with the original.

use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A temporary directory that is removed with its last user.
struct Directory(PathBuf);

/// Names that are tried. One may be taken by a process that was killed, and whose number this one has.
const NAMES: u32 = 1000;

impl Directory {
    fn new() -> Result<Directory> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let mut taken = Error::other("no name is left");
        for _ in 0..NAMES {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("tilewright-blas-{}-{number}", std::process::id()));
            // An existing directory is refused: it may belong to another user.
            match builder.create(&path) {
                Ok(()) => return Ok(Directory(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => taken = error,
                Err(error) => return Err(error),
            }
        }
        Err(taken)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What cannot be removed stays; the library works all the same.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Copies a library and lets `load` load the copy. The loader tells libraries apart by their files, so the copy has data of its own.
///
/// Libraries that it needs are looked for beside it, so links to the files beside the original lie beside the copy. Copy and links are gone when this
/// returns: the loader does not need the names again.
pub(super) fn private<T>(path: &Path, load: impl FnOnce(&Path) -> T) -> Result<T> {
    let path = path.canonicalize()?;
    let (Some(home), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Error::other("a library without a name"));
    };
    let directory = Directory::new()?;
    for beside in std::fs::read_dir(home)?.flatten() {
        let other = beside.file_name();
        if other != name && other.to_string_lossy().contains(".so") {
            #[cfg(unix)]
            std::os::unix::fs::symlink(beside.path(), directory.0.join(other))?;
        }
    }
    let copy = directory.0.join(name);
    std::fs::copy(&path, &copy)?;
    Ok(load(&copy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_taken_are_passed_over() {
        let first = Directory::new().unwrap();
        let (stem, number) = first.0.to_str().and_then(|path| path.rsplit_once('-')).unwrap();
        let next: u32 = number.parse::<u32>().unwrap() + 1;
        // Other tests may take numbers at the same time, so several are blocked.
        let blocked: Vec<PathBuf> = (next..next + 5).map(|n| PathBuf::from(format!("{stem}-{n}"))).collect();
        let made: Vec<&PathBuf> = blocked.iter().filter(|path| std::fs::create_dir(path).is_ok()).collect();
        let second = Directory::new();
        made.iter().for_each(|path| std::fs::remove_dir(path).unwrap());
        assert!(!made.contains(&&second.unwrap().0));
    }
}
