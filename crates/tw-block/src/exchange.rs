//! Two directories that change places in one step, for results that replace earlier ones. Here because it needs a call of the system, which is unsafe.

use std::io;
use std::path::Path;

/// Gives each of two paths of one file system the file or directory of the other. Nobody sees a moment at which one of them is missing. An error if the system
/// cannot do that; nothing has changed then.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn exchange_paths(first: &Path, second: &Path) -> io::Result<()> {
    use std::ffi::{CString, c_char, c_int, c_uint};
    use std::os::unix::ffi::OsStrExt;
    unsafe extern "C" {
        fn renameat2(from: c_int, old: *const c_char, to: c_int, new: *const c_char, flags: c_uint) -> c_int;
    }
    /// Relative paths begin at the working directory.
    const HERE: c_int = -100;
    const EXCHANGE: c_uint = 2;
    let first = CString::new(first.as_os_str().as_bytes())?;
    let second = CString::new(second.as_os_str().as_bytes())?;
    // SAFETY: both are strings that end in a zero byte and live until the call returns; the call keeps no pointer.
    let result = unsafe { renameat2(HERE, first.as_ptr(), HERE, second.as_ptr(), EXCHANGE) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// As on other systems: never possible.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn exchange_paths(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_change_places() {
        let base = std::env::temp_dir().join(format!("tw-exchange-{}", std::process::id()));
        let (a, b) = (base.join("a"), base.join("b"));
        std::fs::create_dir_all(a.join("x")).unwrap();
        std::fs::create_dir_all(&b).unwrap();
        if exchange_paths(&a, &b).is_ok() {
            assert!(b.join("x").is_dir() && !a.join("x").exists());
        }
        assert!(exchange_paths(&a, &base.join("missing")).is_err());
        std::fs::remove_dir_all(base).unwrap();
    }
}
