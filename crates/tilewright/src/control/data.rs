//! Running a program: values are computed tensors, and segments are planned (or found in the cache) and run.

use std::cell::RefCell;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tw_block::{Sink, Source, commit_all};
use tw_ir::error::{Error, Result};
use tw_ir::program::{MaskCounts, Node, Program, TensorType, ValueId};
use tw_ir::{Array, Grid, Span};
use tw_run::{CancelToken, Claim, TensorHandle};

use super::placed::{Operands, Placer, Sharded};
use super::{Alive, Around, Decision, Domain, Place, Step, walk};
use crate::bindings::{Inputs, Targets};
use crate::checkpoint::{Before, Checkpoint, Kept, Saved};
use crate::report::Totals;
use crate::results::{Computed, Want};
use crate::session::{SegmentRun, Session};

/// A computed tensor.
#[derive(Clone)]
pub(crate) struct Tensor {
    stored: Arc<TensorHandle>,
    /// On a cluster, the workers that hold it.
    shards: Option<Sharded>,
    /// Its copy in the checkpoint.
    saved: Option<Arc<Saved>>,
}

impl Tensor {
    /// A value that is in the checkpoint.
    fn kept((stored, saved): Kept) -> Tensor {
        Tensor { stored, shards: None, saved: Some(saved) }
    }
}

/// A run of a program that is under way.
pub(crate) struct Data<'a> {
    session: &'a Session,
    program: &'a Program,
    inputs: &'a Inputs,
    targets: &'a Targets,
    /// How results of the program are wanted, other than as blocks.
    wants: FxHashMap<ValueId, Want>,
    /// Results that the last segment has made as arrays.
    arrays: FxHashMap<ValueId, Array>,
    /// What was written so far, to be committed when the whole program has succeeded.
    written: Vec<Arc<dyn Sink>>,
    cancel: CancelToken,
    /// On a cluster, plans segments.
    placer: Option<Placer<'a>>,
    /// Where a later run finds what this one has done. Questions of the walk are answered through it, too.
    checkpoint: Option<RefCell<Checkpoint<'a>>>,
    pub(crate) totals: Totals,
}

impl<'a> Data<'a> {
    pub(crate) fn new(
        session: &'a Session,
        program: &'a Program,
        (inputs, targets): (&'a Inputs, &'a Targets),
        wants: &[Want],
        cancel: CancelToken,
        (placer, checkpoint): (Option<Placer<'a>>, Option<Checkpoint<'a>>),
    ) -> Data<'a> {
        let mut by_value: FxHashMap<ValueId, Want> = FxHashMap::default();
        for (&value, &want) in program.body.results.iter().zip(wants).filter(|(_, want)| **want != Want::Blocks) {
            // A result that is wanted twice is copied from its blocks for the second.
            let wanted_once = program.body.results.iter().filter(|&&result| result == value).count() == 1;
            let want = match want {
                Want::Array { on, .. } if !wanted_once => Want::Array { keep_up_to: u64::MAX, on },
                want => want,
            };
            by_value.insert(value, want);
        }
        Data {
            session,
            program,
            inputs,
            targets,
            wants: by_value,
            arrays: FxHashMap::default(),
            written: Vec::new(),
            cancel,
            placer,
            checkpoint: checkpoint.map(RefCell::new),
            totals: Totals::default(),
        }
    }

    /// Runs the program and commits its sinks. Results are in the order of its outputs.
    pub(crate) fn run(&mut self) -> Result<Vec<Computed>> {
        let tensors = walk(self.program, self)?;
        let mut results = Vec::with_capacity(tensors.len());
        for (value, tensor) in self.program.body.results.iter().zip(tensors) {
            let stored = tensor.map(|tensor| tensor.stored);
            let mut array = self.arrays.remove(value);
            if let (Some(stored), Some(Want::Array { on, .. }), true) =
                (&stored, self.wants.get(value), self.session.group().is_some())
            {
                array = self.session.array_of_ranks(stored, *on, &self.cancel)?;
            }
            if array.is_none() && stored.is_none() {
                return Err(Error::internal(format!("{value} has not been computed")));
            }
            results.push(Computed { array, stored, ..Computed::default() });
        }
        self.commit()?;
        if let Some(checkpoint) = self.checkpoint.take() {
            // Results that the run before has computed are in the checkpoint, which goes.
            for computed in &results {
                if let Some(stored) = &computed.stored {
                    stored.leave(self.session.spill_file())?;
                }
            }
            checkpoint.into_inner().finish()?;
        }
        Ok(results)
    }
}

impl Data<'_> {
    /// Gives files their names. With several ranks, rank 0 does when all have written their blocks, and all wait for that.
    fn commit(&mut self) -> Result<()> {
        let written: Vec<Arc<dyn Sink>> = self.written.drain(..).collect();
        let Some(group) = self.session.group().filter(|_| !written.is_empty()) else { return commit_all(written) };
        written.iter().try_for_each(|sink| sink.make_durable())?;
        group.agree(&Claim::reached("files are durable"), &self.cancel)?;
        if group.rank() == 0 {
            written.iter().try_for_each(|sink| sink.commit())?;
        }
        group.agree(&Claim::reached("files are committed"), &self.cancel)
    }

    /// What a result is for later segments. An input of the user that was only handed on may be loaded on any rank, so it is no tensor of this one.
    fn of_input(&self, shards: Option<&Sharded>, stored: Arc<TensorHandle>) -> Arc<TensorHandle> {
        let input = shards.filter(|_| self.session.group().is_some()).and_then(Sharded::input);
        let rank = self.session.rank();
        // What some rank holds stays there.
        match input.and_then(|name| self.inputs.get(name)).filter(|source| source.homes(rank).is_none()) {
            Some(source) => Arc::new(TensorHandle::of_source(stored.dtype(), stored.grid().clone(), source)),
            None => stored,
        }
    }

    /// The answer to a question that only data answers, from the checkpoint if a run before has asked it.
    fn answer(&self, ask: impl FnOnce() -> Result<Vec<u64>>) -> Result<Vec<u64>> {
        match &self.checkpoint {
            Some(checkpoint) => checkpoint.borrow_mut().answer(ask),
            None => ask(),
        }
    }
}

impl Domain for Data<'_> {
    type Value = Tensor;
    const KNOWS_ALL: bool = true;

    fn session(&self) -> &Session {
        self.session
    }

    fn most_turns(&self) -> usize {
        usize::MAX
    }

    fn ty(&self, value: &Tensor) -> TensorType {
        value.stored.ty()
    }

    fn input(&self, name: &str) -> Option<TensorType> {
        self.inputs.get(name).map(|source| source.ty())
    }

    fn mask_counts(&self, mask: &Tensor, pieces: Grid, _total: Option<u64>) -> Result<MaskCounts> {
        let counts = self.answer(|| {
            Ok(self.session.bring(&mask.stored, &self.cancel)?.mask_counts(pieces.clone())?.counts().to_vec())
        })?;
        MaskCounts::new(pieces, counts)
    }

    fn segment(&mut self, step: Step<'_, Tensor>, alive: Alive<'_, Tensor>) -> Result<Vec<Option<Tensor>>> {
        let mut before = match &self.checkpoint {
            Some(checkpoint) => checkpoint.borrow_mut().next_segment()?,
            None => Before::default(),
        };
        if let Some(results) = &before.results
            && !before.writes_files
        {
            return Ok(results.iter().map(|kept| kept.clone().map(Tensor::kept)).collect());
        }
        let remembered = self.checkpoint.as_ref().map(|checkpoint| checkpoint.borrow_mut().remembered(&mut before));
        // The copies of the operands stay until the results have copies, so that the segment can run again.
        let operands: Vec<Arc<Saved>> =
            step.inputs.iter().filter_map(|(_, tensor)| tensor.as_ref()?.saved.clone()).collect();
        let (placed, shards) = match &mut self.placer {
            None => (None, Vec::new()),
            Some(placer) => {
                let inputs = step
                    .inputs
                    .iter()
                    .map(|(name, tensor)| (name.as_str(), tensor.as_ref().and_then(|tensor| tensor.shards.as_ref())));
                let alive = alive.iter().filter_map(|tensor| tensor.shards.as_ref());
                let operands = Operands { inputs: inputs.collect(), alive: alive.collect() };
                let (segment, shards) = placer.segment(step.key.clone(), &operands, step.around)?;
                (Some(segment), shards)
            }
        };
        let bind = |(name, tensor): (String, Option<Tensor>)| {
            let input =
                tensor.map(|tensor| tensor.stored as Arc<dyn Source>).or_else(|| self.inputs.get(&name).cloned());
            let input = input.ok_or_else(|| Error::internal(format!("`{name}` has no data")))?;
            Ok((name, input))
        };
        let inputs = step.inputs.into_iter().map(bind).collect::<Result<_>>()?;
        let wants: Vec<Want> = match step.place {
            // What is saved are blocks.
            Place::Last if self.checkpoint.is_none() => {
                step.outputs.iter().map(|value| self.wants.get(value).copied().unwrap_or_default()).collect()
            }
            _ => Vec::new(),
        };
        let (targets, remembered) = (self.targets, remembered.as_ref());
        let segment =
            SegmentRun { key: step.key, placed, place: step.place, inputs, targets, wants: &wants, remembered };
        let outcome = self.session.run_segment(segment, &self.cancel, &mut self.totals)?;
        let writes_files = !outcome.sinks.is_empty();
        self.written.extend(outcome.sinks);
        if let Some(checkpoint) = &self.checkpoint {
            let mut checkpoint = checkpoint.borrow_mut();
            if let Some(results) = before.results {
                checkpoint.pin(operands);
                return Ok(results.into_iter().map(|kept| kept.map(Tensor::kept)).collect());
            }
            let stored: Vec<_> = outcome.results.into_iter().map(|computed| computed.stored).collect();
            let saved = checkpoint.end_segment(&stored, &outcome.kept, operands, writes_files)?;
            let tensor =
                |(stored, saved): (Option<Arc<TensorHandle>>, _)| Some(Tensor { stored: stored?, shards: None, saved });
            return Ok(stored.into_iter().zip(saved).map(tensor).collect());
        }
        let mut shards = shards.into_iter();
        let mut results = Vec::with_capacity(step.outputs.len());
        for (&value, Computed { stored, array, .. }) in step.outputs.iter().zip(outcome.results) {
            self.arrays.extend(array.map(|array| (value, array)));
            let shards = shards.next();
            let stored = stored.map(|stored| self.of_input(shards.as_ref(), stored));
            results.push(stored.map(|stored| Tensor { stored, shards, saved: None }));
        }
        Ok(results)
    }

    fn postpone(&mut self, _nodes: &[&Node], unknown: &Span, _around: &[Around<'_>]) -> Result<()> {
        Err(Error::internal("an extent or an operand is not known when it is needed").at(unknown))
    }

    fn resolve(&mut self, value: &Tensor, _at_most: Option<u64>) -> Result<Option<u64>> {
        let answer =
            self.answer(|| Ok(vec![self.session.bring(&value.stored, &self.cancel)?.item()?.as_i64() as u64]))?;
        let value = answer.first().map_or(-1, |&bits| bits as i64);
        let extent = u64::try_from(value).map_err(|_| Error::data(format!("an extent of {value}")))?;
        Ok(Some(extent))
    }

    fn decide(&mut self, condition: &Tensor) -> Result<Decision> {
        let answer = self
            .answer(|| Ok(vec![u64::from(self.session.bring(&condition.stored, &self.cancel)?.item()?.is_true())]))?;
        Ok(if answer == [1] { Decision::True } else { Decision::False })
    }

    fn cuts_branches_alike(&self) -> bool {
        self.placer.is_none()
    }

    fn begin_loop(&mut self, carried: Vec<Option<Tensor>>) -> Result<(usize, Vec<Option<Tensor>>)> {
        let before = match &self.checkpoint {
            Some(checkpoint) => checkpoint.borrow_mut().begin_loop()?,
            None => None,
        };
        Ok(match before {
            Some((turn, kept)) => (turn, kept.into_iter().map(|kept| kept.map(Tensor::kept)).collect()),
            None => (0, carried),
        })
    }

    fn end_turn(&mut self, turn: usize, carried: &[Option<Tensor>]) -> Result<()> {
        let Some(checkpoint) = &self.checkpoint else { return Ok(()) };
        let saved: Vec<_> = carried.iter().map(|tensor| tensor.as_ref()?.saved.clone()).collect();
        checkpoint.borrow_mut().end_turn(turn, &saved)
    }

    fn begin_turn(&mut self, _turn: usize) -> Result<()> {
        if self.cancel.is_cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    fn is_steady(&self, _before: &[Option<Tensor>], _after: &[Option<Tensor>], _alive: Alive<'_, Tensor>) -> bool {
        false
    }

    fn end_loop(&mut self) {
        if let Some(checkpoint) = &self.checkpoint {
            checkpoint.borrow_mut().end_loop();
        }
    }
}
