//! Contributions of scatters: elementwise code that computes the values of a scatter becomes part of its accumulator. So `counts[key[i]] += 1` stores no ones, and
//! `s[key[i]] += w[i] * x[i]` stores no products.
//!
//! Preconditions, per tensor of values:
//! - it is elementwise, from operands of its own shape, each read at the point itself, and does not use positions;
//! - the scatter is its only reader, or it is a constant.
//!
//! A scatter whose values are all constants takes the first index tensor in their place: its blocks are read anyway, and the code ignores them.

use std::collections::HashMap;

use tw_ir::error::Result;
use tw_ir::program::{IndexStmt, Node, Op, Program, ValueId};
use tw_ir::spec::ScatterSpec;
use tw_ir::{Accum, DType, ScalarCode, Slot};

use super::rebuild::{Rebuild, n_readers};

pub(super) fn run(program: &Program) -> Result<Program> {
    let readers = n_readers(&program.body);
    let mut producers: HashMap<ValueId, (&Node, &IndexStmt, usize)> = HashMap::new();
    let mut rebuild = Rebuild::new(program);
    for node in &program.body.nodes {
        if let Op::Index(stmt) = &node.op
            && is_pointwise(program, node, stmt)
        {
            let results = node.results.iter().enumerate();
            let inlined = |value: &ValueId| stmt.reads.is_empty() || readers.get(value) == Some(&1);
            producers.extend(results.filter(|(_, v)| inlined(v)).map(|(body, &value)| (value, (node, stmt, body))));
        }
        match &node.op {
            Op::Scatter { spec, extents } => match inline(program, node, spec.axes.len(), &spec.accum, &producers)? {
                Some((args, accum)) => {
                    let args = args.into_iter().map(|value| rebuild.mapped(value)).collect::<Result<Vec<_>>>()?;
                    let (spec, extents) = (ScatterSpec { accum, ..spec.clone() }, extents.clone());
                    rebuild.replace(node, Op::Scatter { spec, extents }, &args)?;
                }
                None => {
                    rebuild.copy(node)?;
                }
            },
            _ => {
                rebuild.copy(node)?;
            }
        }
    }
    rebuild.finish()
}

/// True if every element is made from the elements at its own place.
fn is_pointwise(program: &Program, node: &Node, stmt: &IndexStmt) -> bool {
    let n_reads = stmt.reads.len();
    let at_point = |k: usize| {
        let read = &stmt.reads[k];
        let same_shape = program.ty(node.args[read.operand as usize]).shape == stmt.out.shape;
        same_shape && read.idx == stmt.out.idx
    };
    let uses_positions = (0..stmt.vars.len()).any(|var| stmt.code.uses_param((n_reads + var) as u32));
    let plain = stmt.out.idx.iter().enumerate().all(|(k, idx)| idx.as_var().is_some_and(|var| var.0 as usize == k));
    stmt.is_elementwise() && plain && !uses_positions && (0..n_reads).all(at_point)
}

/// The arguments and the accumulator of a scatter with the code of its values in it; `None` if none of them has any.
fn inline(
    program: &Program,
    node: &Node,
    n_indices: usize,
    accum: &Accum,
    producers: &HashMap<ValueId, (&Node, &IndexStmt, usize)>,
) -> Result<Option<(Vec<ValueId>, Accum)>> {
    let (indices, values) = node.args.split_at(n_indices);
    if !values.iter().any(|value| producers.contains_key(value)) {
        return Ok(None);
    }
    let mut args: Vec<ValueId> = Vec::new();
    for value in values {
        match producers.get(value) {
            Some((producer, stmt, _)) => {
                args.extend(stmt.reads.iter().map(|read| producer.args[read.operand as usize]));
            }
            None => args.push(*value),
        }
    }
    let stands_in = args.is_empty();
    if stands_in {
        if program.ty(indices[0]).shape != program.ty(values[0]).shape {
            return Ok(None);
        }
        args.push(indices[0]);
    }
    let types: Vec<DType> = args.iter().map(|&value| program.ty(value).dtype).collect();
    let mut lift = ScalarCode::new(types);
    let mut next = 0..;
    let mut lifted: Vec<Slot> = Vec::new();
    for value in values {
        let Some((_, stmt, body)) = producers.get(value) else {
            lifted.extend(next.next().map(|k| lift.param(k)));
            continue;
        };
        let mut given: Vec<Slot> = next.by_ref().take(stmt.reads.len()).map(|k| lift.param(k)).collect();
        // Positions are not used, so any number will do.
        given.extend(stmt.vars.iter().map(|_| lift.constant(DType::I64.zero())).collect::<Vec<_>>());
        lifted.push(lift.inline(&stmt.code, &given)?[*body]);
    }
    let results = lift.inline(&accum.lift, &lifted)?;
    lift.set_results(results);
    let accum = Accum { lift: lift.without_dead_ops(), ..accum.clone() };
    Ok(Some((indices.iter().copied().chain(args).collect(), accum)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of tensors of values of every scatter, and of statements beside them that the result needs.
    fn shape_of(text: &str) -> (Vec<usize>, usize) {
        let unit = tw_lang::parse_program(text, &Default::default(), &tw_lang::NoFiles, &Default::default());
        let program = super::super::dead::run(&run(&unit.unwrap().program).unwrap()).unwrap();
        let values = |node: &Node| match &node.op {
            Op::Scatter { spec, .. } => Some(node.args.len() - spec.axes.len()),
            _ => None,
        };
        let statements = program.body.nodes.iter().filter(|node| matches!(node.op, Op::Index(_))).count();
        (program.body.nodes.iter().filter_map(values).collect(), statements)
    }

    #[test]
    fn values_are_made_where_they_are_added() {
        let given =
            "input key: i64[100]\ninput x: f64[100]\ninput w: f64[100]\nn = zeros(7, dtype=i64)\ns = zeros(7)\n";
        let before = shape_of(&format!("{given}s[key[i]] += x[i]\noutput s\n"));
        // A constant is no tensor; the keys stand in for it.
        assert_eq!(shape_of(&format!("{given}n[key[i]] += 1\noutput n\n")).0, [1]);
        let (values, statements) = shape_of(&format!("{given}s[key[i]] += x[i] * w[i]\noutput s\n"));
        assert_eq!((values, statements), (vec![2], before.1));
        // Positions stay outside, and so does what others read too.
        assert_eq!(shape_of(&format!("{given}s[key[i]] += x[i] * i\noutput s\n")).0, [1]);
        assert_eq!(shape_of(&format!("{given}y[i] = x[i] * w[i]\ns[key[i]] += y[i]\noutput s\noutput y\n")).0, [1]);
    }
}
