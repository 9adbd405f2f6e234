//! Where the loads of a segment read and its stores write.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tw_block::{ReadAhead, Source, SourceAccess, in_memory};
use tw_files::FileTarget;
use tw_ir::Grid;
use tw_ir::error::{Error, Result};
use tw_ir::kernel::Kernel;
use tw_ir::workflow::{Boxes, SourceDecl, Workflow};
use tw_run::{Bindings, CancelToken, Group};

/// Data by the name of the input that it is bound to.
pub type Inputs = BTreeMap<String, Arc<dyn Source>>;

/// How files are written that are not written as a whole and in the usual way, by their paths.
pub(crate) type Targets = BTreeMap<String, FileTarget>;

/// Files of fewer bytes are read block by block, and hold no more than was planned.
const WORTH_READING_AHEAD: u64 = 1 << 20;

/// True for sources that may hold more than was asked for.
pub(crate) fn may_read_ahead(source: &dyn Source) -> bool {
    source.access() == SourceAccess::File && source.n_bytes() >= WORTH_READING_AHEAD
}

/// The data and files of a segment.
pub(crate) struct Bound<'a> {
    pub(crate) inputs: &'a Inputs,
    pub(crate) targets: &'a Targets,
    /// Bytes of the blocks that are read of each source.
    pub(crate) loaded_bytes: &'a [u64],
    /// What all sources together may hold more than was asked for.
    pub(crate) ahead_bytes: u64,
    /// True if blocks may be read again from the files that they come from.
    pub(crate) names_sources: bool,
    /// The files that another rank has begun to write, in the order of the sinks; nothing if this process begins them.
    pub(crate) joints: Option<Vec<String>>,
    /// The name under which a later process finds what was stored.
    pub(crate) kept_name: Option<&'a str>,
}

/// Finds every source of a workflow by name and opens every sink. Of each sink, tells whether it keeps what was written for a later process, and whether an earlier one has
/// begun it.
pub(crate) fn bind(workflow: &Workflow, bound: &Bound<'_>) -> Result<(Bindings, Vec<(bool, bool)>)> {
    let ahead = (bound.ahead_bytes > 0).then(|| ReadAhead::new(bound.ahead_bytes));
    let mut sources = Vec::with_capacity(workflow.sources.len());
    let mut origins: Vec<Arc<dyn Source>> = Vec::new();
    for (declared, &bytes) in workflow.sources.values().zip(bound.loaded_bytes) {
        let origin = match declared {
            SourceDecl::Constant(array) => in_memory(array.clone()),
            SourceDecl::Input { name, .. } => {
                let source = bound.inputs.get(name).cloned();
                source.ok_or_else(|| Error::source(format!("input `{name}` is not bound to any data")))?
            }
        };
        if bound.names_sources {
            origins.push(origin.clone());
        }
        let for_run = ahead.as_ref().and_then(|ahead| origin.for_run(bytes, ahead));
        sources.push(for_run.unwrap_or(origin));
    }
    let usual = FileTarget::default();
    let (mut sinks, mut kept) = (Vec::new(), Vec::new());
    for ((number, sink), grid) in workflow.sinks.values().enumerate().zip(grids_of_sinks(workflow)) {
        let target = bound.targets.get(&sink.path).unwrap_or(&usual);
        if let Some(joints) = &bound.joints {
            let joint = joints.get(number).ok_or_else(|| Error::internal("a file that nobody has begun"))?;
            sinks.push(tw_files::join(&sink.path, sink.dtype, &grid, target, joint)?);
            continue;
        }
        let Some(name) = bound.kept_name else {
            sinks.push(tw_files::create(&sink.path, sink.dtype, &grid, target)?);
            continue;
        };
        let created =
            tw_files::create_kept(&sink.path, (sink.dtype, &grid), target, &format!("tilewright-{name}-{number}"))?;
        sinks.push(created.sink);
        kept.push((created.keeps, created.found));
    }
    Ok((Bindings { sources, origins, sinks }, kept))
}

/// Binds a segment on one of several ranks: rank 0 begins the files that are written, and the others join.
pub(crate) fn bind_together(
    workflow: &Workflow,
    bound: Bound<'_>,
    group: &dyn Group,
    cancel: &CancelToken,
) -> Result<Bindings> {
    let share = |text: &str| {
        let shared = group.share(0, text.as_bytes(), cancel)?;
        String::from_utf8(shared).map_err(|_| Error::internal("names of files that are no text"))
    };
    if group.rank() > 0 {
        let joints = share("")?.split('\0').map(str::to_string).collect();
        return Ok(bind(workflow, &Bound { joints: Some(joints), ..bound })?.0);
    }
    let (bindings, _) = bind(workflow, &bound)?;
    let paths = workflow.sinks.values().map(|sink| Path::new(&sink.path));
    let joints =
        bindings.sinks.iter().zip(paths).map(|(sink, path)| sink.joint().ok_or_else(|| tw_files::one_writer(path)));
    share(&joints.collect::<Result<Vec<_>>>()?.join("\0"))?;
    Ok(bindings)
}

/// The blocks in which each sink is written: chunks of files are made of them.
fn grids_of_sinks(workflow: &Workflow) -> Vec<Grid> {
    let mut grids: Vec<Option<Grid>> = vec![None; workflow.sinks.len()];
    let mut missing = grids.len();
    for task in workflow.tasks() {
        if missing == 0 {
            break;
        }
        let Kernel::Store { sink } = workflow.kernels[workflow.kernel(task)].kernel else { continue };
        let grid = &mut grids[sink.as_u32() as usize];
        if let (None, Some(operand)) = (&grid, workflow.present_operands(task).next())
            && let Boxes::Grid(blocks) = &workflow.sets[workflow.set_of(operand.block)].boxes
        {
            *grid = Some(blocks.clone());
            missing -= 1;
        }
    }
    // A tensor without elements has no blocks.
    let whole = workflow.sinks.values().map(|sink| Grid::whole(&sink.shape));
    grids.into_iter().zip(whole).map(|(grid, whole)| grid.unwrap_or(whole)).collect()
}
