//! Where the loads of a segment read and its stores write.

use std::collections::BTreeMap;
use std::sync::Arc;

use tw_block::{ReadAhead, Source, SourceAccess, in_memory};
use tw_ir::error::{Error, Result};
use tw_ir::workflow::{SourceDecl, Workflow};
use tw_run::Bindings;

/// Data by the name of the input that it is bound to.
pub type Inputs = BTreeMap<String, Arc<dyn Source>>;

/// Files of fewer bytes are read block by block, and hold no more than was planned.
const WORTH_READING_AHEAD: u64 = 1 << 20;

/// True for sources that may hold more than was asked for.
pub(crate) fn may_read_ahead(source: &dyn Source) -> bool {
    source.access() == SourceAccess::File && source.n_bytes() >= WORTH_READING_AHEAD
}

/// Finds every source of a workflow by name and opens every sink. Of each source the blocks that are read have `loaded_bytes`. All together may hold
/// `ahead_bytes` more than was asked for.
pub(crate) fn bind(workflow: &Workflow, inputs: &Inputs, loaded_bytes: &[u64], ahead_bytes: u64) -> Result<Bindings> {
    let ahead = (ahead_bytes > 0).then(|| ReadAhead::new(ahead_bytes));
    let mut sources = Vec::with_capacity(workflow.sources.len());
    for (declared, &bytes) in workflow.sources.values().zip(loaded_bytes) {
        sources.push(match declared {
            SourceDecl::Constant(array) => in_memory(array.clone()),
            SourceDecl::Input { name, .. } => {
                let source = inputs.get(name);
                let source = source.ok_or_else(|| Error::source(format!("input `{name}` is not bound to any data")))?;
                let for_run = ahead.as_ref().and_then(|ahead| source.for_run(bytes, ahead));
                for_run.unwrap_or_else(|| source.clone())
            }
        });
    }
    let sinks = workflow.sinks.values().map(|sink| tw_files::create(&sink.path, sink.dtype, &sink.shape));
    Ok(Bindings { sources, sinks: sinks.collect::<Result<_>>()? })
}
