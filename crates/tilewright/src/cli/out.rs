//! Standard output that survives a closed pipe.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use tw_ir::error::{Error, Result};

/// Standard output. Once a write has failed, further text is dropped: results and files matter more than messages.
pub(crate) struct Out {
    stdout: io::Stdout,
    colour: bool,
    failure: Option<io::Error>,
}

impl Out {
    pub(crate) fn new(terminal: bool) -> Out {
        Out { stdout: io::stdout(), colour: terminal && colour_wanted(), failure: None }
    }

    /// Text as it is.
    pub(crate) fn text(&mut self, text: impl Display) {
        if self.failure.is_none() {
            self.failure = write!(self.stdout, "{text}").and_then(|()| self.stdout.flush()).err();
        }
    }

    /// A line.
    pub(crate) fn line(&mut self, line: impl Display) {
        self.text(format_args!("{line}\n"));
    }

    /// A line in bold on a terminal.
    pub(crate) fn heading(&mut self, line: impl Display) {
        let line = self.styled("1", line);
        self.line(line);
    }

    /// A line that matters less.
    pub(crate) fn aside(&mut self, line: impl Display) {
        let line = self.styled("2", line);
        self.line(line);
    }

    /// A closed pipe is fine: the reader had enough. A full disk is not.
    pub(crate) fn finish(self) -> Result<()> {
        match self.failure {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Error::io(format!("standard output cannot be written: {error}")))
            }
            _ => Ok(()),
        }
    }

    fn styled(&self, code: &str, line: impl Display) -> String {
        if self.colour { format!("\x1b[{code}m{line}\x1b[0m") } else { line.to_string() }
    }
}

/// True if colours help on this stream.
pub(crate) fn has_colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && colour_wanted()
}

fn colour_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}
