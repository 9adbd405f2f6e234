//! The verifier of workflows.
//!
//! Invariants:
//! 1. Every operand is a block some task makes, or no block at all.
//! 2. A block is made by one load or apply task, or by fold tasks with positions 0, 1, 2, .. without gap.
//! 3. A load has no operands and one output; fold outputs of one task share their position.
//! 4. Every block of an output is made.
//! 5. Kernels, sets, statements, sources and sinks that are named exist; regions lie inside their blocks.
//! 6. The boxes of a set lie inside its tensor, whose bytes can be counted; grids cover it.
//! 7. The format of a set fits its rank. A set that stores every element has no list of sizes; every other set has one size per block, its estimate at
//!    most its maximum.

use super::{BlockId, BlockSet, Boxes, Sizes, TaskKind, Workflow};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::shape;
use crate::tiling::{BoxRegion, Tiling};

/// Checks every invariant of the module documentation.
pub fn verify(workflow: &Workflow) -> Result<()> {
    let mut folds: Vec<Vec<u32>> = vec![Vec::new(); workflow.n_blocks()];
    let mut made = vec![false; workflow.n_blocks()];
    let wrong = |what: String| Err(Error::internal(what));
    for (id, entry) in &workflow.kernels {
        let is_named = match entry.kernel {
            Kernel::Load { source } => workflow.sources.is_valid(source),
            Kernel::Store { sink } => workflow.sinks.is_valid(sink),
            _ => true,
        };
        if !is_named || !workflow.statements.is_valid(entry.statement) {
            return wrong(format!("{id} names a statement, source or sink that is not there"));
        }
    }
    for (id, set) in &workflow.sets {
        if !workflow.statements.is_valid(set.statement) {
            return wrong(format!("{id} names a statement that is not there"));
        }
        verify_set(set).map_err(|error| error.note(format!("in {id}")))?;
    }
    for task in workflow.tasks() {
        if !workflow.kernels.is_valid(workflow.kernel(task)) {
            return wrong(format!("{task} names a kernel that is not there"));
        }
        if workflow.kind(task) == TaskKind::Load
            && (!workflow.operands(task).is_empty() || workflow.outputs(task).len() != 1)
        {
            return wrong(format!("{task} is a load, but does not make one block from nothing"));
        }
        for &block in workflow.outputs(task) {
            if block.0 as usize >= workflow.n_blocks() {
                return wrong(format!("{task} makes {block}, which belongs to no set"));
            }
            match workflow.kind(task) {
                TaskKind::Fold => folds[block.0 as usize].push(workflow.position(task)),
                _ if std::mem::replace(&mut made[block.0 as usize], true) => {
                    return wrong(format!("{block} is made twice"));
                }
                _ => {}
            }
        }
    }
    for (k, positions) in folds.iter_mut().enumerate() {
        positions.sort_unstable();
        if positions.iter().enumerate().any(|(k, &position)| k as u32 != position) {
            return wrong(format!("the folds into {} do not have positions 0, 1, 2, ..", BlockId(k as u32)));
        }
        if made[k] && !positions.is_empty() {
            return wrong(format!("{} is both made and folded into", BlockId(k as u32)));
        }
        made[k] |= !positions.is_empty();
    }
    for task in workflow.tasks() {
        for operand in workflow.present_operands(task) {
            if !made.get(operand.block.0 as usize).copied().unwrap_or(false) {
                return wrong(format!("{task} reads {}, which no task makes", operand.block));
            }
            if operand.region > 0 {
                let region = workflow.regions.get(operand.region as usize - 1);
                if !region.is_some_and(|region| workflow.block_box(operand.block).contains(region)) {
                    return wrong(format!("{task} reads a region outside {}", operand.block));
                }
            }
        }
    }
    for output in &workflow.outputs {
        let Some(set) = workflow.sets.get(output.set) else {
            return wrong(format!("output `{}` names a set that is not there", output.name));
        };
        if let Some(missing) = (0..set.n_blocks()).find(|&k| !made[(set.first as u64 + k) as usize]) {
            return wrong(format!("block {missing} of output `{}` is never made", output.name));
        }
    }
    Ok(())
}

fn verify_set(set: &BlockSet) -> Result<()> {
    shape::n_bytes(&set.shape, set.dtype.size())?;
    let wrong = |what: String| Err(Error::internal(what));
    if !set.format.is_valid(set.shape.len()) {
        return wrong(format!("{} does not fit rank {}", set.format, set.shape.len()));
    }
    match (&set.sizes, set.format.stores_every_element()) {
        (Sizes::Dense, true) => {}
        (Sizes::List(sizes), false) if sizes.len() as u64 == set.n_blocks() => {
            let most = i64::MAX as u64;
            if let Some(size) = sizes.iter().find(|size| size.estimate() > size.max() || size.max() > most) {
                return wrong(format!("{size:?} is no size of a block"));
            }
        }
        _ => return wrong(format!("the sizes of {} blocks do not fit {}", set.n_blocks(), set.format)),
    }
    match &set.boxes {
        Boxes::Grid(axes) => Tiling::Grid(axes.clone()).verify(&set.shape),
        Boxes::List(list) => {
            let whole = BoxRegion::whole(&set.shape);
            let fits = |region: &BoxRegion| region.rank() == set.shape.len() && whole.contains(region);
            match list.iter().find(|region| !fits(region)) {
                Some(region) => wrong(format!("{region} reaches outside its tensor")),
                None => Ok(()),
            }
        }
    }
}
