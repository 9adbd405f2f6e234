//! The log of a checkpoint: records that are appended to a file.
//!
//! A record is the length of its payload (4 bytes), a checksum (8 bytes) and the payload. The first record is the hash that names the checkpoint.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tw_ir::error::{Error, Result};
use tw_ir::schedule::Digest;

use super::event::Event;
use super::failed;

/// A log is written anew, without what has become worthless, when it is larger than this and than four times what counted the last time.
const LARGE: u64 = 1 << 20;

/// The bytes above which a log is written anew that has so many which count.
fn most_after(counts: u64) -> u64 {
    LARGE.max(4 * counts)
}

pub(super) struct Log {
    path: PathBuf,
    file: File,
    key: Digest,
    /// The records of the events that count.
    records: Vec<Vec<u8>>,
    /// Where the loops around the walk begin among them.
    loops: Vec<usize>,
    /// Bytes of the file.
    written: u64,
    /// Bytes of the file above which it is written anew.
    most: u64,
}

impl Log {
    /// Opens a log, or begins one. Gives the events that count. What follows the first record that is not whole is cut off.
    pub(super) fn open(path: &Path, key: &Digest) -> Result<(Log, Vec<Event>)> {
        let mut file = open_locked(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| failed(path, "cannot be read", &error))?;
        let mut log = Log {
            path: path.to_path_buf(),
            file,
            key: *key,
            records: Vec::new(),
            loops: Vec::new(),
            written: 0,
            most: 0,
        };
        let mut rest = bytes.as_slice();
        let mut events = Vec::new();
        if let Some((first, after)) = record(rest)
            && first == key.0
        {
            rest = after;
            while let Some((payload, after)) = record(rest)
                && let Ok(event) = Event::decode(payload)
            {
                rest = after;
                let kept = log.keep(&event, payload.to_vec());
                events.truncate(kept);
                events.push(event);
            }
            log.written = (bytes.len() - rest.len()) as u64;
            log.file.set_len(log.written).map_err(|error| failed(path, "cannot be shortened", &error))?;
            log.file.seek(SeekFrom::End(0)).map_err(|error| failed(path, "cannot be written", &error))?;
            log.most = most_after(log.records.iter().map(|record| record.len() as u64).sum());
        } else {
            log.rewrite()?;
        }
        Ok((log, events))
    }

    /// Appends an event.
    pub(super) fn push(&mut self, event: Event) -> Result<()> {
        let payload = event.encode();
        let framed = framed(&payload);
        self.keep(&event, payload);
        self.file.write_all(&framed).map_err(|error| failed(&self.path, "cannot be written", &error))?;
        self.written += framed.len() as u64;
        if self.written > self.most { self.rewrite() } else { Ok(()) }
    }

    /// Keeps the record of an event and drops those that it makes worthless. Gives how many are left before it.
    fn keep(&mut self, event: &Event, payload: Vec<u8>) -> usize {
        match event {
            Event::Loop { depth } => {
                self.loops.truncate(*depth);
                self.loops.push(self.records.len());
            }
            // Only the beginning of the loop and this turn count.
            Event::Turn { depth, .. } => {
                if let Some(&begin) = self.loops.get(*depth) {
                    self.records.truncate(begin + 1);
                    self.loops.truncate(depth + 1);
                }
            }
            // The tasks of a segment that has ended. One that writes files runs again, for what its tasks have stored.
            Event::Segment { writes_files: false, .. } => {
                while self.records.last().is_some_and(|record| Event::is_tasks(record)) {
                    self.records.pop();
                }
            }
            Event::Segment { .. } | Event::Answer(_) | Event::Tasks(_) => {}
        }
        self.records.push(payload);
        self.records.len() - 1
    }

    /// Writes what counts to a new file and puts it in the place of the old one.
    fn rewrite(&mut self) -> Result<()> {
        let new = self.path.with_extension("new");
        let fail = |what: &str| {
            let (path, what) = (self.path.clone(), what.to_string());
            move |error: std::io::Error| failed(&path, &what, &error)
        };
        let mut file = File::create(&new).map_err(fail("cannot be written"))?;
        lock(&file, &new)?;
        let mut bytes = framed(&self.key.0);
        self.records.iter().for_each(|payload| bytes.extend_from_slice(&framed(payload)));
        file.write_all(&bytes).map_err(fail("cannot be written"))?;
        fs::rename(&new, &self.path).map_err(fail("cannot be replaced"))?;
        self.written = bytes.len() as u64;
        self.most = most_after(self.written);
        self.file = file;
        Ok(())
    }
}

/// Opens the file of this name and locks it. Between the two the process that had it may have put another file in its place.
fn open_locked(path: &Path) -> Result<File> {
    let fail = |error: std::io::Error| failed(path, "cannot be opened", &error);
    loop {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(fail)?;
        lock(&file, path)?;
        let own = file.metadata().map_err(fail)?;
        if fs::metadata(path).is_ok_and(|named| (named.dev(), named.ino()) == (own.dev(), own.ino())) {
            return Ok(file);
        }
    }
}

/// One process at a time writes a checkpoint.
fn lock(file: &File, path: &Path) -> Result<()> {
    file.try_lock().map_err(|_| {
        Error::state(format!("another process runs this program with the checkpoint {}", path.display()))
            .help("wait for it, or choose another directory")
    })
}

fn checksum(payload: &[u8]) -> [u8; 8] {
    let digest = Digest::of("tilewright 1 checkpoint: record", &[payload]);
    let mut checksum = [0; 8];
    checksum.copy_from_slice(&digest.0[..8]);
    checksum
}

fn framed(payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_le_bytes();
    [&length[..], &checksum(payload), payload].concat()
}

/// The payload of the first record, if it is whole, and what follows it.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (expected, rest) = rest.split_first_chunk::<8>()?;
    let (payload, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    (checksum(payload) == *expected).then_some((payload, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(n: u64) -> Event {
        Event::Answer(vec![n])
    }

    fn turn(depth: usize, turn: usize) -> Event {
        Event::Turn { depth, turn, carried: Vec::new() }
    }

    fn path(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("tw-log-{}-{name}", std::process::id()));
        let _ = fs::remove_file(&path);
        path
    }

    #[test]
    fn a_turn_replaces_all_that_its_loop_has_done_before() {
        let path = path("turns");
        let key = Digest::of("test", &[]);
        let (mut log, events) = Log::open(&path, &key).unwrap();
        assert_eq!(events, []);
        let outer = Event::Loop { depth: 0 };
        let inner = Event::Loop { depth: 1 };
        for event in [answer(1), outer.clone(), answer(2), inner.clone(), answer(3), turn(1, 0), answer(4), turn(1, 1)]
        {
            log.push(event).unwrap();
        }
        drop(log);
        let (mut log, events) = Log::open(&path, &key).unwrap();
        assert_eq!(events, [answer(1), outer.clone(), answer(2), inner, turn(1, 1)]);
        for event in [answer(5), turn(0, 0), answer(6), Event::Loop { depth: 1 }] {
            log.push(event).unwrap();
        }
        drop(log);
        let (log, events) = Log::open(&path, &key).unwrap();
        assert_eq!(events, [answer(1), outer, turn(0, 0), answer(6), Event::Loop { depth: 1 }]);
        assert!(Log::open(&path, &key).is_err(), "a second process waits");
        drop(log);
        assert_eq!(Log::open(&path, &Digest::of("other", &[])).unwrap().1, [], "of another program");
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_log_ends_at_the_first_record_that_is_not_whole() {
        let path = path("torn");
        let key = Digest::of("test", &[]);
        let (mut log, _) = Log::open(&path, &key).unwrap();
        (0..5).for_each(|n| log.push(answer(n)).unwrap());
        drop(log);
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let (mut log, events) = Log::open(&path, &key).unwrap();
            assert_eq!(events, (0..events.len() as u64).map(answer).collect::<Vec<_>>());
            assert!(events.len() < 5);
            log.push(answer(9)).unwrap();
            drop(log);
            assert_eq!(Log::open(&path, &key).unwrap().1.last(), Some(&answer(9)));
        }
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_long_loop_does_not_make_a_long_log() {
        let path = path("long");
        let key = Digest::of("test", &[]);
        let (mut log, _) = Log::open(&path, &key).unwrap();
        log.push(Event::Loop { depth: 0 }).unwrap();
        for n in 0..100_000 {
            log.push(answer(n)).unwrap();
            log.push(turn(0, n as usize)).unwrap();
        }
        assert!(fs::metadata(&path).unwrap().len() <= 2 * LARGE);
        drop(log);
        assert_eq!(Log::open(&path, &key).unwrap().1, [Event::Loop { depth: 0 }, turn(0, 99_999)]);
        fs::remove_file(path).unwrap();
    }
}
