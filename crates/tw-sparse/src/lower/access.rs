//! Where an access stands in its tensor: the levels that are known, and how the next ones are found.

use tw_ir::{DType, Scalar};

use super::{KernelOperand, Lowering, Scope};
use crate::expr::{AffineIndex, IndexStatement, IndexVariable, TensorAccess};
use crate::level::LevelKind;
use crate::loops::{LocalId, LoopExpr};

/// Positions of one level.
#[derive(Clone, Debug)]
pub(super) enum Position {
    One(LoopExpr),
    /// A run of equal coordinates.
    Run(LoopExpr, LoopExpr),
}

/// An access on its way down.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    pub(super) storage: usize,
    pub(super) levels: Vec<LevelKind>,
    /// The index of each level.
    pub(super) index: Vec<AffineIndex>,
    /// The next level.
    pub(super) level: usize,
    pub(super) at: Position,
    pub(super) fill: Scalar,
}

/// What an access does at the loop over a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// It is there at every coordinate.
    Everywhere,
    /// Its next level drives the loop or is merged into it; `then_checks` if further levels are looked up.
    Iterates { then_checks: bool },
    /// Its coordinate is looked up.
    Checks,
}

impl Cursor {
    pub(super) fn new(
        access: &TensorAccess,
        storage: usize,
        operand: &KernelOperand,
        statement: &IndexStatement,
    ) -> Cursor {
        Cursor {
            storage,
            levels: operand.format.levels().to_vec(),
            index: operand.format.order().iter().map(|&mode| access.index[mode].clone()).collect(),
            level: 0,
            at: Position::One(LoopExpr::int(0)),
            fill: statement.operands[operand.tensor].fill,
        }
    }

    fn is_known(&self, level: usize, scope: &Scope, var: Option<IndexVariable>) -> bool {
        let known = |other: &IndexVariable| Some(*other) == var || scope.bound.contains_key(other);
        self.index.get(level).is_some_and(|index| index.terms.iter().all(|(other, _)| known(other)))
    }

    /// What it does once `var` is bound beside those of the scope.
    pub(super) fn reach(&self, scope: &Scope, var: IndexVariable) -> Reach {
        let sparse: Vec<usize> = (self.level..self.levels.len())
            .take_while(|&l| self.is_known(l, scope, Some(var)))
            .filter(|&l| !self.levels[l].properties().full)
            .collect();
        let Some(&first) = sparse.first() else { return Reach::Everywhere };
        let level = self.levels[first];
        let index = &self.index[first];
        let iterable = level.capabilities().position_iteration && level.properties().ordered;
        let shiftable = index.offset == 0 || level.sorted_part().is_some();
        if first == self.level && index.as_shifted() == Some(var) && iterable && shiftable {
            Reach::Iterates { then_checks: sparse.len() > 1 }
        } else {
            Reach::Checks
        }
    }

    /// Positions as bounds of a run.
    pub(super) fn run(&self) -> (LoopExpr, LoopExpr) {
        match &self.at {
            Position::One(p) => (p.clone(), p.clone().plus(LoopExpr::int(1))),
            Position::Run(from, to) => (from.clone(), to.clone()),
        }
    }

    /// The single position, or the first of a run.
    pub(super) fn position(&self) -> LoopExpr {
        self.run().0
    }
}

impl Lowering<'_> {
    /// An index as code, once its variables are bound.
    pub(super) fn index(&self, index: &AffineIndex, scope: &Scope) -> LoopExpr {
        let terms = index.terms.iter().map(|(var, k)| scope.bound[var].clone().times(LoopExpr::int(*k)));
        terms.fold(LoopExpr::int(0), LoopExpr::plus).plus(LoopExpr::int(index.offset))
    }

    /// Moves down through full levels whose coordinates are known.
    pub(super) fn descend(&mut self, cursor: &Cursor, scope: &Scope) -> Cursor {
        let mut cursor = cursor.clone();
        while cursor.is_known(cursor.level, scope, None) && cursor.levels[cursor.level].properties().full {
            self.step_down(&mut cursor, scope);
        }
        cursor
    }

    fn step_down(&mut self, cursor: &mut Cursor, scope: &Scope) {
        let (level, place) = (cursor.levels[cursor.level], self.storages[cursor.storage].places[cursor.level].clone());
        let at = self.index(&cursor.index[cursor.level], scope);
        if let Some(located) = level.locate(&mut self.code, &place, cursor.position(), at) {
            let name = format!("p{}", self.name_of(cursor));
            cursor.at = Position::One(self.code.bind(&name, located.position));
        }
        cursor.level += 1;
    }

    pub(super) fn name_of(&self, cursor: &Cursor) -> String {
        self.statement.operands[self.order.operands[cursor.storage].tensor].name.clone()
    }

    /// Emits code that looks up every level whose coordinate is known and sets `flag` if all are there. Returns the access below them; its
    /// positions hold where the flag does.
    pub(super) fn check(&mut self, cursor: &Cursor, scope: &Scope, flag: LocalId) -> Cursor {
        let mut cursor = self.descend(cursor, scope);
        if !cursor.is_known(cursor.level, scope, None) {
            self.code.set(flag, LoopExpr::Const(Scalar::Bool(true)));
            return cursor;
        }
        let (l, level) = (cursor.level, cursor.levels[cursor.level]);
        let place = self.storages[cursor.storage].places[l].clone();
        let at = self.index(&cursor.index[l], scope);
        let at = self.code.bind("at", at);
        if level.capabilities().locate {
            self.code.begin();
            // What is computed from variables may leave the extent; what is stored cannot.
            let inside = match cursor.index[l].as_plain() {
                Some(_) => None,
                None => Some(at.clone().at_least(LoopExpr::int(0)).and(at.clone().less(place.extent.clone()))),
            };
            let mut below = cursor.clone();
            below.level += 1;
            if let Some(located) = level.locate(&mut self.code, &place, cursor.position(), at) {
                below.at = Position::One(located.position);
                self.code.begin();
                below = self.check(&below, scope, flag);
                let body = self.code.end();
                self.branch(located.found, body);
            }
            let body = self.code.end();
            self.branch(inside, body);
            return below;
        }
        let (from, to) = cursor.run();
        let (Some((from, to)), Some(part)) = (level.segment(&place, from, to), level.sorted_part()) else {
            return cursor;
        };
        let to = self.code.bind("end", to);
        let seek = |from: LoopExpr, target: LoopExpr, to: &LoopExpr| LoopExpr::Seek {
            array: place.arrays[part],
            from: Box::new(from),
            to: Box::new(to.clone()),
            target: Box::new(target),
        };
        let name = format!("p{}", self.name_of(&cursor));
        let q = LoopExpr::Local(self.code.variable(&name, seek(from, at.clone(), &to)));
        let found = q.clone().less(to.clone()).and(LoopExpr::load(place.arrays[part], q.clone()).equals(at.clone()));
        cursor.level += 1;
        self.code.begin();
        cursor.at = match level.properties().unique {
            true => Position::One(q),
            false => {
                let stop = self.code.variable("stop", seek(q.clone(), at.plus(LoopExpr::int(1)), &to));
                Position::Run(q, LoopExpr::Local(stop))
            }
        };
        let below = self.check(&cursor, scope, flag);
        let body = self.code.end();
        self.branch(Some(found), body);
        below
    }

    fn branch(&mut self, condition: Option<LoopExpr>, body: Vec<crate::loops::LoopStmt>) {
        match condition {
            Some(condition) => self.code.emit(crate::loops::LoopStmt::If(condition, body, Vec::new())),
            None => body.into_iter().for_each(|stmt| self.code.emit(stmt)),
        }
    }

    /// The value of an access below its last level; equal elements are added.
    pub(super) fn load_value(&mut self, cursor: &Cursor) -> Option<(LoopExpr, DType)> {
        if cursor.level < cursor.levels.len() {
            return None;
        }
        let (values, dtype) = (self.storages[cursor.storage].values, cursor.fill.dtype());
        let name = format!("v{}", self.name_of(cursor));
        let value = match &cursor.at {
            Position::One(p) => self.code.bind(&name, LoopExpr::load(values, p.clone())),
            Position::Run(from, to) => {
                let sum = self.code.variable(&name, LoopExpr::load(values, from.clone()));
                let p = self.code.declare("p", DType::I64);
                self.code.for_loop(p, from.clone().plus(LoopExpr::int(1)), to.clone(), |code| {
                    let next = LoopExpr::load(values, LoopExpr::Local(p));
                    code.set(sum, LoopExpr::binary(tw_ir::BinaryOp::Add, LoopExpr::Local(sum), next));
                });
                LoopExpr::Local(sum)
            }
        };
        Some((value, dtype))
    }
}
