//! The segment loop: plan, run, resolve.
//!
//! Walks the control flow of a program. Straight-line nodes are collected until something needs a value now: a scalar to resolve, a condition, a
//! loop. Then they become a segment, which is planned (or found in the cache), run, and forgotten, except for what is still needed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tw_block::{Sink, Source};
use tw_ir::error::{Error, Result};
use tw_ir::program::{MaskCounts, Node, Op, Program, Region, TensorType, ValueId};
use tw_ir::{Array, Axis};
use tw_run::{CancelToken, TensorHandle};

use crate::bindings::Inputs;
use crate::report::Totals;
use crate::results::{Computed, Want};
use crate::segment::{SegmentBuilder, Surroundings, Taken, counted_mask};
use crate::session::{Place, Session};

pub(crate) struct Interpreter<'a> {
    session: &'a Session,
    program: &'a Program,
    inputs: &'a Inputs,
    computed: HashMap<ValueId, Arc<TensorHandle>>,
    /// How results of the program are wanted, other than as blocks.
    wants: HashMap<ValueId, Want>,
    /// Results that the last segment has made as arrays.
    arrays: HashMap<ValueId, Array>,
    extents: HashMap<ValueId, u64>,
    /// What was written so far, to be committed when the whole program has succeeded.
    written: Vec<Arc<dyn Sink>>,
    cancel: CancelToken,
    pub(crate) totals: Totals,
}

impl<'a> Interpreter<'a> {
    pub(crate) fn new(
        session: &'a Session,
        program: &'a Program,
        inputs: &'a Inputs,
        wants: &[Want],
        cancel: CancelToken,
    ) -> Interpreter<'a> {
        let mut by_value: HashMap<ValueId, Want> = HashMap::new();
        for (&value, &want) in program.body.results.iter().zip(wants).filter(|(_, want)| **want != Want::Blocks) {
            // A result that is wanted twice is copied from its blocks for the second.
            let wanted_once = program.body.results.iter().filter(|&&result| result == value).count() == 1;
            by_value.insert(value, if wanted_once { want } else { Want::Array { keep_up_to: u64::MAX } });
        }
        Interpreter {
            wants: by_value,
            arrays: HashMap::new(),
            session,
            program,
            inputs,
            computed: HashMap::new(),
            extents: HashMap::new(),
            written: Vec::new(),
            cancel,
            totals: Totals::default(),
        }
    }

    /// Runs the program and commits its files. Results are in the order of its outputs.
    pub(crate) fn run(&mut self) -> Result<Vec<Computed>> {
        let body = &self.program.body;
        let mine = self.nodes(body)?;
        let mut results = Vec::with_capacity(body.results.len());
        for value in &body.results {
            let array = self.arrays.remove(value);
            let computed = Computed { array, stored: self.computed.get(value).cloned(), ..Computed::default() };
            if computed.array.is_none() && computed.stored.is_none() {
                return Err(Error::internal(format!("{value} has not been computed")));
            }
            results.push(computed);
        }
        self.computed.retain(|value, _| !mine.contains(value));
        for sink in self.written.drain(..) {
            sink.commit()?;
        }
        Ok(results)
    }

    /// Runs a region whose parameters are already among the computed values.
    fn region(&mut self, region: &Region) -> Result<Vec<Arc<TensorHandle>>> {
        let mine = self.nodes(region)?;
        let results = region.results.iter().map(|&value| self.value(value)).collect::<Result<_>>()?;
        self.computed.retain(|value, _| !mine.contains(value));
        Ok(results)
    }

    /// Runs the nodes of a region until its results are among the computed values or arrays. Gives the values that belong to the region.
    fn nodes(&mut self, region: &Region) -> Result<HashSet<ValueId>> {
        let mut mine: HashSet<ValueId> = region.params.iter().copied().collect();
        let mut pending: Vec<&Node> = Vec::new();
        for (k, node) in region.nodes.iter().enumerate() {
            match &node.op {
                Op::Resolve | Op::While { .. } | Op::If { .. } => {
                    let needed = region.used_from(k);
                    self.flush(&mut pending, Place::Before, &needed, &mine)?;
                    self.control(region, k, node, &mine).map_err(|error| error.at(&node.span))?;
                }
                _ => {
                    let mask = counted_mask(self.program, self, node);
                    if mask.is_some_and(|mask| !self.computed.contains_key(&mask)) {
                        self.flush(&mut pending, Place::Before, &region.used_from(k), &mine)?;
                    }
                    pending.push(node);
                }
            }
            mine.extend(&node.results);
        }
        let needed = region.results.iter().copied().collect();
        let place = if std::ptr::eq(region, &self.program.body) { Place::Last } else { Place::Before };
        self.flush(&mut pending, place, &needed, &mine)?;
        Ok(mine)
    }

    /// Runs what is pending, keeps what is needed, drops what is not.
    fn flush(
        &mut self,
        pending: &mut Vec<&Node>,
        place: Place,
        needed: &HashSet<ValueId>,
        mine: &HashSet<ValueId>,
    ) -> Result<()> {
        if !pending.is_empty() {
            let mut builder = SegmentBuilder::new(self.program, self);
            let mut outputs = Vec::new();
            for node in pending.drain(..) {
                builder.node(node)?;
                outputs.extend(node.results.iter().copied().filter(|value| needed.contains(value)));
            }
            for &value in &outputs {
                builder.output(value)?;
            }
            let segment = builder.finish();
            let inputs = self.bind_inputs(segment.taken)?;
            // Parameters that only this segment reads are dropped with it, not at the end of the region.
            self.computed.retain(|value, _| needed.contains(value) || !mine.contains(value));
            let wants: Vec<Want> = match place {
                Place::Last => outputs.iter().map(|value| self.wants.get(value).copied().unwrap_or_default()).collect(),
                Place::Before => Vec::new(),
            };
            let outcome =
                self.session.run_segment(segment.key, place, inputs, &wants, &self.cancel, &mut self.totals)?;
            self.written.extend(outcome.sinks);
            for (value, Computed { stored, array, .. }) in outputs.into_iter().zip(outcome.results) {
                self.computed.extend(stored.map(|stored| (value, stored)));
                self.arrays.extend(array.map(|array| (value, array)));
            }
        } else {
            self.computed.retain(|value, _| needed.contains(value) || !mine.contains(value));
        }
        Ok(())
    }

    fn bind_inputs(&self, taken: Vec<(String, Taken)>) -> Result<Inputs> {
        let bind = |(name, taken): (String, Taken)| {
            let input = match taken {
                Taken::Input => self.inputs.get(&name).cloned(),
                Taken::Value(value) => Some(self.value(value)? as Arc<dyn Source>),
            };
            let input = input.ok_or_else(|| Error::internal(format!("`{name}` has no data")))?;
            Ok((name, input))
        };
        taken.into_iter().map(bind).collect()
    }

    fn control(&mut self, region: &Region, k: usize, node: &Node, mine: &HashSet<ValueId>) -> Result<()> {
        match &node.op {
            Op::Resolve => {
                let stored = self.value(node.args[0])?;
                let value = stored.item()?.as_i64();
                let extent = u64::try_from(value).map_err(|_| Error::data(format!("an extent of {value}")))?;
                self.extents.insert(node.results[0], extent);
                self.computed.insert(node.results[0], stored);
            }
            Op::While { condition, body } => {
                let mut carried: Vec<Arc<TensorHandle>> =
                    node.args.iter().map(|&value| self.value(value)).collect::<Result<_>>()?;
                // The initial values live on only if something else reads them.
                let mut needed = region.used_from(k + 1);
                node.op.regions().for_each(|region| region.add_uses(&mut needed));
                self.computed.retain(|value, _| needed.contains(value) || !mine.contains(value));
                loop {
                    if self.cancel.is_cancelled() {
                        return Err(Error::cancelled());
                    }
                    self.enter(condition, &carried);
                    let holds = self.region(condition)?;
                    if !holds[0].item()?.is_true() {
                        break;
                    }
                    self.enter(body, &carried);
                    carried.clear();
                    carried = self.region(body)?;
                }
                self.computed.extend(node.results.iter().copied().zip(carried));
            }
            Op::If { then, otherwise } => {
                let holds = self.value(node.args[0])?.item()?.is_true();
                let results = self.region(if holds { then } else { otherwise })?;
                self.computed.extend(node.results.iter().copied().zip(results));
            }
            _ => return Err(Error::internal("not a control operation")),
        }
        Ok(())
    }

    fn enter(&mut self, region: &Region, values: &[Arc<TensorHandle>]) {
        self.computed.extend(region.params.iter().copied().zip(values.iter().cloned()));
    }

    fn value(&self, value: ValueId) -> Result<Arc<TensorHandle>> {
        self.computed.get(&value).cloned().ok_or_else(|| Error::internal(format!("{value} has not been computed")))
    }
}

impl Surroundings for Interpreter<'_> {
    fn computed(&self, value: ValueId) -> Option<TensorType> {
        self.computed.get(&value).map(|stored| stored.ty())
    }

    fn bound(&self, name: &str) -> Option<TensorType> {
        self.inputs.get(name).map(|source| source.ty())
    }

    fn extent(&self, value: ValueId) -> Option<u64> {
        self.extents.get(&value).copied()
    }

    fn piece_elements(&self) -> u64 {
        self.session.piece_elements()
    }

    fn counts(&self, mask: ValueId, pieces: Vec<Axis>, _total: Option<u64>) -> Result<MaskCounts> {
        self.value(mask)?.mask_counts(pieces)
    }
}
