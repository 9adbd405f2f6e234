//! What a schedule reads and writes.

use std::sync::Arc;

use tw_block::{Sink, Source, SourceAccess};
use tw_ir::{Error, Result};

/// The sources and sinks of one run, by their numbers in the workflow; constants count as sources too.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    /// Where loads read.
    pub sources: Vec<Arc<dyn Source>>,
    /// The same sources as they are outside of this run: without what is read ahead for it. Blocks that outlive the run are read again from these.
    pub origins: Vec<Arc<dyn Source>>,
    /// Where stores write. Every block of a sink comes exactly once, in any order. Engines never commit: a program may have more to run.
    pub sinks: Vec<Arc<dyn Sink>>,
}

impl Bindings {
    pub(crate) fn source(&self, number: u32) -> Result<&dyn Source> {
        let source = self.sources.get(number as usize);
        source.map(Arc::as_ref).ok_or_else(|| Error::internal(format!("source {number} is not bound")))
    }

    /// Where a block that was loaded can be read again, if that is a file.
    pub(crate) fn origin(&self, number: u32) -> Option<&Arc<dyn Source>> {
        self.origins.get(number as usize).filter(|source| source.access() == SourceAccess::File)
    }

    pub(crate) fn sink(&self, number: u32) -> Result<&dyn Sink> {
        let sink = self.sinks.get(number as usize);
        sink.map(Arc::as_ref).ok_or_else(|| Error::internal(format!("sink {number} is not bound")))
    }
}
