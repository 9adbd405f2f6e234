//! The control flow of a program, walked without data.
//!
//! This mirrors the interpreter: the same segments, in the same order, with the same values held between them. A loop is entered once, a branch on both
//! sides. The number of elements under a mask is taken to be all of them. What has any other extent that only data tells, or reads something that
//! has, is left for later.

use std::collections::{BTreeMap, HashMap, HashSet};

use tw_ir::error::Result;
use tw_ir::program::{MaskCounts, Node, Op, Program, Region, TensorType, ValueId};
use tw_ir::scalar::{BinaryOp, ScalarOp};
use tw_ir::span::Span;
use tw_ir::{DType, Extent, Grid};

use super::segment::{Flow, SegmentPlan, n_bytes};
use super::{Role, Section, SectionOutcome};
use crate::segment::{SegmentBuilder, Surroundings, Taken, counted_mask};
use crate::session::Session;

/// A value that would be in memory. Several names of one value share the number.
#[derive(Clone)]
struct Held {
    name: ValueName,
    /// As if masks selected everything.
    ty: TensorType,
}

/// A value between sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ValueName {
    /// Several names of one value share the number.
    pub(crate) number: u32,
    /// The place that a loop hands it on in, if one does: later rounds find there what the round before made.
    pub(crate) carried: Option<u32>,
}

pub(crate) struct Walk<'a> {
    session: &'a Session,
    program: &'a Program,
    held: HashMap<ValueId, Held>,
    /// Counts of elements under masks, as if all were.
    counts: HashMap<ValueId, u64>,
    next_number: u32,
    /// What each place of a loop has after the first round.
    pub(crate) repeats: HashMap<u32, ValueName>,
    n_branches: u32,
    /// What loops hand on while their conditions are computed, which may not need it.
    handed_on: Vec<Vec<Held>>,
    pub(crate) sections: Vec<Section>,
}

/// Where in the control flow a region stands.
#[derive(Clone)]
struct At {
    role: Role,
    span: Span,
    depth: usize,
    branches: Vec<(u32, bool)>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(session: &'a Session, program: &'a Program) -> Walk<'a> {
        Walk {
            session,
            program,
            held: HashMap::new(),
            counts: HashMap::new(),
            next_number: 0,
            repeats: HashMap::new(),
            n_branches: 0,
            handed_on: Vec::new(),
            sections: Vec::new(),
        }
    }

    /// Plans what can be planned.
    pub(crate) fn run(&mut self) -> Result<()> {
        let at = At { role: Role::Straight, span: Span::None, depth: 0, branches: Vec::new() };
        self.region(&self.program.body, &at)?;
        Ok(())
    }

    /// Walks a region whose parameters are among the held values. `None` stands for a result that only data tells.
    fn region(&mut self, region: &Region, at: &At) -> Result<Vec<Option<Held>>> {
        let mut mine: HashSet<ValueId> = region.params.iter().copied().collect();
        let mut pending: Vec<&Node> = Vec::new();
        for (k, node) in region.nodes.iter().enumerate() {
            match &node.op {
                Op::Resolve | Op::While { .. } | Op::If { .. } => {
                    let needed = region.used_from(k);
                    self.flush(&mut pending, &needed, &mine, at)?;
                    self.control(region, k, node, &mine, at).map_err(|error| error.at(&node.span))?;
                }
                _ => {
                    let mask = counted_mask(self.program, self, node);
                    if mask.is_some_and(|mask| !self.held.contains_key(&mask)) {
                        self.flush(&mut pending, &region.used_from(k), &mine, at)?;
                    }
                    pending.push(node);
                }
            }
            mine.extend(&node.results);
        }
        let needed = region.results.iter().copied().collect();
        self.flush(&mut pending, &needed, &mine, at)?;
        let results = region.results.iter().map(|value| self.held.get(value).cloned()).collect();
        self.held.retain(|value, _| !mine.contains(value));
        Ok(results)
    }

    fn flush(
        &mut self,
        pending: &mut Vec<&Node>,
        needed: &HashSet<ValueId>,
        mine: &HashSet<ValueId>,
        at: &At,
    ) -> Result<()> {
        let nodes = std::mem::take(pending);
        if nodes.is_empty() {
            self.held.retain(|value, _| needed.contains(value) || !mine.contains(value));
            return Ok(());
        }
        let selects_all = nodes.iter().any(|node| self.depends_on_counts(node));
        let section = |outcome| Section {
            role: at.role,
            span: at.span.clone(),
            depth: at.depth,
            branches: at.branches.clone(),
            selects_all,
            outcome,
        };
        if let Some(unknown) = self.first_unknown(&nodes) {
            let spans = nodes.iter().map(|node| node.span.clone()).collect();
            self.sections.push(section(SectionOutcome::Later { spans, unknown }));
            self.held.retain(|value, _| needed.contains(value) || !mine.contains(value));
            return Ok(());
        }
        let mut builder = SegmentBuilder::new(self.program, self);
        let mut outputs: Vec<ValueId> = Vec::new();
        for node in nodes {
            builder.node(node)?;
            outputs.extend(node.results.iter().copied().filter(|value| needed.contains(value)));
        }
        for &value in &outputs {
            builder.output(value)?;
        }
        let segment = builder.finish();
        let of_taken = |taken: &Taken| match taken {
            Taken::Value(value) => self.held.get(value),
            Taken::Input => None,
        };
        let taken = segment.taken.iter().filter_map(|(_, taken)| of_taken(taken));
        let kept = self.held.iter().filter(|(value, _)| needed.contains(value) || !mine.contains(value));
        // Two places of a loop that begin with one value have two from the second round on.
        let held = taken.chain(kept.map(|(_, held)| held)).chain(self.handed_on.iter().flatten());
        let alive: BTreeMap<ValueName, u64> = held.map(|held| (held.name, n_bytes(&held.ty))).collect();
        let held_bytes = alive.values().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
        let flow = Flow {
            takes: segment
                .taken
                .iter()
                .map(|(name, taken)| (name.clone(), of_taken(taken).map(|held| held.name)))
                .collect(),
            alive: alive.into_keys().collect(),
            makes: (0u32..).take(outputs.len()).map(|k| self.next_number + 1 + k).collect(),
        };
        let plan = SegmentPlan::new(self.session, segment, held_bytes, flow)?;
        self.held.retain(|value, _| needed.contains(value) || !mine.contains(value));
        for (value, ty) in outputs.into_iter().zip(plan.result_types()) {
            let held = self.new_held(ty);
            self.held.insert(value, held);
        }
        self.sections.push(section(SectionOutcome::Planned(Box::new(plan))));
        Ok(())
    }

    fn control(&mut self, region: &Region, k: usize, node: &Node, mine: &HashSet<ValueId>, at: &At) -> Result<()> {
        let inside = |role| At { role, span: node.span.clone(), depth: at.depth + 1, branches: at.branches.clone() };
        match &node.op {
            Op::While { condition, body } => {
                let mut carried: Vec<Option<Held>> = node.args.iter().map(|arg| self.held.get(arg).cloned()).collect();
                let mut needed = region.used_from(k + 1);
                node.op.regions().for_each(|region| region.add_uses(&mut needed));
                self.held.retain(|value, _| needed.contains(value) || !mine.contains(value));
                let before = self.sections.len();
                let mut first = true;
                loop {
                    for held in carried.iter_mut().flatten() {
                        self.next_number += 1;
                        held.name.carried = Some(self.next_number);
                    }
                    self.enter(condition, &carried);
                    self.handed_on.push(carried.iter().flatten().cloned().collect());
                    self.region(condition, &inside(Role::Condition))?;
                    self.handed_on.pop();
                    self.enter(body, &carried);
                    let next = self.region(body, &inside(Role::Body))?;
                    let steady = same_types(&carried, &next);
                    let repeated = |(before, next): (&Option<Held>, &Option<Held>)| {
                        Some((before.as_ref()?.name.carried?, next.as_ref()?.name))
                    };
                    self.repeats.extend(carried.iter().zip(&next).filter_map(repeated));
                    carried = next;
                    // Values may be cut differently after the first iteration; what is shown is what repeats.
                    if steady || !first {
                        break;
                    }
                    first = false;
                    self.sections.truncate(before);
                }
                self.bind(&node.results, carried);
            }
            Op::If { then, otherwise } => {
                self.n_branches += 1;
                let branch = |role, otherwise| {
                    let mut at = inside(role);
                    at.branches.push((self.n_branches, otherwise));
                    at
                };
                let (one, two) = (branch(Role::Then, false), branch(Role::Otherwise, true));
                let results = self.region(then, &one)?;
                self.region(otherwise, &two)?;
                self.bind(&node.results, results);
            }
            _ => {
                let value = self.held.get(&node.args[0]).cloned();
                self.bind(&node.results, vec![value]);
                if let Some(all) = largest_count(&region.nodes[..k], node.args[0]) {
                    self.counts.insert(node.results[0], all);
                }
            }
        }
        Ok(())
    }

    /// The first operation that cannot be planned: it has an extent that only data tells, or reads the result of one that has.
    fn first_unknown(&self, nodes: &[&Node]) -> Option<Span> {
        let made: HashSet<ValueId> = nodes.iter().flat_map(|node| node.results.iter().copied()).collect();
        let known = |extent: &Extent| extent.resolve(&|value| self.extent(value)).known().is_some();
        let unknown = nodes.iter().find(|node| {
            node.args.iter().any(|arg| !made.contains(arg) && !self.held.contains_key(arg))
                || !self.extents_of(node).iter().all(known)
        });
        unknown.map(|node| node.span.clone())
    }

    /// True if an operation has an extent that counts elements under a mask.
    fn depends_on_counts(&self, node: &Node) -> bool {
        let arguments = node.args.iter().flat_map(|&arg| &self.program.ty(arg).shape);
        self.extents_of(node).iter().chain(arguments).any(|extent| extent.known().is_none())
    }

    /// The extents that planning an operation needs to know.
    fn extents_of(&self, node: &Node) -> Vec<Extent> {
        let results = node.results.iter().flat_map(|&value| self.program.ty(value).shape.clone());
        let vars = match &node.op {
            Op::Index(stmt) => stmt.vars.iter().map(|var| var.extent).collect(),
            _ => Vec::new(),
        };
        results.chain(vars).collect()
    }

    fn enter(&mut self, region: &Region, values: &[Option<Held>]) {
        self.bind(&region.params, values.to_vec());
    }

    fn bind(&mut self, names: &[ValueId], values: Vec<Option<Held>>) {
        for (&name, value) in names.iter().zip(values) {
            match value {
                Some(held) => self.held.insert(name, held),
                None => self.held.remove(&name),
            };
        }
    }

    fn new_held(&mut self, ty: TensorType) -> Held {
        self.next_number += 1;
        Held { name: ValueName { number: self.next_number, carried: None }, ty }
    }
}

impl Surroundings for Walk<'_> {
    fn computed(&self, value: ValueId) -> Option<TensorType> {
        self.held.get(&value).map(|held| held.ty.clone())
    }

    /// Data that fits its declaration; a run checks whether it does.
    fn bound(&self, name: &str) -> Option<TensorType> {
        let (_, ty) = self.program.inputs().into_iter().find(|(input, _)| *input == name)?;
        Some(ty.clone())
    }

    fn extent(&self, value: ValueId) -> Option<u64> {
        self.counts.get(&value).copied()
    }

    fn piece_elements(&self) -> u64 {
        self.session.piece_elements()
    }

    /// A mask that nobody has computed holds equally often everywhere.
    fn counts(&self, mask: ValueId, pieces: Grid, total: Option<u64>) -> Result<MaskCounts> {
        let all = || self.held.get(&mask).and_then(|held| tw_ir::shape::n_elements(&held.ty.known_shape()?).ok());
        MaskCounts::even(pieces, total.or_else(all).unwrap_or(0))
    }
}

/// The most that a scalar can be if it counts where something holds: the number of places.
fn largest_count(nodes: &[Node], value: ValueId) -> Option<u64> {
    let node = nodes.iter().rev().find(|node| node.results.contains(&value))?;
    let Op::Index(stmt) = &node.op else { return None };
    let [body] = stmt.code.results()[stmt.has_guard as usize..] else { return None };
    let is_sum = stmt.accum.as_ref().is_some_and(|accum| accum.as_simple() == Some((BinaryOp::Add, DType::I64)));
    let counts = matches!(stmt.code.ops()[body.0 as usize],
        ScalarOp::Cast(DType::I64, from) if stmt.code.dtype(from) == DType::Bool);
    let points = stmt.vars.iter().try_fold(1u64, |n, var| n.checked_mul(var.extent.known()?));
    points.filter(|_| is_sum && counts)
}

fn same_types(a: &[Option<Held>], b: &[Option<Held>]) -> bool {
    let ty = |held: &Option<Held>| held.as_ref().map(|held| held.ty.clone());
    a.iter().map(ty).eq(b.iter().map(ty))
}
