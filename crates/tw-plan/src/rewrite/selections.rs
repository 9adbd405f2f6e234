//! Selections that no statement needs as arrays: a reduction of `x[mask]`, or `x[mask] = f(x[mask])`, tests the mask in place.
//!
//! ```text
//! sum(compact(mask, f(x)))             a guarded sum over x, where the mask holds
//! expand(mask, f(compact(mask, x)), y) select(mask, f(x), y)
//! ```
//!
//! So nothing is counted or moved. Elementwise statements in between then run over all elements, not only the selected ones; if they do
//! more than a little arithmetic, the selection stays. It also stays if another statement reads it.
//!
//! This pass sees whole programs, before they are cut into segments: a removed selection needs no count, and a count without readers does not end a segment.

use std::collections::{HashMap, HashSet};

use tw_ir::error::Result;
use tw_ir::index::{Access, Edge, Idx, Var};
use tw_ir::program::{IndexStmt, IndexVar, Node, Op, Output, Program, Region, TensorType, ValueId};
use tw_ir::scalar::{BinaryOp, ScalarCode};
use tw_ir::{DType, Extent, Slot};

use crate::cost::op_weight;
use crate::options::PlanOptions;

/// Up to this work per element, in additions, a statement runs over all elements instead of the selected ones.
const MOST_WORK: u32 = 8;

/// The program without unneeded selections, or `None` if there are none.
pub fn run(program: &Program, options: &PlanOptions) -> Result<Option<Program>> {
    let selects = |node: &Node| matches!(node.op, Op::Compact { .. });
    if options.leaves_out(super::SELECTIONS) || !program.body.nodes.iter().any(selects) {
        return Ok(None);
    }
    let mut dissolved = program.clone();
    let mut body = std::mem::take(&mut dissolved.body);
    let changed = Selections::of(&dissolved, &body).dissolve(&mut dissolved, &mut body)?;
    if changed {
        while remove_dead(&dissolved, &mut body) {}
    }
    dissolved.body = body;
    Ok(changed.then_some(dissolved))
}

/// A reader of a selection that could read the original array instead.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// Element by element; the result is a selection too.
    Elementwise,
    /// All selected elements are aggregated.
    Reduction,
    /// The selection is put back where it came from.
    Expansion,
}

/// The selections of a region that dissolve.
struct Selections {
    /// The mask of every value that is selected, or made of selected ones.
    masks: HashMap<ValueId, ValueId>,
    /// Nodes that read selections only in ways that allow them to go.
    readers: HashMap<usize, Reader>,
}

impl Selections {
    fn of(program: &Program, region: &Region) -> Selections {
        let mut found = Selections { masks: HashMap::new(), readers: HashMap::new() };
        for (k, node) in region.nodes.iter().enumerate() {
            match &node.op {
                Op::Compact { .. } if node.args.len() > 1 && program.ty(node.args[0]).dtype == DType::Bool => {
                    found.masks.extend(node.results.iter().map(|&result| (result, node.args[0])));
                }
                Op::Index(stmt) => {
                    let Some((mask, reader)) = found.reader(program, node, stmt) else { continue };
                    found.readers.insert(k, reader);
                    if reader == Reader::Elementwise {
                        found.masks.insert(node.results[0], mask);
                    }
                }
                Op::Expand { .. } if found.masks.get(&node.args[1]) == Some(&node.args[0]) => {
                    found.readers.insert(k, Reader::Expansion);
                }
                _ => {}
            }
        }
        found.keep_what_others_read(region);
        found
    }

    /// The reads of selections by one mask in a statement: all along its first variable, with no other read along it.
    fn reader(&self, program: &Program, node: &Node, stmt: &IndexStmt) -> Option<(ValueId, Reader)> {
        let first = Var(0);
        let mut mask = None;
        for read in &stmt.reads {
            let of = self.masks.get(&node.args[read.operand as usize]).copied();
            if of.is_none() && !read.idx.iter().any(|idx| idx.uses(first)) {
                continue;
            }
            // Selections are read along the first variable, and nothing else is.
            let of = of?;
            let along = read.idx.first().and_then(Idx::as_var) == Some(first);
            // All of the selection, that is: its first elements are those of no mask that is known.
            let length = program.ty(node.args[read.operand as usize]).shape.first();
            let runs_over = stmt.vars.first().map(|var| &var.extent);
            let whole = length == runs_over && read.edge == Edge::Error;
            if !along || !whole || read.idx[1..].iter().any(|idx| idx.uses(first)) || *mask.get_or_insert(of) != of {
                return None;
            }
        }
        let (mask, reads) = (mask?, stmt.reads.len() as u32);
        let work: u32 = stmt.code.ops().iter().map(op_weight).sum();
        if stmt.code.uses_param(reads) || work > MOST_WORK {
            return None;
        }
        let writes_first = stmt.out.idx.iter().any(|idx| idx.uses(first));
        let extent = program.ty(mask).shape.iter().all(|extent| extent.known().is_some());
        match (&stmt.accum, writes_first) {
            (Some(_), false) if extent => Some((mask, Reader::Reduction)),
            (None, true) if extent && stmt.is_elementwise() && node.results.len() == 1 => {
                Some((mask, Reader::Elementwise))
            }
            _ => None,
        }
    }

    /// Drops candidates: selections that are needed as arrays, and their readers.
    fn keep_what_others_read(&mut self, region: &Region) {
        let results: HashSet<ValueId> = region.results.iter().copied().collect();
        loop {
            let mut needed: HashSet<ValueId> = results.clone();
            for (k, node) in region.nodes.iter().enumerate() {
                match self.readers.get(&k) {
                    None => needed.extend(&node.args),
                    Some(Reader::Expansion) => needed.extend([node.args[0], node.args[2]]),
                    Some(_) => {}
                }
                node.op.regions().for_each(|region| region.add_uses(&mut needed));
            }
            let before = (self.masks.len(), self.readers.len());
            self.masks.retain(|value, _| !needed.contains(value));
            let masks = &self.masks;
            self.readers.retain(|&k, reader| {
                let node = &region.nodes[k];
                let selected = |read: &Access| {
                    !read.idx.iter().any(|idx| idx.uses(Var(0)))
                        || masks.contains_key(&node.args[read.operand as usize])
                };
                match (&node.op, reader) {
                    (Op::Index(stmt), Reader::Elementwise) => {
                        masks.contains_key(&node.results[0]) && stmt.reads.iter().all(selected)
                    }
                    (Op::Index(stmt), _) => stmt.reads.iter().all(selected),
                    _ => masks.contains_key(&node.args[1]),
                }
            });
            // A statement that stays needs what it makes, so nothing more is forgotten once both are stable.
            for (k, node) in region.nodes.iter().enumerate() {
                if matches!(node.op, Op::Index(_)) && !self.readers.contains_key(&k) {
                    self.masks.retain(|value, _| !node.results.contains(value));
                }
            }
            if before == (self.masks.len(), self.readers.len()) {
                return;
            }
        }
    }

    /// Rewrites the readers; tells whether there were any.
    fn dissolve(&self, program: &mut Program, region: &mut Region) -> Result<bool> {
        if self.readers.is_empty() {
            return Ok(false);
        }
        // The original of each selected value.
        let mut sources: HashMap<ValueId, ValueId> = HashMap::new();
        for (k, node) in region.nodes.iter_mut().enumerate() {
            if let (Op::Compact { .. }, [mask, data @ ..]) = (&node.op, &node.args[..]) {
                let selected = node.results.iter().zip(data).filter(|(result, _)| self.masks.get(result) == Some(mask));
                sources.extend(selected.map(|(&result, &data)| (result, data)));
                continue;
            }
            let Some(reader) = self.readers.get(&k) else { continue };
            if *reader == Reader::Expansion {
                let [mask, values, data] = node.args[..] else { continue };
                let source = sources[&values];
                node.op = select(program.ty(data))?;
                node.args = vec![mask, source, data];
                continue;
            }
            let Op::Index(stmt) = &node.op else { continue };
            let of = |read: &Access| self.masks.get(&node.args[read.operand as usize]).copied();
            let Some(mask) = stmt.reads.iter().find_map(of) else { continue };
            let shape = program.ty(mask).shape.clone();
            let spread = over_mask(stmt, node.args.len(), &shape, *reader == Reader::Reduction)?;
            let mut args: Vec<ValueId> = node.args.iter().map(|arg| *sources.get(arg).unwrap_or(arg)).collect();
            if *reader == Reader::Reduction {
                args.push(mask);
            } else {
                let dtype = program.ty(node.results[0]).dtype;
                let all = program.new_value(TensorType::dense(dtype, spread.out.shape.clone()));
                sources.insert(node.results[0], all);
                node.results = vec![all];
            }
            (node.op, node.args) = (Op::Index(spread), args);
        }
        Ok(true)
    }
}

/// A statement over a selection as one over the mask: its first variable becomes one for every axis of the mask. A reduction reads the mask as well,
/// as its last argument, and is guarded by it.
fn over_mask(stmt: &IndexStmt, n_args: usize, shape: &[Extent], guarded: bool) -> Result<IndexStmt> {
    let rank = shape.len() as u32;
    let of_mask: Vec<Idx> = (0..rank).map(|axis| Idx::var(Var(axis))).collect();
    // Only the expressions of other variables are moved; those of the first are replaced by several.
    let by: Vec<Idx> =
        (0..stmt.vars.len() as u32).map(|k| Idx::var(Var(if k == 0 { 0 } else { k + rank - 1 }))).collect();
    let spread = |idx: &[Idx]| -> Vec<Idx> {
        let moved = |idx: &Idx| match idx.as_var() {
            Some(Var(0)) => of_mask.clone(),
            _ => vec![idx.substitute(&by)],
        };
        idx.iter().flat_map(moved).collect()
    };
    let axis = |(k, &extent): (usize, &Extent)| IndexVar { name: format!("m{k}"), extent };
    let mut vars: Vec<IndexVar> = shape.iter().enumerate().map(axis).collect();
    vars.extend(stmt.vars[1..].iter().cloned());
    let mut reads: Vec<Access> =
        stmt.reads.iter().map(|read| Access { idx: spread(&read.idx), ..read.clone() }).collect();
    if guarded {
        reads.push(Access { operand: n_args as u32, idx: of_mask.clone(), edge: Edge::Error });
    }
    let n_reads = stmt.reads.len();
    let mut params: Vec<DType> = stmt.code.params()[..n_reads].to_vec();
    if guarded {
        params.push(DType::Bool);
    }
    let first_var = params.len() as u32;
    params.extend(vars.iter().map(|_| DType::I64));
    let mut code = ScalarCode::new(params);
    let mut args: Vec<Slot> = (0..n_reads as u32).map(|k| code.param(k)).collect();
    // The first variable is not used; any number stands for it.
    args.push(code.param(first_var));
    args.extend((1..stmt.vars.len() as u32).map(|k| code.param(first_var + rank - 1 + k)));
    let mut results = code.inline(&stmt.code, &args)?;
    if guarded {
        let holds = code.param(n_reads as u32);
        match stmt.has_guard {
            true => results[0] = code.binary(BinaryOp::And, holds, results[0])?,
            false => results.insert(0, holds),
        }
    }
    code.set_results(results);
    let out_shape = match guarded {
        true => stmt.out.shape.clone(),
        false => shape.iter().copied().chain(stmt.out.shape[1..].iter().copied()).collect(),
    };
    let out = Output { idx: spread(&stmt.out.idx), shape: out_shape, ..stmt.out.clone() };
    Ok(IndexStmt {
        vars,
        reads,
        code: code.without_dead_ops(),
        has_guard: stmt.has_guard || guarded,
        accum: stmt.accum.clone(),
        out,
    })
}

/// `select(mask, values, data)`, element by element.
fn select(data: &TensorType) -> Result<Op> {
    let rank = data.rank();
    let params = [DType::Bool, data.dtype, data.dtype].into_iter().chain(vec![DType::I64; rank]).collect();
    let mut code = ScalarCode::new(params);
    let (mask, values, other) = (code.param(0), code.param(1), code.param(2));
    let chosen = code.select(mask, values, other)?;
    code.set_results(vec![chosen]);
    let idx: Vec<Idx> = (0..rank as u32).map(|axis| Idx::var(Var(axis))).collect();
    let axis = |(k, &extent): (usize, &Extent)| IndexVar { name: format!("m{k}"), extent };
    Ok(Op::Index(IndexStmt {
        vars: data.shape.iter().enumerate().map(axis).collect(),
        reads: (0..3).map(|operand| Access { operand, idx: idx.clone(), edge: Edge::Error }).collect(),
        code,
        has_guard: false,
        accum: None,
        out: Output { idx, edge: Edge::Error, shape: data.shape.clone(), fill: vec![data.fill] },
    }))
}

/// Removes values without readers: selections, their counts, and everything computed for those alone. Returns whether anything was removed.
fn remove_dead(program: &Program, region: &mut Region) -> bool {
    let used: HashSet<ValueId> = region.used_from(0);
    let mut extents: HashSet<ValueId> = HashSet::new();
    let mut of = |named: &mut dyn Iterator<Item = Extent>| {
        extents.extend(named.filter_map(|extent| program.told_by(extent)));
    };
    for node in &region.nodes {
        let is_read = node.results.iter().any(|result| used.contains(result)) || node.results.is_empty();
        if is_read || !is_removable(&node.op) {
            of(&mut node.op.extents().into_iter());
            of(&mut node.results.iter().flat_map(|&result| program.ty(result).shape.clone()));
        }
        for nested in node.op.regions() {
            let all = nested.all_nodes();
            of(&mut all.iter().flat_map(|node| node.op.extents()));
            of(&mut all.iter().flat_map(|node| &node.results).flat_map(|&result| program.ty(result).shape.clone()));
        }
    }
    let before = region.nodes.len();
    region.nodes.retain(|node| {
        let is_read = node.results.iter().any(|result| used.contains(result) || extents.contains(result));
        is_read || !is_removable(&node.op)
    });
    region.nodes.len() < before
}

fn is_removable(op: &Op) -> bool {
    matches!(op, Op::Compact { .. } | Op::Resolve | Op::Index(_))
}
