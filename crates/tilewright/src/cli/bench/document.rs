//! Replaces the text between two marks of a documentation page by measured tables.

use std::fs;
use std::path::{Path, PathBuf};

use tw_ir::error::{Error, Result};

use super::harness::Measurement;
use super::table;

const BEGIN: &str = "<!-- tw bench -->";
const END: &str = "<!-- end of tw bench -->";

/// A page that will be written. Its marks are looked for before anything is measured.
pub(super) struct Page {
    path: PathBuf,
    /// Up to the mark, which is included.
    before: String,
    /// From the other mark on.
    after: String,
}

impl Page {
    /// Reads the page; one that does not exist will have nothing but the tables.
    pub(super) fn open(path: &Path) -> Result<Page> {
        let empty = format!("{BEGIN}\n{END}\n");
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => empty,
            Err(error) => return Err(Error::io(format!("{} cannot be read: {error}", path.display()))),
        };
        let start = text.find(BEGIN).map(|start| start + BEGIN.len());
        let parts = start.and_then(|start| Some((start, start + text[start..].find(END)?)));
        let (start, end) = parts.ok_or_else(|| {
            let help = format!("put these two lines where the tables should be:\n{BEGIN}\n{END}");
            Error::source(format!("{} has no place for tables", path.display())).help(help)
        })?;
        Ok(Page { path: path.to_path_buf(), before: text[..start].to_string(), after: text[end..].to_string() })
    }

    pub(super) fn write(&self, setting: &[(&str, String)], measurements: &[Measurement]) -> Result<()> {
        let machine: String = setting.iter().map(|(name, text)| format!("- {name}: {text}\n")).collect();
        let rivals = table::rivals(measurements).to_markdown();
        let figures = table::figures(measurements).to_markdown();
        let Page { path, before, after } = self;
        let text = format!("{before}\n\n{machine}\n{rivals}\n{figures}\n{after}");
        fs::write(path, text).map_err(|error| Error::io(format!("{} cannot be written: {error}", path.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let path = std::env::temp_dir().join(format!("tw-bench-page-{}.md", std::process::id()));
        fs::write(&path, format!("# Title\n\n{BEGIN}\nold\n{END}\n\nText.\n")).unwrap();
        let page = Page::open(&path).unwrap();
        page.write(&[("processor", "slow".to_string())], &[]).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# Title\n\n<!--") && text.ends_with("-->\n\nText.\n"), "{text}");
        assert!(text.contains("- processor: slow\n") && !text.contains("old"), "{text}");
        fs::write(&path, "no marks").unwrap();
        assert!(Page::open(&path).is_err());
        fs::remove_file(&path).unwrap();
    }
}
