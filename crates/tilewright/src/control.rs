//! The one walk over the control flow of a program.
//!
//! [`walk`] collects straight-line nodes until something needs a value now: a scalar to resolve, a mask to count, a condition, a loop. The collected
//! nodes become a [segment](segment), which a [`Domain`] turns into the values that later segments need. A domain says what a value is:
//!
//! | domain | a value is | a segment is | a condition |
//! |---|---|---|---|
//! | [`Data`](data::Data) | blocks | planned and run | is read |
//! | [`Types`](types::Types) | a type and the buffer it would occupy | planned | goes both ways |
//! | [`Placed`](placed::Placer) | a type and the workers that hold its shards | planned for a cluster | goes both ways |
//!
//! Liveness is decided here alone: a value is dropped before the last segment that reads it begins, unless that segment takes it. So what explain predicts
//! to be live is live in a run.
//!
//! Both branches of an `if` leave their results on one grid, that of `then`: `otherwise` retiles where it must. What follows an `if` is therefore planned
//! the same way whichever branch runs. Likewise a loop leaves its results on the grid that they have once its turns repeat: a loop that ends before, after no
//! turn or after a turn that changed the grid, retiles them.

use rustc_hash::{FxHashMap, FxHashSet};
use tw_ir::error::{Error, Result};
use tw_ir::program::{ExtentId, MaskCounts, Node, Op, Program, Region, TensorType, ValueId};
use tw_ir::scalar::{BinaryOp, ScalarOp};
use tw_ir::{DType, Extent, Grid, Span, Tiling};

use crate::session::Session;

pub(crate) mod collect;
pub(crate) mod data;
pub(crate) mod placed;
pub(crate) mod segment;
pub(crate) mod types;

use segment::{SegmentBuilder, SegmentKey, Surroundings, Taken, counted_mask};
use types::{Ahead, foresee};

/// What values are, and what becomes of segments. Methods with a default are those that only a run answers otherwise.
pub(crate) trait Domain {
    /// A value between segments.
    type Value: Clone;

    /// True if every extent and operand is known when a segment is made, so that nothing is postponed.
    const KNOWS_ALL: bool;

    /// The session whose options the program is planned with.
    fn session(&self) -> &Session;

    /// Turns of a loop that are walked at most where only data tells how often it runs.
    fn most_turns(&self) -> usize;

    /// The type of a value, with the tiling it has.
    fn ty(&self, value: &Self::Value) -> TensorType;

    /// The type of the data bound to an input, with its tiling if the data is cut already.
    fn input(&self, name: &str) -> Option<TensorType>;

    /// How many elements of each piece a computed mask selects, `total` in all if that has been resolved. Without data, equally many everywhere.
    fn mask_counts(&self, mask: &Self::Value, pieces: Grid, total: Option<u64>) -> Result<MaskCounts> {
        let all = || tw_ir::shape::n_elements(&self.ty(mask).known_shape()?).ok();
        MaskCounts::even(pieces, total.or_else(all).unwrap_or(0))
    }

    /// Computes a segment. Gives its outputs; nothing for those that no later segment can read.
    fn segment(
        &mut self,
        step: Step<'_, Self::Value>,
        alive: Alive<'_, Self::Value>,
    ) -> Result<Vec<Option<Self::Value>>>;

    /// Meets nodes that cannot be planned: `unknown` has an extent that only data tells, or reads the result of a node that has.
    fn postpone(&mut self, nodes: &[&Node], unknown: &Span, around: &[Around<'_>]) -> Result<()>;

    /// The value of a scalar, as an extent, if it is known. `at_most` bounds it.
    fn resolve(&mut self, value: &Self::Value, at_most: Option<u64>) -> Result<Option<u64>> {
        let _ = value;
        Ok(at_most)
    }

    /// Which way a condition goes.
    fn decide(&mut self, condition: &Self::Value) -> Result<Decision> {
        let _ = condition;
        Ok(Decision::Either)
    }

    /// True if both branches of an `if` leave their results on one grid, that of `then`.
    fn cuts_branches_alike(&self) -> bool;

    /// What stands for the result of an `if` that may go either way.
    fn join(&mut self, then: Self::Value, otherwise: Self::Value) -> Self::Value {
        let _ = otherwise;
        then
    }

    /// A loop begins. Gives the first turn to walk and what it begins with: turns that ended in a run before are not repeated.
    fn begin_loop(&mut self, carried: Vec<Option<Self::Value>>) -> Result<(usize, Vec<Option<Self::Value>>)> {
        Ok((0, carried))
    }

    /// A turn of a loop begins; 0 is the first.
    fn begin_turn(&mut self, turn: usize) -> Result<()>;

    /// A turn of the innermost loop has ended and leaves these values.
    fn end_turn(&mut self, turn: usize, carried: &[Option<Self::Value>]) -> Result<()> {
        let _ = (turn, carried);
        Ok(())
    }

    /// True if a turn that began with `before` and ended with `after` would be repeated exactly by the turns to come. `alive` is what is held around the loop.
    fn is_steady(
        &self,
        before: &[Option<Self::Value>],
        after: &[Option<Self::Value>],
        alive: Alive<'_, Self::Value>,
    ) -> bool;

    /// The innermost loop is over.
    fn end_loop(&mut self);
}

/// Which way a condition goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    True,
    False,
    /// Only data tells.
    Either,
}

/// Where in its program a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Other segments follow, and their sizes may depend on its results.
    Before,
    /// It is the last one.
    Last,
}

/// A segment with its inputs.
pub(crate) struct Step<'a, V> {
    pub(crate) key: SegmentKey,
    /// Its inputs by name: values of earlier segments, or nothing for inputs of the user.
    pub(crate) inputs: Vec<(String, Option<V>)>,
    /// The values it makes, in the order of its outputs.
    pub(crate) outputs: &'a [ValueId],
    /// True if an extent of one of its nodes had to be resolved.
    pub(crate) has_resolved_extents: bool,
    pub(crate) place: Place,
    pub(crate) around: &'a [Around<'a>],
}

/// The values that are alive beside those that a segment takes.
pub(crate) struct Alive<'a, V> {
    values: &'a FxHashMap<ValueId, V>,
    carried: &'a [Vec<Option<V>>],
}

impl<'a, V> Alive<'a, V> {
    /// All of them; a value that is known by several names comes several times.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a V> + use<'a, V> {
        self.values.values().chain(self.carried.iter().flatten().flatten())
    }
}

/// A loop or branch around a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around<'a> {
    pub(crate) role: Role,
    pub(crate) span: &'a Span,
    /// The number of the `if` or the loop; those inside it have higher ones.
    pub(crate) number: u32,
}

/// Where in the control flow a segment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Outside loops and branches.
    Straight,
    /// The condition of a loop.
    Condition,
    /// The body of a loop.
    Body,
    /// Taken if the condition holds.
    Then,
    /// Taken otherwise.
    Otherwise,
}

/// Walks a program. Gives its results; nothing for those that the domain did not keep or could not tell.
pub(crate) fn walk<D: Domain>(program: &Program, domain: &mut D) -> Result<Vec<Option<D::Value>>> {
    let mut walk = Walk::new(program, domain);
    walk.region(&program.body)
}

/// The state of the walk: which values there are.
struct Walk<'a, D: Domain> {
    program: &'a Program,
    domain: &'a mut D,
    values: FxHashMap<ValueId, D::Value>,
    /// Resolved scalars.
    extents: FxHashMap<ValueId, u64>,
    /// What loops carry while their conditions are computed, innermost last.
    carried: Vec<Vec<Option<D::Value>>>,
    around: Vec<Around<'a>>,
    /// The loops and branches that have been met, by their addresses: outer ones have lower numbers.
    numbers: FxHashMap<*const Node, u32>,
}

impl<'a, D: Domain> Walk<'a, D> {
    fn new(program: &'a Program, domain: &'a mut D) -> Walk<'a, D> {
        Walk {
            program,
            domain,
            values: FxHashMap::default(),
            extents: FxHashMap::default(),
            carried: Vec::new(),
            around: Vec::new(),
            numbers: FxHashMap::default(),
        }
    }

    /// Walks a region whose parameters are among the values. Gives its results and drops all other values that belong to it.
    fn region(&mut self, region: &'a Region) -> Result<Vec<Option<D::Value>>> {
        let mut mine: FxHashSet<ValueId> = region.params.iter().copied().collect();
        let mut pending: Vec<&Node> = Vec::new();
        for (k, node) in region.nodes.iter().enumerate() {
            match &node.op {
                Op::Resolve | Op::While { .. } | Op::If { .. } => {
                    self.flush(&mut pending, Place::Before, &region.used_from(k), &mine)?;
                    self.control(region, k, node, &mine).map_err(|error| error.at(&node.span))?;
                }
                _ => {
                    let mask = counted_mask(self.program, self, node);
                    if mask.is_some_and(|mask| !self.values.contains_key(&mask)) {
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
        let results = region.results.iter().map(|value| self.values.get(value).cloned()).collect();
        self.values.retain(|value, _| !mine.contains(value));
        self.extents.retain(|value, _| !mine.contains(value));
        Ok(results)
    }

    /// Makes a segment of the pending nodes, keeps the results that are needed, and drops the values of the region that are not.
    fn flush(
        &mut self,
        pending: &mut Vec<&Node>,
        place: Place,
        needed: &FxHashSet<ValueId>,
        mine: &FxHashSet<ValueId>,
    ) -> Result<()> {
        let nodes = std::mem::take(pending);
        if nodes.is_empty() {
            self.prune(needed, mine);
            return Ok(());
        }
        let unknown = if D::KNOWS_ALL { None } else { self.first_unknown(&nodes) };
        if let Some(unknown) = unknown {
            self.domain.postpone(&nodes, &unknown.span, &self.around)?;
            self.prune(needed, mine);
            return Ok(());
        }
        let mut builder = SegmentBuilder::new(self.program, self);
        let mut outputs: Vec<ValueId> = Vec::new();
        for node in &nodes {
            builder.node(node)?;
            outputs.extend(node.results.iter().copied().filter(|value| needed.contains(value)));
        }
        for &value in &outputs {
            builder.output(value)?;
        }
        let segment = builder.finish();
        let bind = |(name, taken): (String, Taken)| match taken {
            Taken::Input => Ok((name, None)),
            Taken::Value(value) => Ok((name, Some(self.value(value)?))),
        };
        let inputs = segment.taken.into_iter().map(bind).collect::<Result<_>>()?;
        let has_resolved_extents = !D::KNOWS_ALL && nodes.iter().any(|node| self.needs_resolved(node));
        // Values that only this segment reads live as long as the segment, not to the end of the region.
        self.prune(needed, mine);
        let step =
            Step { key: segment.key, inputs, outputs: &outputs, has_resolved_extents, place, around: &self.around };
        let alive = Alive { values: &self.values, carried: &self.carried };
        let results = self.domain.segment(step, alive)?;
        self.bind(&outputs, results);
        Ok(())
    }

    fn prune(&mut self, needed: &FxHashSet<ValueId>, mine: &FxHashSet<ValueId>) {
        self.values.retain(|value, _| needed.contains(value) || !mine.contains(value));
    }

    /// Drops the values of a region that neither the regions inside its node `k` nor the nodes after it read.
    fn prune_for(&mut self, region: &Region, k: usize, mine: &FxHashSet<ValueId>) {
        let mut needed = region.used_from(k + 1);
        region.nodes[k].op.regions().for_each(|inner| inner.add_uses(&mut needed));
        self.prune(&needed, mine);
    }

    fn control(&mut self, region: &'a Region, k: usize, node: &'a Node, mine: &FxHashSet<ValueId>) -> Result<()> {
        match &node.op {
            Op::Resolve => self.resolve(&region.nodes[..k], node),
            Op::While { condition, body } => {
                let carried = node.args.iter().map(|arg| self.values.get(arg).cloned()).collect();
                // The initial values live on only if something else reads them.
                self.prune_for(region, k, mine);
                let results = self.turns(carried, condition, body, node)?;
                self.domain.end_loop();
                self.bind(&node.results, results);
                Ok(())
            }
            Op::If { then, otherwise } => {
                let Some(condition) = self.values.get(&node.args[0]).cloned() else {
                    return self.postpone_regions(node);
                };
                let decision = self.domain.decide(&condition)?;
                drop(condition);
                self.prune_for(region, k, mine);
                let results = self.branch(decision, then, otherwise, node)?;
                self.bind(&node.results, results);
                Ok(())
            }
            _ => Err(Error::internal("not a control operation")),
        }
    }

    fn resolve(&mut self, before: &[Node], node: &Node) -> Result<()> {
        let value = self.values.get(&node.args[0]).cloned();
        if let Some(value) = &value {
            let at_most = largest_count(before, node.args[0], &|id| self.extent(id));
            let extent = self.domain.resolve(value, at_most)?;
            self.extents.remove(&node.results[0]);
            self.extents.extend(extent.map(|extent| (node.results[0], extent)));
        }
        self.bind(&node.results, vec![value]);
        Ok(())
    }

    /// The turns of a loop, until its condition does not hold. Where only data tells, until the turns to come repeat the last one.
    fn turns(
        &mut self,
        carried: Vec<Option<D::Value>>,
        condition: &'a Region,
        body: &'a Region,
        node: &'a Node,
    ) -> Result<Vec<Option<D::Value>>> {
        let [in_condition, in_body] = self.around(node, [Role::Condition, Role::Body]);
        let initial_types = self.types_of(&carried);
        let (first, mut carried) = self.domain.begin_loop(carried)?;
        // True once a turn has left the types that it began with; later turns do the same.
        let mut keeps_types = false;
        for turn in first.. {
            self.domain.begin_turn(turn)?;
            self.bind(&condition.params, carried.clone());
            self.carried.push(carried);
            let holds = self.inside(condition, in_condition)?;
            carried = self.carried.pop().unwrap_or_default();
            let decision = match holds.into_iter().next().flatten() {
                Some(holds) => self.domain.decide(&holds)?,
                None => Decision::Either,
            };
            if decision == Decision::False {
                if self.domain.cuts_branches_alike() && !keeps_types {
                    let wanted = foresee(self, Ahead::Loop { carried: initial_types, condition, body, node })?;
                    carried = self.cut_as(carried, &wanted, in_body)?;
                }
                break;
            }
            // A run must not hold what a turn began with; where nothing runs it is compared with what the turn leaves.
            let before = (decision == Decision::Either).then(|| carried.clone());
            let types_before = (!keeps_types).then(|| self.types_of(&carried));
            self.bind(&body.params, std::mem::take(&mut carried));
            carried = self.inside(body, in_body)?;
            self.domain.end_turn(turn, &carried)?;
            keeps_types |= types_before.is_some_and(|before| before == self.types_of(&carried));
            if let Some(before) = before {
                let alive = Alive { values: &self.values, carried: &self.carried };
                if self.domain.is_steady(&before, &carried, alive) || turn + 1 >= self.domain.most_turns() {
                    break;
                }
            }
        }
        Ok(carried)
    }

    fn branch(
        &mut self,
        decision: Decision,
        then: &'a Region,
        otherwise: &'a Region,
        node: &'a Node,
    ) -> Result<Vec<Option<D::Value>>> {
        let [in_then, in_otherwise] = self.around(node, [Role::Then, Role::Otherwise]);
        match decision {
            Decision::True => self.inside(then, in_then),
            Decision::False => {
                let wanted = match self.domain.cuts_branches_alike() {
                    true => foresee(self, Ahead::Branch(then))?,
                    false => Vec::new(),
                };
                let results = self.inside(otherwise, in_otherwise)?;
                self.cut_as(results, &wanted, in_otherwise)
            }
            Decision::Either => {
                let results = self.inside(then, in_then)?;
                let wanted = if self.domain.cuts_branches_alike() { self.types_of(&results) } else { Vec::new() };
                let others = self.inside(otherwise, in_otherwise)?;
                let others = self.cut_as(others, &wanted, in_otherwise)?;
                let join = |(then, otherwise)| match (then, otherwise) {
                    (Some(then), Some(otherwise)) => Some(self.domain.join(then, otherwise)),
                    (then, _) => then,
                };
                Ok(results.into_iter().zip(others).map(join).collect())
            }
        }
    }

    fn types_of(&self, values: &[Option<D::Value>]) -> Vec<Option<TensorType>> {
        values.iter().map(|value| Some(self.domain.ty(value.as_ref()?))).collect()
    }

    /// A loop or branch with the roles of its two regions.
    fn around(&mut self, node: &'a Node, roles: [Role; 2]) -> [Around<'a>; 2] {
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(std::ptr::from_ref(node)).or_insert(next);
        roles.map(|role| Around { role, span: &node.span, number })
    }

    fn inside(&mut self, region: &'a Region, around: Around<'a>) -> Result<Vec<Option<D::Value>>> {
        self.around.push(around);
        let results = self.region(region);
        self.around.pop();
        results
    }

    /// The results of a branch, cut as the other branch would cut them.
    fn cut_as(
        &mut self,
        results: Vec<Option<D::Value>>,
        wanted: &[Option<TensorType>],
        around: Around<'a>,
    ) -> Result<Vec<Option<D::Value>>> {
        let mut cut = results;
        for k in 0..cut.len() {
            let (Some(value), Some(Some(wanted))) = (&cut[k], wanted.get(k)) else { continue };
            let ty = self.domain.ty(value);
            let Some(tiling) = wanted.tiling.clone().filter(|tiling| Some(tiling) != ty.tiling.as_ref()) else {
                continue;
            };
            if ty.shape == wanted.shape {
                let value = cut[k].take();
                // The other results are alive meanwhile.
                self.carried.push(cut);
                self.around.push(around);
                let retiled = self.retile(value, &ty, tiling);
                self.around.pop();
                cut = self.carried.pop().unwrap_or_default();
                cut[k] = retiled?;
            }
        }
        Ok(cut)
    }

    fn retile(&mut self, value: Option<D::Value>, ty: &TensorType, tiling: Tiling) -> Result<Option<D::Value>> {
        const NAME: &str = "branch";
        let (key, output) = segment::retiling(NAME, ty, tiling, self.around.last().map(|around| around.span))?;
        let inputs = vec![(NAME.to_string(), value)];
        let (place, around) = (Place::Before, self.around.as_slice());
        let step = Step { key, inputs, outputs: &[output], has_resolved_extents: false, place, around };
        let alive = Alive { values: &self.values, carried: &self.carried };
        Ok(self.domain.segment(step, alive)?.pop().flatten())
    }

    /// A branch on a condition that cannot be planned.
    fn postpone_regions(&mut self, node: &Node) -> Result<()> {
        self.domain.postpone(&[node], &node.span, &self.around)?;
        self.bind(&node.results, vec![None; node.results.len()]);
        Ok(())
    }

    /// The first node that cannot be planned: it has an extent that only data tells, or reads the result of one that has.
    fn first_unknown<'n>(&self, nodes: &[&'n Node]) -> Option<&'n Node> {
        let mut made: FxHashSet<ValueId> = FxHashSet::default();
        for node in nodes {
            let is_there = |arg: &ValueId| made.contains(arg) || self.values.contains_key(arg);
            let is_known = |extent: &Extent| extent.resolve(&|id| self.extent(id)).known().is_some();
            if !node.args.iter().all(is_there) || !self.extents_of(node).all(is_known) {
                return Some(node);
            }
            made.extend(&node.results);
        }
        None
    }

    /// True if an extent of a node or of its operands is known only because it has been resolved.
    fn needs_resolved(&self, node: &Node) -> bool {
        let operands = node.args.iter().flat_map(|&arg| &self.program.ty(arg).shape);
        self.extents_of(node).chain(operands).any(|extent| extent.known().is_none())
    }

    /// The extents that planning a node needs to know.
    fn extents_of<'n>(&'n self, node: &'n Node) -> impl Iterator<Item = &'n Extent> {
        let vars = match &node.op {
            Op::Index(stmt) => stmt.vars.as_slice(),
            _ => &[],
        };
        let results = node.results.iter().flat_map(|&value| &self.program.ty(value).shape);
        results.chain(vars.iter().map(|var| &var.extent))
    }

    fn bind(&mut self, names: &[ValueId], values: Vec<Option<D::Value>>) {
        for (&name, value) in names.iter().zip(values) {
            match value {
                Some(value) => self.values.insert(name, value),
                None => self.values.remove(&name),
            };
        }
    }

    fn value(&self, value: ValueId) -> Result<D::Value> {
        self.values.get(&value).cloned().ok_or_else(|| Error::internal(format!("{value} has not been computed")))
    }
}

impl<D: Domain> Surroundings for Walk<'_, D> {
    fn computed(&self, value: ValueId) -> Option<TensorType> {
        self.values.get(&value).map(|value| self.domain.ty(value))
    }

    fn bound(&self, name: &str) -> Option<TensorType> {
        self.domain.input(name)
    }

    fn extent(&self, extent: ExtentId) -> Option<u64> {
        self.extents.get(&self.program.extents.get(extent)?.value).copied()
    }

    fn piece_elements(&self) -> u64 {
        self.domain.session().piece_elements()
    }

    fn counts(&self, mask: ValueId, pieces: Grid, total: Option<u64>) -> Result<MaskCounts> {
        self.domain.mask_counts(&self.value(mask)?, pieces, total)
    }
}

/// The most that a scalar can be if it counts where something holds: the number of places, or the most of them there can be. So bounds pass from a selection to
/// selections of it. They follow from the nodes, and are not stored beside the extents.
fn largest_count(nodes: &[Node], value: ValueId, known: &dyn Fn(ExtentId) -> Option<u64>) -> Option<u64> {
    let node = nodes.iter().rev().find(|node| node.results.contains(&value))?;
    let Op::Index(stmt) = &node.op else { return None };
    let [body] = stmt.code.results()[stmt.has_guard as usize..] else { return None };
    let is_sum = stmt.accum.as_ref().is_some_and(|accum| accum.as_simple() == Some((BinaryOp::Add, DType::I64)));
    let counts = matches!(stmt.code.ops()[body.0 as usize],
        ScalarOp::Cast(DType::I64, from) if stmt.code.dtype(from) == DType::Bool);
    let points = stmt.vars.iter().try_fold(1u64, |n, var| n.checked_mul(var.extent.resolve(known).known()?));
    points.filter(|_| is_sum && counts)
}
