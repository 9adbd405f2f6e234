//! Errors, divided by who must act.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::program::ExtentId;
use crate::span::Span;

/// The result type of the whole project.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Who must act on an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The program text or the call is wrong: names, shapes, dtypes, syntax.
    Source,
    /// The program is well formed, but cannot be planned as asked.
    Plan,
    /// The data met at run time breaks a rule of the program (an index out of range, an empty minimum).
    Data,
    /// A limit of the machine or a limit the user set.
    Resource,
    /// A file is missing, truncated or lies about its contents.
    Io,
    /// The user or a caller asked the run to stop.
    Cancelled,
    /// A fault in Tilewright itself. Worth a report.
    Internal,
}

/// The subject of an error, as far as a host language distinguishes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum About {
    /// Values, shapes and anything else.
    #[default]
    Anything,
    /// Element types that do not go together, or that an operation does not take.
    Types,
    /// An index outside its axis, or of the wrong kind.
    Indices,
    /// A number that its element type cannot hold.
    Overflow,
    /// A matrix without the factors or the solution that were asked for.
    Matrices,
    /// A state in which nothing can be done, such as that of a fork without its threads.
    State,
}

/// An error: a message, its place, and help.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    blame: Blame,
    about: About,
    message: String,
    span: Span,
    help: Option<String>,
    notes: Vec<String>,
    needs: Vec<ExtentId>,
    cause: Option<Cause>,
}

/// An exception of a host language; equal only to itself.
#[derive(Clone)]
struct Cause(Arc<dyn Any + Send + Sync>);

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cause")
    }
}
impl PartialEq for Cause {
    fn eq(&self, other: &Cause) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for Cause {}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $blame:ident;)*) => {
        $($(#[$doc])* pub fn $name(message: impl Into<String>) -> Error { Error::new(Blame::$blame, message) })*
    };
}

impl Error {
    /// An error with no place yet; see [`Error::at`].
    pub fn new(blame: Blame, message: impl Into<String>) -> Error {
        Error(Box::new(Inner {
            blame,
            about: About::Anything,
            message: message.into(),
            span: Span::None,
            help: None,
            notes: Vec::new(),
            needs: Vec::new(),
            cause: None,
        }))
    }

    constructors! {
        /// The program or call is wrong.
        source => Source;
        /// The program cannot be planned as asked.
        plan => Plan;
        /// The data breaks a rule of the program.
        data => Data;
        /// A limit was met.
        resource => Resource;
        /// A file is at fault.
        io => Io;
        /// A fault of Tilewright itself.
        internal => Internal;
    }

    /// The program or call puts element types together that do not fit.
    pub fn types(message: impl Into<String>) -> Error {
        let mut error = Error::source(message);
        error.0.about = About::Types;
        error
    }

    /// The program, call or data names an element that is not there.
    pub fn indices(blame: Blame, message: impl Into<String>) -> Error {
        let mut error = Error::new(blame, message);
        error.0.about = About::Indices;
        error
    }

    /// The program or call names a number that its element type cannot hold.
    pub fn overflow(message: impl Into<String>) -> Error {
        let mut error = Error::source(message);
        error.0.about = About::Overflow;
        error
    }

    /// A matrix met at run time that has no such factors or solution.
    pub fn matrix(message: impl Into<String>) -> Error {
        let mut error = Error::data(message);
        error.0.about = About::Matrices;
        error
    }

    /// Nothing can be done in the state that the host program is in.
    pub fn state(message: impl Into<String>) -> Error {
        let mut error = Error::source(message);
        error.0.about = About::State;
        error
    }

    /// A user function failed. The exception of its language travels along unchanged; see [`Error::cause`].
    pub fn thrown(message: impl Into<String>, cause: impl Any + Send + Sync) -> Error {
        let mut error = Error::data(message);
        error.0.cause = Some(Cause(Arc::new(cause)));
        error
    }

    /// The run was asked to stop.
    pub fn cancelled() -> Error {
        Error::new(Blame::Cancelled, "the run was cancelled")
    }

    /// Names the place, unless a more precise one is already known.
    pub fn at(mut self, span: &Span) -> Error {
        if self.0.span == Span::None {
            self.0.span = *span;
        }
        self
    }

    /// Adds help: what the user can do.
    pub fn help(mut self, help: impl Into<String>) -> Error {
        self.0.help = Some(help.into());
        self
    }

    /// Adds a fact that helps to understand the error.
    pub fn note(mut self, note: impl Into<String>) -> Error {
        self.0.notes.push(note.into());
        self
    }

    /// Marks the error as provisional: it holds only while these extents are unknown. Only [`Extent`](crate::Extent) and shapes create such errors.
    pub(crate) fn needing(mut self, extents: impl IntoIterator<Item = ExtentId>) -> Error {
        self.0.needs.extend(extents);
        self
    }

    /// The deferred extents that decide whether this is an error; none for an error that holds for any extents.
    ///
    /// Whoever can compute them does so and asks again. The text of a program cannot, which is why this is no blame of its own: there
    /// the error stands as it is.
    pub fn needed_extents(&self) -> &[ExtentId] {
        &self.0.needs
    }

    /// Who must act.
    pub fn blame(&self) -> Blame {
        self.0.blame
    }
    /// Its subject.
    pub fn about(&self) -> About {
        self.0.about
    }
    /// The message, one sentence.
    pub fn message(&self) -> &str {
        &self.0.message
    }
    /// The place in the user's text or code.
    pub fn span(&self) -> &Span {
        &self.0.span
    }
    /// Help: what the user can do.
    pub fn help_text(&self) -> Option<&str> {
        self.0.help.as_deref()
    }
    /// Facts that help to understand the error.
    pub fn notes(&self) -> &[String] {
        &self.0.notes
    }
    /// The exception of a user function, if it has this type.
    pub fn cause<T: Any>(&self) -> Option<&T> {
        self.0.cause.as_ref()?.0.downcast_ref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.message)?;
        if self.0.span != Span::None {
            write!(f, " (at {})", self.0.span)?;
        }
        for note in &self.0.notes {
            write!(f, "; {note}")?;
        }
        if let Some(help) = &self.0.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} error: {self}", self.0.blame)
    }
}

impl std::error::Error for Error {}
