//! Outputs as one array: put together while their blocks are computed.

use std::sync::Arc;

use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;
use tw_block::{Block, SpilledBlock, Whole};
use tw_ir::schedule::InstanceId;
use tw_ir::workflow::{BlockSetId, Boxes};
use tw_ir::{Array, BoxRegion, Error, Result};

use crate::bindings::Bindings;
use crate::handle::{BlockHandle, Place, TensorHandle};
use crate::keep::Keeping;
use crate::options::{OutputForm, RunOptions};
use crate::prepared::PreparedSchedule;
use crate::slots::{Slot, Slots};

/// The arrays of a run.
pub(crate) struct Deliveries {
    /// The form of each output of the workflow.
    forms: Vec<OutputForm>,
    /// Per output, the array that its blocks become. An output of one block needs none: that block is the array.
    wholes: Vec<Option<Arc<Whole>>>,
    /// Per set, the array that its blocks are parts of where they can be.
    lent: SecondaryMap<BlockSetId, Option<Arc<Whole>>>,
    /// Per set, the outputs it is.
    outputs: SecondaryMap<BlockSetId, SmallVec<[u32; 1]>>,
    /// False if every output is handed out as blocks.
    any: bool,
}

impl Deliveries {
    /// Makes room for the arrays that are asked for.
    pub(crate) fn new(plan: &PreparedSchedule, options: &RunOptions) -> Result<Deliveries> {
        let workflow = plan.schedule.workflow();
        let any = options.forms.iter().any(|form| form.has_array());
        let mut deliveries = Deliveries {
            forms: Vec::new(),
            wholes: Vec::new(),
            lent: SecondaryMap::new(),
            outputs: SecondaryMap::new(),
            any,
        };
        if !any {
            return Ok(deliveries);
        }
        for (k, output) in workflow.outputs.iter().enumerate() {
            let set = &workflow.sets[output.set];
            let form = options.forms.get(k).copied().unwrap_or_default();
            let whole = match &set.boxes {
                Boxes::Grid(grid) if form.has_array() && set.n_blocks() != 1 => {
                    Some(Arc::new(Whole::new(set.dtype, grid, &options.meter)?))
                }
                _ => None,
            };
            if whole.is_some() {
                deliveries.outputs[output.set].push(k as u32);
            }
            // What is an array twice, or is kept as blocks too, has blocks of its own; and so has what is saved.
            let is_only_result = workflow.outputs.iter().filter(|other| other.set == output.set).count() == 1;
            let may_lend = is_only_result && !form.has_blocks() && options.keep.is_none() && plan.rest.is_none();
            if may_lend && plan.in_place[output.set] {
                deliveries.lent[output.set] = whole.clone();
            }
            deliveries.forms.push(form);
            deliveries.wholes.push(whole);
        }
        Ok(deliveries)
    }

    /// A block that a kernel writes right where the array of an output has it, if it can be one.
    pub(crate) fn lend(&self, set: BlockSetId, bbox: &BoxRegion) -> Result<Option<Block>> {
        match self.lent[set].as_ref().filter(|_| self.any) {
            Some(whole) => whole.lend(bbox),
            None => Ok(None),
        }
    }

    /// True if blocks of the set that are not parts of an array are read again as soon as they are complete, by being copied.
    pub(crate) fn copies(&self, set: BlockSetId) -> bool {
        self.any && !self.outputs[set].is_empty()
    }

    /// Takes a block that a step has written into its arrays if it is complete. Gives the number of outputs that are done with it.
    pub(crate) fn deliver(
        &self,
        plan: &PreparedSchedule,
        step: u32,
        instance: InstanceId,
        value: &Block,
    ) -> Result<usize> {
        let set = plan.schedule.workflow().set_of(plan.schedule.block_of(instance));
        if !self.copies(set) || plan.last_writer(instance) != step || !plan.schedule.is_result(instance) {
            return Ok(0);
        }
        let mut done = 0;
        for &output in &self.outputs[set] {
            if let Some(whole) = &self.wholes[output as usize] {
                whole.write(value)?;
            }
            done += !self.forms[output as usize].has_blocks() as usize;
        }
        Ok(done)
    }

    /// The blocks and arrays of every output, once the run is over.
    pub(crate) fn collect(
        self,
        plan: &PreparedSchedule,
        bindings: &Bindings,
        options: &RunOptions,
        slots: &mut impl Slots,
        keeping: Option<&Keeping>,
    ) -> Result<Outputs> {
        let workflow = plan.schedule.workflow();
        let n = workflow.outputs.len();
        let mut outputs = Outputs { handles: Vec::with_capacity(n), arrays: Vec::with_capacity(n), kept: Vec::new() };
        if let Some(keeping) = keeping {
            let mut kept = keeping.results(plan).into_iter();
            let n_blocks = workflow.outputs.iter().map(|output| workflow.sets[output.set].n_blocks() as usize);
            outputs.kept = n_blocks.map(|n| kept.by_ref().take(n).collect()).collect();
        }
        drop(self.lent);
        let mut wholes = self.wholes.into_iter();
        let mut results = plan.schedule.results().enumerate();
        for (k, output) in workflow.outputs.iter().enumerate() {
            if plan.rest.as_ref().is_some_and(|rest| !rest.wants_results()) {
                outputs.arrays.push(None);
                outputs.handles.push(None);
                continue;
            }
            let form = self.forms.get(k).copied().unwrap_or_default();
            let whole = wholes.next().flatten();
            let is_delivered = whole.is_some() && !form.has_blocks();
            let instances = results.by_ref().take(workflow.sets[output.set].n_blocks() as usize);
            let blocks = instances.filter(|_| !is_delivered).map(|(number, instance)| {
                if let Some(rank) = plan.elsewhere(instance) {
                    return Ok(Place::Elsewhere(rank));
                }
                if let Some(kept) = plan.rest.as_ref().and_then(|rest| rest.result(number)) {
                    return Ok(Place::Disk(Arc::clone(kept)));
                }
                slots
                    .with(instance, Slot::claim)
                    .ok_or_else(|| Error::internal(format!("a block of output `{}` is not there", output.name)))
            });
            let mut blocks = blocks.collect::<Result<Vec<Place>>>()?;
            let array = match whole {
                Some(whole) => Some(whole.finish()?),
                None if form.has_array() => Some(array_of(&mut blocks, form)?),
                None => None,
            };
            outputs.arrays.push(array.map(|array| array.with_dtype(output.dtype)).transpose()?);
            outputs.handles.push(match &workflow.sets[output.set].boxes {
                _ if !form.has_blocks() => None,
                Boxes::Grid(grid) => {
                    let origin = plan.loaded_from[output.set].and_then(|source| bindings.origin(source));
                    let origin = origin.filter(|_| options.names_sources);
                    let handle = |place: Place| BlockHandle::new(place, origin.cloned());
                    let blocks = blocks.into_iter().map(handle).collect();
                    Some(TensorHandle::new(output.dtype, grid.clone(), blocks))
                }
                Boxes::List(_) => return Err(Error::internal("an output without a grid")),
            });
        }
        Ok(outputs)
    }
}

/// The array of an output with one block: the block itself, if it has no other reader.
fn array_of(blocks: &mut Vec<Place>, form: OutputForm) -> Result<Array> {
    let Some(place) = blocks.first().cloned() else { return Err(Error::internal("an output without a block")) };
    if !form.has_blocks() {
        blocks.clear();
    }
    match Arc::try_unwrap(place.bring_uncharged()?) {
        Ok(block) => block.into_array(),
        Err(shared) => shared.to_array(),
    }
}

/// The outputs of a run.
pub(crate) struct Outputs {
    /// None for those that are wanted as arrays alone.
    pub(crate) handles: Vec<Option<TensorHandle>>,
    pub(crate) arrays: Vec<Option<Array>>,
    /// What was kept of each output, if the run has kept blocks.
    pub(crate) kept: Vec<Vec<Option<Arc<SpilledBlock>>>>,
}

#[cfg(test)]
#[cfg(not(feature = "model-check"))]
mod tests {
    use tw_block::provider;
    use tw_ir::schedule::Schedule;

    use crate::options::{OutputForm, RunOptions};
    use crate::overhead::overhead_workflow;
    use crate::{Bindings, Engine, Prepared, Runtime};
    use std::sync::Arc;

    #[test]
    fn outputs_come_in_the_form_that_is_asked_for() {
        for n_chains in [1, 7] {
            let workflow = overhead_workflow(50 * n_chains, n_chains).unwrap();
            let order = workflow.tasks().collect();
            let prepared = Prepared::new(Arc::new(Schedule::freeze(workflow, order, provider()).unwrap())).unwrap();
            for (threads, chaos) in [(1, None), (3, None), (3, Some(5))] {
                for form in [OutputForm::Blocks, OutputForm::Array, OutputForm::BlocksAndArray] {
                    let options = RunOptions { forms: vec![form], chaos, ..RunOptions::default() };
                    let outcome = Runtime::new(threads).run(&prepared, &Bindings::default(), &options).unwrap();
                    let handle = &outcome.outputs[0];
                    let n_blocks = handle.as_ref().map(|handle| handle.blocks().len());
                    assert_eq!(n_blocks, form.has_blocks().then_some(n_chains as usize));
                    // An array that is given away is no longer counted.
                    assert_eq!(options.meter.now(), handle.as_ref().map_or(0, |handle| handle.n_bytes()));
                    let elements = outcome.arrays[0].as_ref().map(|array| array.to_f64_vec());
                    assert_eq!(elements, form.has_array().then(|| vec![50.0; n_chains as usize]), "{form:?} {threads}");
                }
            }
        }
    }

    #[test]
    fn results_that_nobody_else_reads_are_computed_in_their_array() {
        let workflow = overhead_workflow(70, 7).unwrap();
        let order = workflow.tasks().collect();
        let prepared = Prepared::new(Arc::new(Schedule::freeze(workflow, order, provider()).unwrap())).unwrap();
        // The seven elements, and what the longest chain holds besides: the element before and, of a result that is copied, the block.
        for (form, peak) in [(OutputForm::Array, 7 + 1), (OutputForm::BlocksAndArray, 7 + 7 + 1)] {
            let options = RunOptions { forms: vec![form], ..RunOptions::default() };
            let outcome = Runtime::new(1).run(&prepared, &Bindings::default(), &options).unwrap();
            assert_eq!(options.meter.peak(), 8 * peak, "{form:?}");
            assert_eq!(outcome.arrays[0].as_ref().map(|array| array.to_f64_vec()), Some(vec![10.0; 7]));
        }
    }
}
