//! Runs `tw` in a directory of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A directory that goes away with the test.
pub(crate) struct Dir(PathBuf);

/// What a process left.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Dir {
    pub(crate) fn new() -> Dir {
        let name = format!("tw-cli-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Dir(path)
    }

    /// A directory with a program in it.
    pub(crate) fn with_program(text: &str) -> Dir {
        let dir = Dir::new();
        dir.write("p.tw", text);
        dir
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        std::fs::write(self.0.join(name), contents).unwrap();
    }

    /// Names of all files, hidden ones included.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tw"));
        command.args(args).current_dir(&self.0).stdin(Stdio::null());
        command
    }

    pub(crate) fn tw(&self, args: &[&str]) -> Ran {
        let Output { status, stdout, stderr } = self.command(args).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Ran { code: status.code().unwrap_or(-1), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Runs and expects success without a word of complaint.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let ran = self.tw(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}\n{}", ran.stdout);
        ran.stdout
    }

    /// Runs and expects a refusal before anything is said or done.
    pub(crate) fn refused(&self, args: &[&str]) -> String {
        let ran = self.tw(args);
        assert_eq!(ran.stdout, "", "{args:?}");
        self.refused_while_running(args)
    }

    /// Runs and expects a failure: code 2, an error without a panic, and no new files.
    pub(crate) fn refused_while_running(&self, args: &[&str]) -> String {
        let before = self.files();
        let ran = self.tw(args);
        assert_eq!(ran.code, 2, "{args:?}\n{}", ran.stderr);
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        assert_eq!(self.files(), before, "a refused command must not leave files");
        ran.stderr
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The bytes of an .npy file of doubles.
pub(crate) fn npy(shape: &str, values: &[f64]) -> Vec<u8> {
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
    while !(header.len() + 11).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}
