//! Finds inner loops over dense levels, which run with vectors. Three forms are known:
//!
//! * [`Lanes`]: each round computes one element of one array from elements at the same distance in others, and from what does not change.
//!   Rounds do not depend on each other, so two or four of them are one vector operation each.
//! * The same inside a loop over positions that adds to one row again and again (a product with a dense matrix). The loops change places
//!   for a block of columns, whose sums stay in registers: for each element the order of additions stays as it was.
//! * [`Dots`]: a loop over positions that computes one dot product each. Adding up one product in another order would change bits, so four
//!   products of neighbouring positions are computed at once, each in its own lane and in its own order.

use std::collections::{BTreeMap, HashMap, HashSet};

use tw_ir::{BinaryOp, DType, Scalar, UnaryOp};
use tw_sparse::loops::{ArrayId, ArrayType, LocalId, LoopExpr, LoopKernel, LoopStmt};

/// What one round computes.
#[derive(Clone, Debug)]
pub(super) enum Lane {
    /// The element that is written, as it was.
    Target,
    /// `array[base + k]` in round `k`.
    Load(ArrayId, LoopExpr),
    /// The same in every round.
    Splat(LoopExpr),
    Unary(UnaryOp, Box<Lane>),
    Binary(BinaryOp, Box<Lane>, Box<Lane>),
}

/// `target[base + k] = value` in round `k`.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    pub(super) target: ArrayId,
    pub(super) base: LoopExpr,
    pub(super) value: Lane,
    pub(super) dtype: DType,
}

impl Lanes {
    /// The factor and the row, if a multiple of one row of doubles is added to another.
    pub(super) fn scaled_row(&self) -> Option<(&LoopExpr, (ArrayId, &LoopExpr))> {
        let Lane::Binary(BinaryOp::Add, target, product) = &self.value else { return None };
        let (Lane::Target, Lane::Binary(BinaryOp::Mul, a, b), DType::F64) = (&**target, &**product, self.dtype) else {
            return None;
        };
        // The order of factors does not matter to their product.
        match (&**a, &**b) {
            (Lane::Splat(factor), Lane::Load(array, base)) | (Lane::Load(array, base), Lane::Splat(factor)) => {
                Some((factor, (*array, base)))
            }
            _ => None,
        }
    }
}

/// A loop over positions with a dot product in each round.
#[derive(Clone, Debug)]
pub(super) struct Dots<'a> {
    /// Statements before the product.
    pub(super) prefix: &'a [LoopStmt],
    /// Statements after it.
    pub(super) suffix: &'a [LoopStmt],
    /// The sum, and where it starts.
    pub(super) sum: LocalId,
    pub(super) start: f64,
    /// Bounds of the product.
    pub(super) from: &'a LoopExpr,
    pub(super) to: &'a LoopExpr,
    /// The factor that all rounds share, and the one of each round.
    pub(super) shared: (ArrayId, LoopExpr),
    pub(super) own: (ArrayId, LoopExpr),
}

/// A loop, without its keyword.
#[derive(Clone, Copy)]
pub(super) struct Loop<'a> {
    pub(super) local: LocalId,
    pub(super) from: &'a LoopExpr,
    pub(super) to: &'a LoopExpr,
    pub(super) body: &'a [LoopStmt],
}

/// Counts how often each local is named.
pub(super) fn count_mentions(stmt: &LoopStmt, mentions: &mut [usize]) {
    let mut name = |local: &LocalId| {
        if let Some(count) = mentions.get_mut(local.0 as usize) {
            *count += 1;
        }
    };
    match stmt {
        LoopStmt::Set(local, _) | LoopStmt::For(local, ..) => name(local),
        _ => {}
    }
    for expr in expressions(stmt) {
        visit(expr, &mut |expr| {
            if let LoopExpr::Local(local) = expr {
                name(local);
            }
        });
    }
    bodies(stmt).into_iter().flatten().for_each(|stmt| count_mentions(stmt, mentions));
}

/// Counts what a round of a loop pushes, on all of its ways together; `others` are arrays that inner loops push to, or whose length changes
/// otherwise.
pub(super) fn pushes(body: &[LoopStmt], counts: &mut BTreeMap<ArrayId, i64>, others: &mut HashSet<ArrayId>) {
    for stmt in body {
        match stmt {
            LoopStmt::Push(array, _) => *counts.entry(*array).or_default() += 1,
            LoopStmt::Resize(array, ..) => drop(others.insert(*array)),
            LoopStmt::If(_, yes, no) => {
                pushes(yes, counts, others);
                pushes(no, counts, others);
            }
            LoopStmt::For(.., inner) | LoopStmt::While(_, inner) => {
                let mut below = BTreeMap::new();
                pushes(inner, &mut below, others);
                others.extend(below.into_keys());
            }
            _ => {}
        }
    }
}

fn expressions(stmt: &LoopStmt) -> Vec<&LoopExpr> {
    match stmt {
        LoopStmt::Comment(_) | LoopStmt::Sort(..) => Vec::new(),
        LoopStmt::Set(_, a) | LoopStmt::Push(_, a) | LoopStmt::Resize(_, a, _) => vec![a],
        LoopStmt::While(a, _) | LoopStmt::If(a, ..) => vec![a],
        LoopStmt::Store(_, a, b) | LoopStmt::For(_, a, b, _) => vec![a, b],
    }
}

fn bodies(stmt: &LoopStmt) -> Vec<&[LoopStmt]> {
    match stmt {
        LoopStmt::For(.., body) | LoopStmt::While(_, body) => vec![body],
        LoopStmt::If(_, yes, no) => vec![yes, no],
        _ => Vec::new(),
    }
}

fn visit<'a>(expr: &'a LoopExpr, f: &mut impl FnMut(&'a LoopExpr)) {
    f(expr);
    expr.parts().into_iter().for_each(|part| visit(part, f));
}

fn any(expr: &LoopExpr, wanted: &mut impl FnMut(&LoopExpr) -> bool) -> bool {
    let mut found = false;
    visit(expr, &mut |expr| found |= wanted(expr));
    found
}

/// True if an expression names one of the locals.
fn names(expr: &LoopExpr, locals: &[LocalId]) -> bool {
    any(expr, &mut |expr| matches!(expr, LoopExpr::Local(local) if locals.contains(local)))
}

/// True if an expression reads the array.
fn reads(expr: &LoopExpr, array: ArrayId) -> bool {
    any(expr, &mut |expr| match expr {
        LoopExpr::Load(other, _) | LoopExpr::Len(other) | LoopExpr::Seek { array: other, .. } => *other == array,
        _ => false,
    })
}

/// True if an expression reads no memory, so that it may be computed where the kernel would not.
pub(super) fn is_pure(expr: &LoopExpr) -> bool {
    !any(expr, &mut |expr| matches!(expr, LoopExpr::Load(..) | LoopExpr::Seek { .. }))
}

fn replaced(expr: &LoopExpr, by: &HashMap<LocalId, LoopExpr>) -> LoopExpr {
    let part = |a: &LoopExpr| Box::new(replaced(a, by));
    match expr {
        LoopExpr::Local(local) => by.get(local).cloned().unwrap_or_else(|| expr.clone()),
        LoopExpr::Const(_) | LoopExpr::Len(_) => expr.clone(),
        LoopExpr::Load(array, a) => LoopExpr::Load(*array, part(a)),
        LoopExpr::Unary(op, a) => LoopExpr::Unary(*op, part(a)),
        LoopExpr::Cast(dtype, a) => LoopExpr::Cast(*dtype, part(a)),
        LoopExpr::Binary(op, a, b) => LoopExpr::Binary(*op, part(a), part(b)),
        LoopExpr::Both(a, b) => LoopExpr::Both(part(a), part(b)),
        LoopExpr::Select(a, b, c) => LoopExpr::Select(part(a), part(b), part(c)),
        LoopExpr::Seek { array, from, to, target } => {
            LoopExpr::Seek { array: *array, from: part(from), to: part(to), target: part(target) }
        }
    }
}

/// `base`, if an index is `base + k`.
fn base_of(index: &LoopExpr, k: LocalId) -> Option<LoopExpr> {
    match index {
        LoopExpr::Local(local) if *local == k => Some(LoopExpr::int(0)),
        LoopExpr::Binary(BinaryOp::Add, a, b) => match (names(a, &[k]), names(b, &[k])) {
            (true, false) => Some(base_of(a, k)?.plus((**b).clone())),
            (false, true) => Some((**a).clone().plus(base_of(b, k)?)),
            _ => None,
        },
        LoopExpr::Binary(BinaryOp::Sub, a, b) if !names(b, &[k]) => Some(base_of(a, k)?.minus((**b).clone())),
        _ => None,
    }
}

/// The assignments of a body, put into one another, and the statement after them if there is just one. No assignment uses what an earlier
/// round has left.
fn straight(body: &[LoopStmt]) -> Option<(HashMap<LocalId, LoopExpr>, &LoopStmt)> {
    let (mut known, all) = (HashMap::new(), set_by(body));
    let mut body = body.iter().filter(|stmt| !matches!(stmt, LoopStmt::Comment(_))).peekable();
    while let Some(stmt) = body.next() {
        match (stmt, body.peek()) {
            (last, None) => return Some((known, last)),
            (LoopStmt::Set(local, value), _) => {
                let value = replaced(value, &known);
                if names(&value, &all) {
                    return None;
                }
                known.insert(*local, value);
            }
            _ => return None,
        }
    }
    None
}

/// The loop as rounds that do not depend on each other.
pub(super) fn lanes(kernel: &LoopKernel, inner: Loop<'_>) -> Option<Lanes> {
    let (known, LoopStmt::Store(target, index, value)) = straight(inner.body)? else { return None };
    let ArrayType::Value(dtype @ (DType::F32 | DType::F64)) = kernel.arrays[target.0 as usize].kind else {
        return None;
    };
    let (index, value) = (replaced(index, &known), replaced(value, &known));
    let base = base_of(&index, inner.local)?;
    let set = set_by(inner.body);
    if reads(&base, *target) || names(&index, &set) || names(&value, &set) {
        return None;
    }
    let value = lane(kernel, &value, inner.local, (*target, &base), dtype)?;
    // A value that is the same everywhere is left to the scalar loop.
    let varies = !matches!(value, Lane::Splat(_));
    varies.then_some(Lanes { target: *target, base, value, dtype })
}

fn lane(kernel: &LoopKernel, expr: &LoopExpr, k: LocalId, target: (ArrayId, &LoopExpr), dtype: DType) -> Option<Lane> {
    if !names(expr, &[k]) {
        return (!reads(expr, target.0)).then(|| Lane::Splat(expr.clone()));
    }
    let part = |expr: &LoopExpr| lane(kernel, expr, k, target, dtype).map(Box::new);
    match expr {
        LoopExpr::Load(array, index) => {
            let base = base_of(index, k)?;
            match (*array == target.0, kernel.arrays[array.0 as usize].kind == ArrayType::Value(dtype)) {
                (true, _) => (base == *target.1).then_some(Lane::Target),
                (false, true) => (!reads(&base, target.0)).then_some(Lane::Load(*array, base)),
                (false, false) => None,
            }
        }
        LoopExpr::Unary(op @ (UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sqrt), a) => Some(Lane::Unary(*op, part(a)?)),
        LoopExpr::Binary(op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div), a, b) => {
            Some(Lane::Binary(*op, part(a)?, part(b)?))
        }
        _ => None,
    }
}

/// The locals that statements set.
pub(super) fn set_by(body: &[LoopStmt]) -> Vec<LocalId> {
    let mut found = Vec::new();
    for stmt in body {
        if let LoopStmt::Set(local, _) | LoopStmt::For(local, ..) = stmt {
            found.push(*local);
        }
        bodies(stmt).into_iter().for_each(|body| found.extend(set_by(body)));
    }
    found
}

/// True if assignments at the start of a round use only what is set before them in the round, so that a round may do them more than once.
fn repeatable(prefix: &[LoopStmt], body: &[LoopStmt], counter: LocalId) -> bool {
    let mut later: Vec<LocalId> = set_by(body).into_iter().filter(|local| *local != counter).collect();
    prefix.iter().all(|stmt| match stmt {
        LoopStmt::Comment(_) => true,
        LoopStmt::Set(local, value) => {
            let known = !names(value, &later);
            later.retain(|other| other != local);
            known
        }
        _ => false,
    })
}

/// True if no local that the loop sets is named outside it.
pub(super) fn keeps_to_itself(whole: Loop<'_>, mentions: &[usize]) -> bool {
    let mut own = vec![0; mentions.len()];
    let stmt = LoopStmt::For(whole.local, whole.from.clone(), whole.to.clone(), whole.body.to_vec());
    count_mentions(&stmt, &mut own);
    let bounds_name_it = names(whole.from, &[whole.local]) || names(whole.to, &[whole.local]);
    let mut locals = set_by(whole.body);
    locals.push(whole.local);
    !bounds_name_it && locals.iter().all(|local| own[local.0 as usize] == mentions[local.0 as usize])
}

/// A loop over positions around a loop of lanes that writes the same row in every round: the statements before the inner loop, the inner
/// loop, and its lanes with a base that the outer loop does not change.
pub(super) fn row_nest<'a>(kernel: &LoopKernel, outer: Loop<'a>) -> Option<(&'a [LoopStmt], Loop<'a>, Lanes)> {
    let (LoopStmt::For(local, from, to, body), prefix) = outer.body.split_last()? else { return None };
    let inner = Loop { local: *local, from, to, body };
    let mut lanes = lanes(kernel, inner)?;
    if !repeatable(prefix, outer.body, outer.local) {
        return None;
    }
    let (mut changing, mut known) = (vec![outer.local], HashMap::new());
    for stmt in prefix {
        match stmt {
            LoopStmt::Comment(_) => {}
            LoopStmt::Set(local, value) => {
                let value = replaced(value, &known);
                if reads(&value, lanes.target) {
                    return None;
                }
                match is_pure(&value) && !names(&value, &changing) {
                    true => drop(known.insert(*local, value)),
                    false => changing.push(*local),
                }
            }
            _ => return None,
        }
    }
    // What is computed before the loop is computed even if the loop has no rounds.
    lanes.base = replaced(&lanes.base, &known);
    let fixed = |expr: &LoopExpr| is_pure(expr) && !names(expr, &changing) && !known.keys().any(|k| names(expr, &[*k]));
    if !fixed(&lanes.base) || !fixed(from) || !fixed(to) {
        return None;
    }
    // A local that is set twice has no one value.
    let mut set = set_by(outer.body);
    set.sort_unstable();
    set.windows(2).all(|pair| pair[0] != pair[1]).then_some((prefix, inner, lanes))
}

/// A loop over positions with a dot product in each round, of a row that all rounds share with one of each round's own.
pub(super) fn dots<'a>(kernel: &LoopKernel, outer: Loop<'a>) -> Option<Dots<'a>> {
    let at = outer.body.iter().position(|stmt| matches!(stmt, LoopStmt::For(..)))?;
    let LoopStmt::For(k, from, to, body) = &outer.body[at] else { return None };
    let (before, suffix) = (&outer.body[..at], &outer.body[at + 1..]);
    if !repeatable(before, outer.body, outer.local) {
        return None;
    }
    let (known, LoopStmt::Set(sum, value)) = straight(body)? else { return None };
    let LoopExpr::Binary(BinaryOp::Add, a, b) = replaced(value, &known) else { return None };
    let (LoopExpr::Local(first), LoopExpr::Binary(BinaryOp::Mul, x, y)) = (*a, *b) else { return None };
    if first != *sum || kernel.locals[sum.0 as usize].dtype != DType::F64 {
        return None;
    }
    // The sum starts at a constant, and nothing else reads or sets it before the product.
    let starts = |stmt: &LoopStmt| matches!(stmt, LoopStmt::Set(local, _) if local == sum);
    let start = match before.iter().filter(|stmt| starts(stmt)).collect::<Vec<_>>().as_slice() {
        [LoopStmt::Set(_, LoopExpr::Const(Scalar::F64(start)))] => *start,
        _ => return None,
    };
    let mut changing = vec![outer.local];
    for stmt in before {
        match stmt {
            LoopStmt::Comment(_) => {}
            LoopStmt::Set(local, value) if !names(value, &[*sum]) => changing.push(*local),
            _ => return None,
        }
    }
    let mut stored = Vec::new();
    for stmt in suffix {
        match stmt {
            LoopStmt::Comment(_) | LoopStmt::Set(..) => {}
            LoopStmt::Store(array, ..) => stored.push(*array),
            _ => return None,
        }
    }
    let all = outer.body.iter().chain(body).flat_map(expressions);
    if all.clone().any(|expr| stored.iter().any(|array| reads(expr, *array))) {
        return None;
    }
    changing.extend(set_by(suffix));
    let factor = |expr: &LoopExpr| match expr {
        LoopExpr::Load(array, index) if kernel.arrays[array.0 as usize].kind == ArrayType::Value(DType::F64) => {
            base_of(index, *k).map(|base| (*array, base))
        }
        _ => None,
    };
    let (x, y) = (factor(&x)?, factor(&y)?);
    let fixed = |expr: &LoopExpr| is_pure(expr) && !names(expr, &changing) && !names(expr, &set_by(body));
    // A base that reads memory, or what the product itself sets, is left to the scalar loop.
    let (shared, own) = match (fixed(&x.1), fixed(&y.1)) {
        (true, _) => (x, y),
        (_, true) => (y, x),
        _ => return None,
    };
    let own_is_set_before = is_pure(&own.1) && !names(&own.1, &set_by(body));
    (own_is_set_before && fixed(from) && fixed(to)).then_some(Dots {
        prefix: before,
        suffix,
        sum: *sum,
        start,
        from,
        to,
        shared,
        own,
    })
}
