//! Files and directories of a store: made whole before they get their names.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tw_block::exchange_paths;
use tw_ir::{Error, Result};

use super::failed;
use super::metadata::{describes, read_json};
use crate::spool::{hidden, unique_name};

/// A store with more files is not searched through.
const MOST_FILES: usize = 1 << 18;

/// One file of a store.
pub(super) struct StoredFile {
    name: PathBuf,
    pub(super) bytes: u64,
    time: (i64, i64),
}

impl StoredFile {
    /// What tells one version of it from another.
    pub(super) fn facts(&self) -> Vec<u8> {
        let mut facts = self.name.as_os_str().as_encoded_bytes().to_vec();
        facts.push(0);
        facts.extend(self.bytes.to_le_bytes());
        facts.extend(self.time.0.to_le_bytes());
        facts.extend(self.time.1.to_le_bytes());
        facts
    }
}

/// All files below a directory in the order of their names; `None` if there are too many or they cannot be seen. Links are not followed.
pub(super) fn files_below(directory: &Path) -> Option<Vec<StoredFile>> {
    let (mut files, mut waiting) = (Vec::new(), vec![directory.to_path_buf()]);
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(next).ok()? {
            let entry = entry.ok()?;
            let metadata = entry.metadata().ok()?;
            if metadata.is_dir() {
                waiting.push(entry.path());
            } else {
                let name = entry.path().strip_prefix(directory).ok()?.to_path_buf();
                files.push(StoredFile { name, bytes: metadata.len(), time: (metadata.mtime(), metadata.mtime_nsec()) });
            }
            if files.len() + waiting.len() > MOST_FILES {
                return None;
            }
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Some(files)
}

/// A name beside a path that nobody else uses, hidden from listings. Processes that were killed may have left some under the same number.
pub(super) fn temporary(path: &Path) -> Result<PathBuf> {
    loop {
        let name = hidden(path, &unique_name())?;
        if fs::symlink_metadata(&name).is_err() {
            return Ok(name);
        }
    }
}

/// Writes a file of a store that nobody sees yet. Directories are made as they are needed.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    let made = match fs::write(path, bytes) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let parent = path.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(parent).and_then(|()| fs::write(path, bytes))
        }
        other => other,
    };
    made.map_err(|error| failed(path, "cannot be written", &error))
}

/// Replaces a file that others may read: they see the old one or the new one.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.is_dir()) {
        fs::create_dir_all(parent).map_err(|error| failed(parent, "cannot be made", &error))?;
    }
    let temporary = temporary(path)?;
    let written = File::create_new(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_data()))
        .and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        // The error that led here is more important than one of this.
        let _ = fs::remove_file(&temporary);
        failed(path, "cannot be written", &error)
    })
}

/// Makes a file, or the names in a directory, durable.
pub(super) fn sync(path: &Path) -> Result<()> {
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|error| failed(path, "cannot be made durable", &error))
}

/// Makes all files below a directory durable.
pub(super) fn sync_all_below(directory: &Path) -> Result<()> {
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(next) = waiting.pop() {
        let entries = fs::read_dir(&next).map_err(|error| failed(&next, "cannot be read", &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| failed(&next, "cannot be read", &error))?;
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push(entry.path()),
                _ => sync(&entry.path())?,
            }
        }
        sync(&next)?;
    }
    Ok(())
}

/// Gives a directory that is complete its name, in place of what had it before.
pub(super) fn put_in_place(complete: &Path, path: &Path) -> Result<()> {
    let cannot = |error: &std::io::Error| failed(path, "cannot be replaced", error);
    if fs::symlink_metadata(path).is_err() {
        fs::rename(complete, path).map_err(|error| cannot(&error))?;
    } else if exchange_paths(complete, path).is_ok() {
        remove(complete);
    } else {
        // Between the two steps there is nothing under the name; what was there is beside it.
        let before = temporary(path)?;
        fs::rename(path, &before).map_err(|error| cannot(&error))?;
        if let Err(error) = fs::rename(complete, path) {
            let _ = fs::rename(&before, path);
            return Err(cannot(&error));
        }
        remove(&before);
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync(parent),
        _ => sync(Path::new(".")),
    }
}

/// Removes a directory of ours. What cannot be removed is left, because nobody can do better.
pub(super) fn remove(directory: &Path) {
    let _ = fs::remove_dir_all(directory);
}

/// Makes the groups around a node that are missing, of the given version. One that is there stays as it is.
pub(super) fn make_groups(root: &Path, node: &Path, version: u8) -> Result<()> {
    let mut groups: Vec<&Path> = node.ancestors().skip(1).take_while(|group| group.starts_with(root)).collect();
    groups.reverse();
    for group in groups {
        match describes(group) {
            Some((_, super::metadata::Kind::Group)) => continue,
            Some(_) => {
                return Err(Error::io(format!(
                    "{} is an array, so {} cannot be in it",
                    group.display(),
                    node.display()
                )));
            }
            None => {}
        }
        fs::create_dir_all(group).map_err(|error| failed(group, "cannot be made", &error))?;
        let (name, text) = match version {
            2 => (".zgroup", "{\"zarr_format\": 2}"),
            _ => ("zarr.json", "{\"zarr_format\": 3, \"node_type\": \"group\", \"attributes\": {}}"),
        };
        replace(&group.join(name), text.as_bytes())?;
    }
    Ok(())
}

/// Brings the consolidated metadata of the groups around a node up to date, where there is any.
pub(super) fn refresh_consolidated(root: &Path, node: &Path, metadata: &Map<String, Value>) -> Result<()> {
    for group in node.ancestors().skip(1).take_while(|group| group.starts_with(root)) {
        let Some(name) = node.strip_prefix(group).ok().and_then(Path::to_str) else { continue };
        let (file, key) = match metadata.get("zarr_format").and_then(Value::as_u64) {
            Some(2) => (group.join(".zmetadata"), format!("{name}/.zarray")),
            _ => (group.join("zarr.json"), name.to_string()),
        };
        if !file.is_file() {
            continue;
        }
        let mut json = read_json(&file)?;
        let all = match json.get_mut("consolidated_metadata") {
            Some(Value::Object(consolidated)) => consolidated.get_mut("metadata"),
            _ => json.get_mut("metadata"),
        };
        if let Some(Value::Object(all)) = all {
            all.insert(key, Value::Object(metadata.clone()));
            replace(&file, text_of(&json)?.as_bytes())?;
        }
    }
    Ok(())
}

/// Metadata as it is written.
pub(super) fn text_of(json: &Map<String, Value>) -> Result<String> {
    serde_json::to_string_pretty(json).map_err(|error| Error::internal(format!("metadata cannot be written: {error}")))
}
