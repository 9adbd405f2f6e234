//! Assembly of the output.
//!
//! Sparse levels are appended to: `crd` grows by one coordinate after another, and `pos` of a parent is the length of `crd` when its loop
//! ends. Parents without children append nothing where they need not. Parents that a loop never visits (a dense level above, filled from a
//! sparse operand) get their `pos` from the one before, in a pass at the end. Dense levels below are filled in beforehand.
//!
//! Where a reduction has a loop between those of the output, what lies below goes through a workspace: one value per coordinate and a list
//! of those touched if one level lies below, a list of coordinates that is sorted if there are more.
//!
//! Where every element of one operand, and no other, gives an element of the output, the output shares the operand's levels (sampled
//! products, contractions of the last mode): only values are computed, each at the operand's position.

use tw_ir::{BinaryOp, DType, Error, Result, Scalar};

use super::order::LoopOrder;
use super::{KernelOperand, Lowering, Scope, WorkspaceChoice};
use crate::algebra::{combine, same_value};
use crate::expr::{IndexExpr, IndexStatement, IndexVariable, Monoid};
use crate::level::LevelKind;
use crate::loops::{ArrayId, ArrayRole, ArrayType, Code, LoopExpr, LoopStmt};
use crate::width::IndexWidth;

/// The output while it is made.
#[derive(Clone, Debug)]
pub(super) struct Assembly {
    levels: Vec<OutputLevel>,
    values: ArrayId,
    fill: Scalar,
    init: Scalar,
    /// The number of loops that append in order before a workspace begins.
    pub(super) prefix: usize,
    /// The access whose levels the output shares.
    pattern: Option<usize>,
    /// The output is dense and its loops run in another order than it is stored: positions are computed at the innermost statement.
    by_index: bool,
    workspace: Option<Workspace>,
    /// Variables of the keys of a workspace.
    pub(super) keys: Vec<IndexVariable>,
    /// The position in each level, while its loop is open.
    positions: Vec<LoopExpr>,
}

#[derive(Clone, Debug)]
struct OutputLevel {
    kind: LevelKind,
    pos: Option<ArrayId>,
    crd: Option<ArrayId>,
    var: IndexVariable,
    extent: LoopExpr,
}

#[derive(Clone, Debug)]
enum Workspace {
    /// The output's own dense values.
    Values,
    /// A value per coordinate of the last level, whether it is touched, and which are.
    Dense { values: ArrayId, touched: ArrayId, list: ArrayId },
    /// Keys and values, sorted at the end.
    List { keys: ArrayId, values: ArrayId },
}

impl OutputLevel {
    fn is_full(&self) -> bool {
        self.kind.properties().full
    }
}

/// The access whose levels the output can share: all levels of the output are its first ones, its loops are the outer ones, and at each of
/// them it alone says where elements are.
pub(super) fn shared_pattern(statement: &IndexStatement, order: &LoopOrder, value: &IndexExpr) -> Option<usize> {
    use crate::lattice::Lattice;
    let format = &order.output;
    if order.scatter.is_some() || format.is_dense() || format.rank() == 0 {
        return None;
    }
    let stored: Vec<IndexVariable> = format.order().iter().map(|&mode| statement.indices[mode]).collect();
    if order.outer != stored {
        return None;
    }
    // Accesses in other formats than the operand's are conversions, whose levels are dropped after the kernel.
    value.accesses().into_iter().find_map(|(access, number)| {
        let operand: &KernelOperand = &order.operands[order.storage_of[&number]];
        let levels_agree = operand.format.width() == format.width()
            && operand.format.levels().starts_with(format.levels())
            && operand.format.rank() >= format.rank();
        let at = |l: usize| access.index[operand.format.order()[l]].as_plain();
        let unique =
            operand.format.levels().iter().all(|level| level.properties().unique && level.properties().compact);
        // Below the shared levels, a coordinate that the output's variables fix would be looked up at once: the position of the innermost
        // loop would be that of another level.
        let goes_on = operand
            .format
            .order()
            .get(format.rank())
            .is_none_or(|&mode| access.index[mode].terms.iter().any(|(var, _)| !stored.contains(var)));
        if !levels_agree || !unique || !goes_on || !(0..format.rank()).all(|l| at(l) == Some(stored[l])) {
            return None;
        }
        // Its absence alone makes the fill, and no other operand matters to where elements are.
        let absent = |other: usize| (other == number).then(|| statement.operands[access.tensor].fill);
        let lattice = Lattice::of(value, &absent);
        let points = lattice.points_for(Some(statement.output.fill), &|_| true);
        let alone = points.len() == 1 && !points[0].dense && points[0].present == [number].into();
        let others_dense = value
            .accesses()
            .into_iter()
            .all(|(other, k)| k == number || statement.operands[other.tensor].format.is_dense());
        (alone && others_dense).then_some(number)
    })
}

impl Assembly {
    pub(super) fn new(
        code: &mut Code,
        statement: &IndexStatement,
        order: &LoopOrder,
        extents: &[LoopExpr],
        pattern: Option<usize>,
        choice: WorkspaceChoice,
    ) -> Result<Assembly> {
        let name = &statement.output.name;
        let index = ArrayType::Index(order.output.width());
        let mut levels = Vec::new();
        for (l, kind) in order.output.levels().iter().enumerate() {
            let var = statement.indices[order.output.order()[l]];
            let mut part = |wanted: &str| {
                (pattern.is_none() && kind.parts().contains(&wanted))
                    .then(|| code.array(&format!("{name}{}_{wanted}", l + 1), index, ArrayRole::Output))
            };
            let (pos, crd) = (part("pos"), part("crd"));
            levels.push(OutputLevel { kind: *kind, pos, crd, var, extent: extents[var.0].clone() });
        }
        let fill = statement.output.fill;
        let values = code.array(name, ArrayType::Value(fill.dtype()), ArrayRole::Output);
        let in_order = order.outer.iter().zip(&levels).take_while(|(var, level)| **var == level.var).count();
        let (mut workspace, mut prefix, mut keys) = (None, usize::MAX, Vec::new());
        if order.scatter.is_some() {
            let dense_from = levels.iter().rposition(|level| !level.is_full()).map_or(0, |l| l + 1);
            prefix = in_order;
            workspace = Some(if dense_from <= in_order {
                prefix = dense_from;
                Workspace::Values
            } else if in_order + 1 == levels.len() && choice == WorkspaceChoice::Dense {
                Workspace::Dense {
                    values: code.array("w", ArrayType::Value(fill.dtype()), ArrayRole::Workspace),
                    touched: code.array("touched", ArrayType::Value(DType::Bool), ArrayRole::Workspace),
                    list: code.array("list", ArrayType::Index(IndexWidth::U64), ArrayRole::Workspace),
                }
            } else {
                keys = levels[in_order..].iter().map(|level| level.var).collect();
                Workspace::List {
                    keys: code.array("keys", ArrayType::Index(IndexWidth::U64), ArrayRole::Workspace),
                    values: code.array("w", ArrayType::Value(fill.dtype()), ArrayRole::Workspace),
                }
            });
        }
        let init = match (&workspace, &order.scatter) {
            (Some(Workspace::Values), Some(how)) => how.identity,
            _ => fill,
        };
        if let (Some(how), false) =
            (&order.scatter, same_value(init, order.scatter.as_ref().map_or(init, |how| how.identity)))
        {
            return Err(Error::plan(format!(
                "missing elements of the sparse result `{name}` are {fill}, those of its reduction {}",
                how.identity
            ))
            .help("give the result the fill value of the reduction, or make it dense"));
        }
        let by_index = levels.iter().all(OutputLevel::is_full) && in_order < levels.len();
        Ok(Assembly { levels, values, fill, init, prefix, pattern, by_index, workspace, keys, positions: Vec::new() })
    }

    /// The variable whose extent is the length of a workspace.
    pub(super) fn dense_workspace(&self) -> Option<IndexVariable> {
        match self.workspace {
            Some(Workspace::Dense { .. }) => self.levels.last().map(|level| level.var),
            _ => None,
        }
    }

    /// What a missing element of the output is.
    pub(super) fn omitted(&self) -> Scalar {
        self.init
    }

    fn first_append_from(&self, level: usize) -> Option<usize> {
        (level..self.levels.len()).find(|&l| !self.levels[l].is_full())
    }

    fn parent(&self, level: usize) -> LoopExpr {
        match level {
            0 => LoopExpr::int(0),
            level => self.positions[level - 1].clone(),
        }
    }

    /// The number of positions of dense levels below one position.
    fn tail(&self, level: usize) -> LoopExpr {
        self.levels[level..].iter().map(|level| level.extent.clone()).fold(LoopExpr::int(1), LoopExpr::times)
    }

    /// The number of positions above a level, once everything is appended.
    fn n_parents(&self, level: usize) -> LoopExpr {
        self.levels[..level].iter().fold(LoopExpr::int(1), |n, level| match level.crd {
            Some(crd) => LoopExpr::Len(crd),
            None => n.times(level.extent.clone()),
        })
    }
}

impl Lowering<'_> {
    /// Emits what comes before the loops.
    pub(super) fn begin_output(&mut self) {
        let Assembly { levels, values, init, .. } = self.assembly.clone();
        if let Some(number) = self.assembly.pattern {
            let shared = &self.storages[self.order.storage_of[&number]];
            let operand = &self.order.operands[self.order.storage_of[&number]];
            // One value per position of the last shared level.
            let mut n = LoopExpr::int(1);
            for (level, place) in operand.format.levels().iter().zip(&shared.places).take(levels.len()) {
                n = match level.parts().iter().position(|part| *part == "crd") {
                    Some(part) => LoopExpr::Len(place.arrays[part]),
                    None => n.times(place.extent.clone()),
                };
            }
            self.code.resize(values, n, init);
            return;
        }
        match self.assembly.first_append_from(0) {
            None => self.code.resize(values, self.assembly.tail(0), init),
            Some(first) => {
                if let Some(pos) = levels[first].pos {
                    let n = self.assembly.n_parents(first).plus(LoopExpr::int(1));
                    self.code.resize(pos, n, Scalar::I64(0));
                }
            }
        }
        if let Some(Workspace::Dense { values, touched, .. }) = self.assembly.workspace
            && let (Some(last), Some(how)) = (levels.last(), self.order.scatter.clone())
        {
            self.code.resize(values, last.extent.clone(), how.identity);
            self.code.resize(touched, last.extent.clone(), Scalar::Bool(false));
        }
    }

    /// Emits what comes after the loops.
    pub(super) fn finish_output(&mut self) {
        if self.assembly.pattern.is_some() {
            return;
        }
        let Assembly { levels, values, init, .. } = self.assembly.clone();
        let appended: Vec<usize> = (0..levels.len()).filter(|&l| levels[l].crd.is_some()).collect();
        for &l in &appended {
            let Some(pos) = levels[l].pos else { continue };
            if l == 0 {
                continue;
            }
            let n = self.assembly.n_parents(l);
            let n = self.code.bind("n", n);
            self.code.resize(pos, n.clone().plus(LoopExpr::int(1)), Scalar::I64(0));
            let p = self.code.declare("p", DType::I64);
            let at = |p: LoopExpr| LoopExpr::load(pos, p);
            let (here, next) = (LoopExpr::Local(p), LoopExpr::Local(p).plus(LoopExpr::int(1)));
            self.code.for_loop(p, LoopExpr::int(0), n, |code| {
                code.if_then(at(next.clone()).less(at(here.clone())), |code| {
                    code.store(pos, next.clone(), at(here.clone()));
                });
            });
        }
        if let Some(&last) = appended.last()
            && last + 1 < levels.len()
            && let Some(crd) = levels[last].crd
        {
            let n = LoopExpr::Len(crd).times(self.assembly.tail(last + 1));
            self.code.resize(values, n, init);
        }
    }

    /// Before the loop of a level.
    pub(super) fn enter_level(&mut self, level: usize) {
        self.assembly.positions.truncate(level);
        let appended_above = self.assembly.levels[..level].iter().any(|above| !above.is_full());
        if let (Some(pos), true) = (self.assembly.levels[level].pos, appended_above) {
            let n = self.assembly.parent(level).plus(LoopExpr::int(2));
            self.code.resize(pos, n, Scalar::I64(0));
        }
    }

    /// After the loop of a level.
    pub(super) fn exit_level(&mut self, level: usize) {
        if let OutputLevel { pos: Some(pos), crd: Some(crd), .. } = self.assembly.levels[level] {
            let next = self.assembly.parent(level).plus(LoopExpr::int(1));
            self.code.store(pos, next, LoopExpr::Len(crd));
        }
        self.assembly.positions.truncate(level);
    }

    /// At a coordinate of a level, before what lies below. The result tells whether anything is appended below.
    pub(super) fn begin_coordinate(&mut self, level: usize, at: LoopExpr, scope: &Scope) -> Option<LoopExpr> {
        self.assembly.positions.truncate(level);
        let name = format!("p{}", self.statement.output.name);
        if let Some(number) = self.assembly.pattern {
            let cursor = self.descend(&scope.cursors[&number].clone(), scope);
            self.assembly.positions.push(cursor.position());
            return None;
        }
        if self.assembly.by_index {
            return None;
        }
        let OutputLevel { crd, extent, .. } = self.assembly.levels[level].clone();
        let parent = self.assembly.parent(level);
        let below = self.assembly.first_append_from(level + 1);
        let position = match crd {
            None => parent.times(extent).plus(at),
            Some(crd) => LoopExpr::Len(crd),
        };
        let position = self.code.bind(&name, position);
        self.assembly.positions.push(position.clone());
        crd?;
        match below {
            Some(below) => {
                let crd = self.assembly.levels[below].crd?;
                Some(self.code.bind("begin", LoopExpr::Len(crd)))
            }
            None => {
                if level + 1 < self.assembly.levels.len() {
                    let n = position.plus(LoopExpr::int(1)).times(self.assembly.tail(level + 1));
                    self.code.resize(self.assembly.values, n, self.assembly.init);
                }
                None
            }
        }
    }

    /// At a coordinate of a level, after what lies below.
    pub(super) fn end_coordinate(&mut self, level: usize, at: LoopExpr, mark: Option<LoopExpr>) {
        let OutputLevel { crd: Some(crd), kind, .. } = self.assembly.levels[level].clone() else { return };
        let below = self.assembly.first_append_from(level + 1);
        match (below.and_then(|below| self.assembly.levels[below].crd), mark) {
            (Some(below), Some(begin)) if kind.properties().unique => {
                self.code.if_then(begin.less(LoopExpr::Len(below)), |code| code.push(crd, at));
            }
            (Some(below), Some(begin)) => {
                // A list of coordinates repeats this one for every element below.
                let q = self.code.declare("q", DType::I64);
                self.code.for_loop(q, begin, LoopExpr::Len(below), |code| code.push(crd, at));
            }
            _ => self.code.push(crd, at),
        }
    }

    /// Emits an element at the current position.
    pub(super) fn leave_element(&mut self, value: LoopExpr, scope: &Scope) {
        let Assembly { levels, values, pattern, by_index, .. } = self.assembly.clone();
        if let (Some(_), Some(position)) = (pattern, self.assembly.positions.last()) {
            return self.code.store(values, position.clone(), value);
        }
        if by_index {
            let position = levels.iter().fold(LoopExpr::int(0), |parent, level| {
                parent.times(level.extent.clone()).plus(scope.bound[&level.var].clone())
            });
            return self.code.store(values, position, value);
        }
        match levels.last() {
            Some(last) if last.crd.is_some() => self.code.push(values, value),
            _ => {
                let position = self.assembly.parent(levels.len());
                self.code.store(values, position, value);
            }
        }
    }

    /// Emits the start of a workspace below `_depth` levels.
    pub(super) fn begin_workspace(&mut self, depth: usize) {
        if !matches!(self.assembly.workspace, Some(Workspace::Values)) {
            self.enter_level(depth);
        }
        match self.assembly.workspace {
            Some(Workspace::Dense { list, .. }) => self.code.resize(list, LoopExpr::int(0), Scalar::I64(0)),
            Some(Workspace::List { keys, values }) => {
                self.code.resize(keys, LoopExpr::int(0), Scalar::I64(0));
                self.code.resize(values, LoopExpr::int(0), self.assembly.fill);
            }
            _ => {}
        }
    }

    /// Adds a value to the workspace, or to the dense values of the output.
    pub(super) fn scatter(&mut self, expr: IndexExpr, scope: &Scope, how: &Monoid) {
        let Assembly { levels, values, prefix, workspace, .. } = self.assembly.clone();
        let coordinate = |level: &OutputLevel| scope.bound[&level.var].clone();
        let dtype = self.assembly.fill.dtype();
        match workspace {
            None => {}
            Some(Workspace::Values) => {
                let position = levels[prefix..].iter().fold(self.assembly.parent(prefix), |parent, level| {
                    parent.times(level.extent.clone()).plus(coordinate(level))
                });
                let position = self.code.bind("p", position);
                let before = IndexExpr::Computed(LoopExpr::load(values, position.clone()), dtype);
                let sum = self.scalar(&combine(how, before, expr));
                self.code.store(values, position, sum);
            }
            Some(Workspace::Dense { values, touched, list }) => {
                let at = coordinate(&levels[prefix]);
                let fresh = LoopExpr::load(touched, at.clone()).equals(LoopExpr::Const(Scalar::Bool(false)));
                self.code.if_then(fresh, |code| {
                    code.store(touched, at.clone(), LoopExpr::Const(Scalar::Bool(true)));
                    code.push(list, at.clone());
                });
                let before = IndexExpr::Computed(LoopExpr::load(values, at.clone()), dtype);
                let sum = self.scalar(&combine(how, before, expr));
                self.code.store(values, at, sum);
            }
            Some(Workspace::List { keys, values }) => {
                let key = levels[prefix..]
                    .iter()
                    .fold(LoopExpr::int(0), |key, level| key.times(level.extent.clone()).plus(coordinate(level)));
                let value = self.scalar(&expr);
                self.code.push(keys, key);
                self.code.push(values, value);
            }
        }
    }

    /// Emits the move of a workspace into the output.
    pub(super) fn drain_workspace(&mut self, depth: usize, how: &Monoid) {
        match self.assembly.workspace.clone() {
            Some(Workspace::Dense { values, touched, list }) => {
                self.code.emit(LoopStmt::Sort(list, None));
                let q = self.code.declare("q", DType::I64);
                self.code.begin();
                let name = self.statement.variables[self.assembly.levels[depth].var.0].clone();
                let at = self.code.bind(&name, LoopExpr::load(list, LoopExpr::Local(q)));
                let mark = self.begin_coordinate(depth, at.clone(), &Scope::default());
                self.leave_element(LoopExpr::load(values, at.clone()), &Scope::default());
                self.end_coordinate(depth, at.clone(), mark);
                self.code.store(values, at.clone(), LoopExpr::Const(how.identity));
                self.code.store(touched, at, LoopExpr::Const(Scalar::Bool(false)));
                let body = self.code.end();
                self.code.emit(LoopStmt::For(q, LoopExpr::int(0), LoopExpr::Len(list), body));
                self.exit_level(depth);
            }
            Some(Workspace::List { keys, values }) => {
                self.code.emit(LoopStmt::Sort(keys, Some(values)));
                let q = LoopExpr::Local(self.code.variable("q", LoopExpr::int(0)));
                self.drain_level(depth, q, LoopExpr::Len(keys), (keys, values), how, LoopExpr::int(0));
                self.exit_level(depth);
            }
            _ => {}
        }
    }

    /// The sorted elements `q..end`, which agree in the levels above, appended to one level.
    fn drain_level(
        &mut self,
        level: usize,
        q: LoopExpr,
        end: LoopExpr,
        (keys, values): (ArrayId, ArrayId),
        how: &Monoid,
        above: LoopExpr,
    ) {
        let LoopExpr::Local(next) = q else { return };
        let stride = self.assembly.tail(level + 1);
        self.code.begin();
        let key = self.code.bind("key", LoopExpr::load(keys, q.clone()));
        let name = self.statement.variables[self.assembly.levels[level].var.0].clone();
        let start = above.clone();
        let at = LoopExpr::binary(BinaryOp::FloorDiv, key.clone().minus(start.clone()), stride.clone());
        let at = self.code.bind(&name, at);
        let mark = self.begin_coordinate(level, at.clone(), &Scope::default());
        if level + 1 == self.assembly.levels.len() {
            let dtype = self.assembly.fill.dtype();
            let sum = self.code.variable("t", LoopExpr::load(values, q.clone()));
            self.code.set(next, q.clone().plus(LoopExpr::int(1)));
            let same = q.clone().less(end.clone()).and(LoopExpr::load(keys, q.clone()).equals(key));
            self.code.begin();
            let before = IndexExpr::Computed(LoopExpr::Local(sum), dtype);
            let more = IndexExpr::Computed(LoopExpr::load(values, q.clone()), dtype);
            let value = self.scalar(&combine(how, before, more));
            self.code.set(sum, value);
            self.code.set(next, q.clone().plus(LoopExpr::int(1)));
            let body = self.code.end();
            self.code.emit(LoopStmt::While(same, body));
            self.leave_element(LoopExpr::Local(sum), &Scope::default());
        } else {
            let first = self.code.bind("first", start.plus(at.clone().times(stride.clone())));
            let limit = LoopExpr::Seek {
                array: keys,
                from: Box::new(q.clone()),
                to: Box::new(end.clone()),
                target: Box::new(first.clone().plus(stride)),
            };
            let limit = self.code.bind("limit", limit);
            self.enter_level(level + 1);
            self.drain_level(level + 1, q.clone(), limit, (keys, values), how, first);
            self.exit_level(level + 1);
        }
        self.end_coordinate(level, at, mark);
        let body = self.code.end();
        self.code.emit(LoopStmt::While(q.less(end), body));
    }
}
