//! The loops over the points of a lattice at one index variable.
//!
//! * Every coordinate counts: one `for` over the extent; sparse operands keep a position each, which moves on when its coordinate is met.
//! * One operand: a `for` over its positions.
//! * Several: a `while` per set of operands that can be left, larger sets first, as in TACO. Unlike in TACO, the next coordinate of each
//!   operand stays in a variable, and only an operand that has moved reads a new one. Reading all of them in every round costs 1.3 to 1.65
//!   times as much.
//! * An intersection moves the operands that are behind: by one, and if that is not enough, by a galloping search. A sparse operand thus
//!   skips through a fuller one in logarithmic time, and operands of similar size pay one comparison.

use std::collections::{BTreeMap, BTreeSet};

use tw_ir::{BinaryOp, DType, Scalar};

use super::access::{Cursor, Position, Reach};
use super::{Lowering, Scope, Sink};
use crate::algebra::simplify;
use crate::expr::{IndexExpr, IndexVariable};
use crate::lattice::{Lattice, LatticePoint};
use crate::level::{LevelKind, LevelPlace};
use crate::loops::{Code, LocalId, LoopExpr, LoopStmt};

/// A sparse access at a loop.
#[derive(Clone)]
struct Arm {
    number: usize,
    cursor: Cursor,
    iterator: Option<LevelIterator>,
    /// Set if the looked up levels are there.
    flag: Option<LocalId>,
}

#[derive(Clone)]
struct LevelIterator {
    name: String,
    level: LevelKind,
    place: LevelPlace,
    parent: LoopExpr,
    offset: i64,
    position: LocalId,
    end: LoopExpr,
    /// The coordinate at `position`, valid while that is before `end`.
    coordinate: LocalId,
    /// The end of the run of equal coordinates, where there are such.
    stop: Option<LocalId>,
}

impl LevelIterator {
    fn coordinate_at(&self, position: LoopExpr) -> LoopExpr {
        let coordinate = self.level.coordinate(&self.place, &self.parent, position);
        coordinate.unwrap_or_else(|| LoopExpr::int(0)).minus(LoopExpr::int(self.offset))
    }
    fn here(&self) -> LoopExpr {
        LoopExpr::Local(self.position)
    }
    fn going(&self) -> LoopExpr {
        self.here().less(self.end.clone())
    }
    fn reload(&self, code: &mut Code) {
        let coordinate = self.coordinate_at(self.here());
        code.if_then(self.going(), |code| code.set(self.coordinate, coordinate));
    }
    fn find_stop(&self, code: &mut Code) {
        if let Some(stop) = self.stop {
            code.set(stop, self.here().plus(LoopExpr::int(1)));
            let next = LoopExpr::Local(stop);
            let same = self.coordinate_at(next.clone()).equals(LoopExpr::Local(self.coordinate));
            code.while_loop(next.clone().less(self.end.clone()).and(same), |code| {
                code.set(stop, next.clone().plus(LoopExpr::int(1)));
            });
        }
    }
    /// The position after the current coordinate.
    fn after(&self) -> LoopExpr {
        match self.stop {
            Some(stop) => LoopExpr::Local(stop),
            None => self.here().plus(LoopExpr::int(1)),
        }
    }
    /// Moves to the first coordinate that is at least `target`.
    fn catch_up(&self, code: &mut Code, target: LoopExpr) {
        code.set(self.position, self.here().plus(LoopExpr::int(1)));
        let Some(part) = self.level.sorted_part() else { return self.reload(code) };
        let seek = LoopExpr::Seek {
            array: self.place.arrays[part],
            from: Box::new(self.here().plus(LoopExpr::int(1))),
            to: Box::new(self.end.clone()),
            target: Box::new(target.clone().plus(LoopExpr::int(self.offset))),
        };
        let coordinate = self.coordinate_at(self.here());
        code.if_then(self.going(), |code| {
            code.set(self.coordinate, coordinate);
            code.if_then(LoopExpr::Local(self.coordinate).less(target), |code| {
                code.set(self.position, seek);
                self.reload(code);
            });
        });
    }
}

impl Lowering<'_> {
    /// Emits the loops over one variable, with the rest of the nest inside.
    pub(super) fn loop_over(
        &mut self,
        var: IndexVariable,
        rest: &[IndexVariable],
        expr: IndexExpr,
        scope: Scope,
        sink: &Sink,
    ) {
        let reach = |number: usize| scope.cursors[&number].reach(&scope, var);
        let absent = |number: usize| (reach(number) != Reach::Everywhere).then(|| scope.cursors[&number].fill);
        let drives = |number: usize| matches!(reach(number), Reach::Iterates { .. });
        let omitted = self.omitted(sink);
        let points = Lattice::of(&expr, &absent).points_for(omitted, &drives);
        let sparse: BTreeSet<usize> =
            expr.accesses().into_iter().map(|(_, number)| number).filter(|&number| absent(number).is_some()).collect();
        let used: BTreeSet<usize> = points.iter().flat_map(|point| point.present.iter().copied()).collect();
        let mut arms: Vec<Arm> = Vec::new();
        for &number in &used {
            let cursor = scope.cursors[&number].clone();
            let reach = cursor.reach(&scope, var);
            let iterator = matches!(reach, Reach::Iterates { .. }).then(|| self.start_iterator(&cursor, var));
            let flag = matches!(reach, Reach::Checks | Reach::Iterates { then_checks: true })
                .then(|| self.code.declare("there", DType::Bool));
            arms.push(Arm { number, cursor, iterator, flag });
        }
        let nest = Nest { var, rest, expr: &expr, scope: &scope, sink, sparse: &sparse, points: &points };
        if points.iter().any(|point| point.dense) {
            return self.dense_loop(&nest, &arms);
        }
        let moved = |point: &LatticePoint| -> BTreeSet<usize> {
            point.present.iter().copied().filter(|&number| drives(number)).collect()
        };
        let mut sets: Vec<BTreeSet<usize>> = points.iter().map(moved).collect();
        sets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        sets.dedup();
        let n_sets = sets.len();
        for set in &sets {
            let here: Vec<Arm> =
                arms.iter().filter(|arm| arm.iterator.is_none() || set.contains(&arm.number)).cloned().collect();
            let points: Vec<LatticePoint> =
                points.iter().filter(|point| moved(point).is_subset(set)).cloned().collect();
            let nest = Nest { points: &points, ..nest };
            match set.len() {
                1 => self.single_loop(&nest, &here),
                _ => self.merged_loop(&nest, &here, points.iter().all(|point| moved(point) == *set), n_sets > 1),
            }
        }
    }

    fn start_iterator(&mut self, cursor: &Cursor, var: IndexVariable) -> LevelIterator {
        let place = self.storages[cursor.storage].places[cursor.level].clone();
        let level = cursor.levels[cursor.level];
        let (from, to) = cursor.run();
        let (mut from, mut to) = level.segment(&place, from, to).unwrap_or((LoopExpr::int(0), LoopExpr::int(0)));
        let offset = cursor.index[cursor.level].offset;
        let name = self.name_of(cursor);
        if let (true, Some(part)) = (offset != 0, level.sorted_part()) {
            let seek = |from: &LoopExpr, to: &LoopExpr, target: LoopExpr| LoopExpr::Seek {
                array: place.arrays[part],
                from: Box::new(from.clone()),
                to: Box::new(to.clone()),
                target: Box::new(target),
            };
            let end = self.code.bind("end", to);
            from = self.code.bind("begin", seek(&from, &end, LoopExpr::int(offset)));
            to = seek(&from, &end, self.extents[var.0].clone().plus(LoopExpr::int(offset)));
        }
        let position = self.code.variable(&format!("p{name}"), from);
        let end = self.code.bind(&format!("end{name}"), to);
        let coordinate = self.code.declare(&format!("i{name}"), DType::I64);
        let stop = (!level.properties().unique).then(|| self.code.declare(&format!("stop{name}"), DType::I64));
        let parent = cursor.position();
        LevelIterator { name, level, place, parent, offset, position, end, coordinate, stop }
    }

    /// One `for` over all coordinates.
    fn dense_loop(&mut self, nest: &Nest<'_>, arms: &[Arm]) {
        let i = self.code.declare(&self.statement.variables[nest.var.0], DType::I64);
        let moving: Vec<&LevelIterator> = arms.iter().filter_map(|arm| arm.iterator.as_ref()).collect();
        for iterator in &moving {
            // Past the end, no coordinate of the loop is met.
            self.code.set(iterator.coordinate, LoopExpr::int(-1));
            iterator.reload(&mut self.code);
        }
        self.code.begin();
        let at = LoopExpr::Local(i);
        self.cases(nest, arms, at.clone(), false);
        for iterator in moving {
            self.code.if_then(LoopExpr::Local(iterator.coordinate).equals(at.clone()), |code| {
                code.set(iterator.position, iterator.after());
                code.set(iterator.coordinate, LoopExpr::int(-1));
                iterator.reload(code);
            });
        }
        let body = self.code.end();
        self.code.emit(LoopStmt::For(i, LoopExpr::int(0), self.extents[nest.var.0].clone(), body));
    }

    /// One `for` over the positions of one operand; a `while` where its coordinates come in runs.
    fn single_loop(&mut self, nest: &Nest<'_>, arms: &[Arm]) {
        let Some(mut iterator) = arms.iter().find_map(|arm| arm.iterator.clone()) else { return };
        let name = self.statement.variables[nest.var.0].clone();
        if iterator.stop.is_some() {
            self.code.begin();
            self.code.set(iterator.coordinate, iterator.coordinate_at(iterator.here()));
            self.cases(nest, arms, LoopExpr::Local(iterator.coordinate), true);
            self.code.set(iterator.position, iterator.after());
            let body = self.code.end();
            self.code.emit(LoopStmt::While(iterator.going(), body));
            return;
        }
        let p = self.code.declare(&format!("p{}", iterator.name), DType::I64);
        let from = iterator.here();
        iterator.position = p;
        let mut arms = arms.to_vec();
        arms.iter_mut().filter(|arm| arm.iterator.is_some()).for_each(|arm| arm.iterator = Some(iterator.clone()));
        self.code.begin();
        let i = self.code.variable(&name, iterator.coordinate_at(iterator.here()));
        self.cases(nest, &arms, LoopExpr::Local(i), true);
        let body = self.code.end();
        self.code.emit(LoopStmt::For(p, from, iterator.end.clone(), body));
    }

    /// A `while` over the coordinates of several operands, none of which is at its end.
    fn merged_loop(&mut self, nest: &Nest<'_>, arms: &[Arm], is_intersection: bool, goes_on: bool) {
        let moving: Vec<LevelIterator> = arms.iter().filter_map(|arm| arm.iterator.clone()).collect();
        moving.iter().for_each(|iterator| iterator.reload(&mut self.code));
        let going = moving.iter().map(LevelIterator::going).reduce(LoopExpr::and);
        let coordinates = || moving.iter().map(|iterator| LoopExpr::Local(iterator.coordinate));
        self.code.begin();
        let name = self.statement.variables[nest.var.0].clone();
        // A loop that others follow must leave every operand where those go on: at the smallest coordinate that is left.
        let skips = is_intersection && !goes_on;
        let op = if skips { BinaryOp::Max } else { BinaryOp::Min };
        let at = coordinates().reduce(|a, b| LoopExpr::binary(op, a, b)).unwrap_or_else(|| LoopExpr::int(0));
        let i = LoopExpr::Local(self.code.variable(&name, at));
        if skips {
            let all = coordinates().map(|c| c.equals(i.clone())).reduce(LoopExpr::and);
            self.code.begin();
            self.cases(nest, arms, i.clone(), true);
            for iterator in &moving {
                self.code.set(iterator.position, iterator.after());
                iterator.reload(&mut self.code);
            }
            let met = self.code.end();
            self.code.begin();
            for iterator in &moving {
                let behind = LoopExpr::Local(iterator.coordinate).less(i.clone());
                self.code.if_then(behind, |code| iterator.catch_up(code, i.clone()));
            }
            let missed = self.code.end();
            self.code.emit(LoopStmt::If(all.unwrap_or(LoopExpr::Const(Scalar::Bool(true))), met, missed));
        } else {
            self.cases_and(nest, arms, i.clone(), false, true);
        }
        let body = self.code.end();
        self.code.emit(LoopStmt::While(going.unwrap_or(LoopExpr::Const(Scalar::Bool(false))), body));
    }

    /// The body at coordinate `at`: a branch per point, larger ones first. With `all_met`, every iterator stands at the coordinate.
    fn cases(&mut self, nest: &Nest<'_>, arms: &[Arm], at: LoopExpr, all_met: bool) {
        self.cases_and(nest, arms, at, all_met, false);
    }

    /// As [`Lowering::cases`]; with `moves`, the iterators that stand at the coordinate then move on.
    fn cases_and(&mut self, nest: &Nest<'_>, arms: &[Arm], at: LoopExpr, all_met: bool, moves: bool) {
        let mut scope = nest.scope.clone();
        scope.bound.insert(nest.var, at.clone());
        let mut conditions: Vec<(usize, Option<LoopExpr>)> = Vec::new();
        for arm in arms {
            let met = arm.iterator.as_ref().filter(|_| !all_met);
            let met = met.map(|iterator| LoopExpr::Local(iterator.coordinate).equals(at.clone()));
            let mut below = arm.cursor.clone();
            if let Some(iterator) = &arm.iterator {
                let (code, iterator) = (&mut self.code, iterator.clone());
                match &met {
                    Some(met) if iterator.stop.is_some() => {
                        code.if_then(met.clone(), |code| iterator.find_stop(code));
                    }
                    _ => iterator.find_stop(code),
                }
                below.level += 1;
                below.at = match iterator.stop {
                    Some(stop) => Position::Run(iterator.here(), LoopExpr::Local(stop)),
                    None => Position::One(iterator.here()),
                };
            }
            let condition = match arm.flag {
                None => met,
                Some(flag) => {
                    self.code.set(flag, LoopExpr::Const(Scalar::Bool(false)));
                    self.code.begin();
                    below = self.check(&below, &scope, flag);
                    let body = self.code.end();
                    match met {
                        Some(met) => self.code.emit(LoopStmt::If(met, body, Vec::new())),
                        None => body.into_iter().for_each(|stmt| self.code.emit(stmt)),
                    }
                    Some(LoopExpr::Local(flag))
                }
            };
            conditions.push((arm.number, condition));
            scope.cursors.insert(arm.number, below);
        }
        let choice = Choice { scope: &scope, conditions: &conditions, arms: if moves { arms } else { &[] }, at: &at };
        let most = 2 * nest.points.len() + 2;
        match choice.leaves(nest, &mut BTreeMap::new(), most) {
            0 => {
                self.case(nest, &scope, &conditions, 0);
                self.move_on(&choice, &BTreeMap::new());
            }
            _ => self.decide(nest, &choice, &mut BTreeMap::new()),
        }
    }

    /// Tests each condition at most once on every way. A chain of conditions, one per point, tests some of them again and again, and a
    /// processor cannot foresee any of these branches.
    fn decide(&mut self, nest: &Nest<'_>, choice: &Choice<'_>, known: &mut BTreeMap<usize, bool>) {
        let Some((point, next)) = choice.next(nest, known) else { return self.move_on(choice, known) };
        let Some((number, condition)) = next else {
            self.point_body(nest, choice.scope, point);
            return self.move_on(choice, known);
        };
        let branches = [true, false].map(|present| {
            self.code.begin();
            known.insert(number, present);
            self.decide(nest, choice, known);
            self.code.end()
        });
        known.remove(&number);
        let [yes, no] = branches;
        if !(yes.is_empty() && no.is_empty()) {
            self.code.emit(LoopStmt::If(condition.clone(), yes, no));
        }
    }

    /// Moves the iterators on that stand at the coordinate. Those whose flag is a condition may stand there although it is not set.
    fn move_on(&mut self, choice: &Choice<'_>, known: &BTreeMap<usize, bool>) {
        for arm in choice.arms {
            let Some(iterator) = &arm.iterator else { continue };
            let step = |code: &mut Code| {
                code.set(iterator.position, iterator.after());
                iterator.reload(code);
            };
            match known.get(&arm.number).filter(|_| arm.flag.is_none()) {
                Some(true) => step(&mut self.code),
                Some(false) => {}
                None => {
                    let met = LoopExpr::Local(iterator.coordinate).equals(choice.at.clone());
                    self.code.if_then(met, step);
                }
            }
        }
    }

    fn point_body(&mut self, nest: &Nest<'_>, scope: &Scope, point: &LatticePoint) {
        let expr = without_absent(nest.expr.clone(), &|number| {
            (nest.sparse.contains(&number) && !point.present.contains(&number))
                .then(|| nest.scope.cursors[&number].fill)
        });
        self.inside(nest.var, nest.rest, simplify(expr), scope.clone(), nest.sink);
    }

    fn case(&mut self, nest: &Nest<'_>, scope: &Scope, conditions: &[(usize, Option<LoopExpr>)], k: usize) {
        let Some(point) = nest.points.get(k) else { return };
        let needed = conditions.iter().filter(|(number, _)| point.present.contains(number));
        let condition = needed.filter_map(|(_, condition)| condition.clone()).reduce(LoopExpr::and);
        self.code.begin();
        self.point_body(nest, scope, point);
        let yes = self.code.end();
        let Some(condition) = condition else {
            yes.into_iter().for_each(|stmt| self.code.emit(stmt));
            return;
        };
        self.code.begin();
        self.case(nest, scope, conditions, k + 1);
        let no = self.code.end();
        if !(yes.is_empty() && no.is_empty()) {
            self.code.emit(LoopStmt::If(condition, yes, no));
        }
    }
}

/// What all loops over one variable share.
#[derive(Clone, Copy)]
struct Nest<'a> {
    var: IndexVariable,
    rest: &'a [IndexVariable],
    expr: &'a IndexExpr,
    scope: &'a Scope,
    sink: &'a Sink,
    sparse: &'a BTreeSet<usize>,
    points: &'a [LatticePoint],
}

/// The choice among points at one coordinate.
struct Choice<'a> {
    scope: &'a Scope,
    conditions: &'a [(usize, Option<LoopExpr>)],
    /// Those that move on afterwards.
    arms: &'a [Arm],
    at: &'a LoopExpr,
}

/// A point, and the condition that must be tested before it is certain.
type Candidate<'a> = (&'a LatticePoint, Option<(usize, &'a LoopExpr)>);

impl<'a> Choice<'a> {
    /// The first point that is possible.
    fn next(&self, nest: &Nest<'a>, known: &BTreeMap<usize, bool>) -> Option<Candidate<'a>> {
        let possible = |point: &&LatticePoint| !point.present.iter().any(|number| known.get(number) == Some(&false));
        let point = nest.points.iter().find(possible)?;
        let next = self.conditions.iter().find_map(|(number, condition)| {
            let open = point.present.contains(number) && !known.contains_key(number);
            condition.as_ref().filter(|_| open).map(|condition| (*number, condition))
        });
        Some((point, next))
    }

    /// The number of ways, or 0 if there are more than `most`.
    fn leaves(&self, nest: &Nest<'a>, known: &mut BTreeMap<usize, bool>, most: usize) -> usize {
        let Some((_, Some((number, _)))) = self.next(nest, known) else { return 1 };
        let mut n = 0;
        for present in [true, false] {
            known.insert(number, present);
            let more = self.leaves(nest, known, most.saturating_sub(n));
            if more == 0 || n + more > most {
                n = 0;
                break;
            }
            n += more;
        }
        known.remove(&number);
        n
    }
}

/// The expression with absent accesses replaced by their fill values.
fn without_absent(expr: IndexExpr, absent: &dyn Fn(usize) -> Option<Scalar>) -> IndexExpr {
    match expr {
        IndexExpr::Access(access, number) => match absent(number) {
            Some(fill) => IndexExpr::Constant(fill),
            None => IndexExpr::Access(access, number),
        },
        other => other.map_parts(&mut |part| without_absent(part, absent)),
    }
}
