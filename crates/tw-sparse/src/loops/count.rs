//! The first phase of an assembly in two phases: from a kernel, one that computes how long its outputs become.
//!
//! Outputs that are appended to become counters, and everything that serves values only goes. What remains walks the same coordinates and
//! merges them. The second phase is the kernel itself, with room for exactly so much: nothing is moved when arrays grow, and memory can be
//! asked for before.

use std::collections::HashSet;

use tw_ir::DType;

use super::{ArrayDecl, ArrayId, ArrayRole, ArrayType, LocalDecl, LocalId, LoopExpr, LoopKernel, LoopStmt};
use crate::width::IndexWidth;

/// What of a kernel is needed.
#[derive(Default)]
struct Needed {
    locals: HashSet<LocalId>,
    /// Arrays whose elements are needed, and those whose lengths are.
    elements: HashSet<ArrayId>,
    lengths: HashSet<ArrayId>,
}

/// A kernel with the parameters and inputs of another. Its one output holds the lengths that the outputs of the other have at the end, in
/// their order.
pub fn counting(kernel: &LoopKernel) -> LoopKernel {
    let outputs: Vec<ArrayId> = (0..kernel.arrays.len() as u32)
        .map(ArrayId)
        .filter(|array| kernel.arrays[array.0 as usize].role == ArrayRole::Output)
        .collect();
    let mut needed = Needed::default();
    needed.lengths.extend(&outputs);
    // What is needed only grows, so this ends.
    loop {
        let before = (needed.locals.len(), needed.elements.len(), needed.lengths.len());
        need_body(&kernel.body, &mut needed);
        if before == (needed.locals.len(), needed.elements.len(), needed.lengths.len()) {
            break;
        }
    }
    let mut counting = kernel.clone();
    // An array of which only the length is needed becomes a counter.
    let mut counters = vec![None; kernel.arrays.len()];
    for (k, array) in kernel.arrays.iter().enumerate() {
        let id = ArrayId(k as u32);
        if array.role != ArrayRole::Input && !needed.elements.contains(&id) {
            counters[k] = Some(LocalId(counting.locals.len() as u32));
            counting.locals.push(LocalDecl { name: fresh(&counting, &format!("n_{}", array.name)), dtype: DType::I64 });
        }
        if array.role == ArrayRole::Output {
            counting.arrays[k].role = ArrayRole::Workspace;
        }
    }
    let counts = ArrayId(counting.arrays.len() as u32);
    let name = fresh(&counting, "lengths");
    let kind = ArrayType::Index(IndexWidth::U64);
    counting.arrays.push(ArrayDecl { name, kind, role: ArrayRole::Output });
    let rewrite = Rewrite { needed: &needed, counters: &counters };
    counting.body = rewrite.body(&kernel.body);
    counting.body.extend(outputs.iter().map(|array| LoopStmt::Push(counts, rewrite.length(*array))));
    counting
}

fn fresh(kernel: &LoopKernel, wanted: &str) -> String {
    let taken = |name: &str| {
        kernel.locals.iter().any(|local| local.name == name) || kernel.arrays.iter().any(|array| array.name == name)
    };
    let mut names = (2..).map(|k| format!("{wanted}_{k}"));
    if taken(wanted) { names.find(|name| !taken(name)).unwrap_or_default() } else { wanted.to_string() }
}

fn need(expr: &LoopExpr, needed: &mut Needed) {
    match expr {
        LoopExpr::Local(local) => drop(needed.locals.insert(*local)),
        LoopExpr::Len(array) => drop(needed.lengths.insert(*array)),
        LoopExpr::Load(array, _) | LoopExpr::Seek { array, .. } => {
            needed.elements.insert(*array);
            needed.lengths.insert(*array);
        }
        _ => {}
    }
    expr.parts().into_iter().for_each(|part| need(part, needed));
}

/// Notes what the needed statements of a body need, and tells whether there are any.
fn need_body(body: &[LoopStmt], needed: &mut Needed) -> bool {
    let mut any = false;
    // Backwards: what a statement needs is mostly made before it.
    for stmt in body.iter().rev() {
        any |= match stmt {
            LoopStmt::Comment(_) => false,
            LoopStmt::Set(local, value) => {
                let is_needed = needed.locals.contains(local);
                if is_needed {
                    need(value, needed);
                }
                is_needed
            }
            LoopStmt::Store(array, index, value) => {
                let is_needed = needed.elements.contains(array);
                if is_needed {
                    need(index, needed);
                    need(value, needed);
                }
                is_needed
            }
            LoopStmt::Push(array, value) => {
                if needed.elements.contains(array) {
                    need(value, needed);
                }
                needed.lengths.contains(array)
            }
            LoopStmt::Resize(array, length, _) => {
                let is_needed = needed.lengths.contains(array);
                if is_needed {
                    need(length, needed);
                }
                is_needed
            }
            // The order of elements matters only to those who read them.
            LoopStmt::Sort(keys, values) => {
                let values_needed = values.is_some_and(|values| needed.elements.contains(&values));
                if values_needed {
                    needed.elements.insert(*keys);
                    needed.lengths.insert(*keys);
                }
                values_needed || needed.elements.contains(keys)
            }
            LoopStmt::For(local, from, to, inner) => {
                let is_needed = need_body(inner, needed) || needed.locals.contains(local);
                if is_needed {
                    need(from, needed);
                    need(to, needed);
                }
                is_needed
            }
            LoopStmt::While(condition, inner) => {
                let is_needed = need_body(inner, needed);
                if is_needed {
                    need(condition, needed);
                }
                is_needed
            }
            LoopStmt::If(condition, yes, no) => {
                let is_needed = need_body(yes, needed) | need_body(no, needed);
                if is_needed {
                    need(condition, needed);
                }
                is_needed
            }
        };
    }
    any
}

struct Rewrite<'a> {
    needed: &'a Needed,
    counters: &'a [Option<LocalId>],
}

impl Rewrite<'_> {
    fn length(&self, array: ArrayId) -> LoopExpr {
        match self.counters[array.0 as usize] {
            Some(counter) => LoopExpr::Local(counter),
            None => LoopExpr::Len(array),
        }
    }

    fn body(&self, body: &[LoopStmt]) -> Vec<LoopStmt> {
        body.iter().filter_map(|stmt| self.stmt(stmt)).collect()
    }

    fn stmt(&self, stmt: &LoopStmt) -> Option<LoopStmt> {
        let needed = self.needed;
        let counter = |array: &ArrayId| self.counters[array.0 as usize];
        Some(match stmt {
            LoopStmt::Comment(_) => return None,
            LoopStmt::Set(local, value) if needed.locals.contains(local) => LoopStmt::Set(*local, self.expr(value)),
            LoopStmt::Store(array, index, value) if needed.elements.contains(array) => {
                LoopStmt::Store(*array, self.expr(index), self.expr(value))
            }
            LoopStmt::Push(array, value) if needed.lengths.contains(array) => match counter(array) {
                Some(counter) => LoopStmt::Set(counter, LoopExpr::Local(counter).plus(LoopExpr::int(1))),
                None => LoopStmt::Push(*array, self.expr(value)),
            },
            LoopStmt::Resize(array, length, fill) if needed.lengths.contains(array) => match counter(array) {
                Some(counter) => LoopStmt::Set(counter, self.expr(length)),
                None => LoopStmt::Resize(*array, self.expr(length), *fill),
            },
            LoopStmt::Sort(keys, values) => {
                let values = values.filter(|values| needed.elements.contains(values));
                if values.is_none() && !needed.elements.contains(keys) {
                    return None;
                }
                LoopStmt::Sort(*keys, values)
            }
            LoopStmt::For(local, from, to, inner) => {
                let inner = self.body(inner);
                if inner.is_empty() && !needed.locals.contains(local) {
                    return None;
                }
                LoopStmt::For(*local, self.expr(from), self.expr(to), inner)
            }
            LoopStmt::While(condition, inner) => match self.body(inner) {
                inner if inner.is_empty() => return None,
                inner => LoopStmt::While(self.expr(condition), inner),
            },
            LoopStmt::If(condition, yes, no) => match (self.body(yes), self.body(no)) {
                (yes, no) if yes.is_empty() && no.is_empty() => return None,
                (yes, no) => LoopStmt::If(self.expr(condition), yes, no),
            },
            _ => return None,
        })
    }

    fn expr(&self, expr: &LoopExpr) -> LoopExpr {
        let part = |a: &LoopExpr| Box::new(self.expr(a));
        match expr {
            LoopExpr::Len(array) => self.length(*array),
            LoopExpr::Const(_) | LoopExpr::Local(_) => expr.clone(),
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
}
