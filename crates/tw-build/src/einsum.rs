//! Einstein summation by subscripts such as `"ij,jk->ik"`.

use std::collections::BTreeMap;

use tw_ir::{Error, Extent, Op, Result, TensorType, shape};

use super::axes::{display_shape, types_first};
use super::contract::{Labelled, product_sum};
use crate::contraction_order::{ContractionOrder, Network};

/// One subscript: a letter, or an axis under `...` counted from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Broadcast(usize),
    Letter(char),
}

/// The operand part and, if there is an arrow, the output part of a specification.
struct Subscripts {
    operands: Vec<Vec<Label>>,
    output: Vec<Label>,
}

/// What a specification says about operands: their axes as numbers of indices, those of the output first.
struct Numbered {
    /// Indices of every operand by axis; none where an axis of extent 1 is repeated.
    operands: Vec<Vec<Option<usize>>>,
    extents: Vec<Extent>,
    /// Indices of the output.
    n_out: usize,
}

/// One index statement for a specification in NumPy's notation: repeated letters, an implicit or explicit output, and `...`.
pub fn einsum(spec: &str, types: &[&TensorType]) -> Result<Op> {
    let Numbered { operands, extents, n_out } = number(spec, types)?;
    let operands: Vec<Labelled<'_>> = types.iter().zip(operands).map(|(ty, labels)| Labelled { ty, labels }).collect();
    product_sum(&operands, &extents, n_out)
}

/// The order in which the planner multiplies the operands of a specification, if it multiplies them in pairs.
pub fn einsum_path(spec: &str, types: &[&TensorType]) -> Result<ContractionOrder> {
    let Numbered { operands, extents, n_out } = number(spec, types)?;
    let extents = shape::require_all(&extents, || {
        Error::source("the order depends on extents that are known only when data is read")
            .note(format!("in einsum \"{spec}\""))
    })?;
    let extents: Vec<f64> = extents.into_iter().map(|n| n as f64).collect();
    let indices = |axes: &Vec<Option<usize>>| axes.iter().flatten().map(|&index| index as u32).collect();
    let operands: Vec<Vec<u32>> = operands.iter().map(indices).collect();
    let kept: Vec<u32> = (0..n_out as u32).collect();
    Ok(Network::new(&operands, &kept, &extents).orders(1).swap_remove(0))
}

fn number(spec: &str, types: &[&TensorType]) -> Result<Numbered> {
    let subscripts = parse(spec, types).map_err(|error| error.note(format!("in einsum \"{spec}\"")))?;
    let mut extents: BTreeMap<Label, Extent> = BTreeMap::new();
    for (ty, labels) in types.iter().zip(&subscripts.operands) {
        for (label, &extent) in labels.iter().zip(&ty.shape) {
            let known = extents.entry(*label).or_insert(extent);
            if *known == Extent::Known(1) {
                *known = extent;
            } else if extent != Extent::Known(1) {
                let fits = shape::require_equal(&[*known], &[extent], || {
                    let name = display_label(*label);
                    let what = match (*known, extent) {
                        (Extent::Known(a), Extent::Known(b)) => format!("an axis of {a} and for one of {b}"),
                        _ => "axes whose extents depend on data and may differ".to_string(),
                    };
                    Error::source(format!("`{name}` stands for {what}")).note(format!("in einsum \"{spec}\""))
                });
                types_first(fits, types.iter().map(|ty| ty.dtype))?;
            }
        }
    }
    let mut order = subscripts.output.clone();
    order.extend(extents.keys().filter(|label| !subscripts.output.contains(label)));
    let places: BTreeMap<Label, usize> = order.iter().enumerate().map(|(place, label)| (*label, place)).collect();
    let operands = types.iter().zip(&subscripts.operands).map(|(ty, labels)| {
        let numbered = labels.iter().zip(&ty.shape).map(|(label, &extent)| {
            // An axis of extent 1 where the others are longer is repeated.
            let repeats = extent == Extent::Known(1) && extents[label] != extent;
            if repeats { None } else { places.get(label).copied() }
        });
        numbered.collect()
    });
    Ok(Numbered {
        operands: operands.collect(),
        extents: order.iter().map(|label| extents[label]).collect(),
        n_out: subscripts.output.len(),
    })
}

fn parse(spec: &str, types: &[&TensorType]) -> Result<Subscripts> {
    let (left, right) = match spec.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (spec, None),
    };
    let terms: Vec<&str> = left.split(',').collect();
    if terms.len() != types.len() {
        return Err(Error::source(format!("{} subscripts for {} operands", terms.len(), types.len())));
    }
    let operands: Vec<Vec<Label>> =
        terms.iter().zip(types).map(|(term, ty)| parse_operand(term, ty)).collect::<Result<_>>()?;
    let n_broadcast = |labels: &Vec<Label>| labels.iter().filter(|l| matches!(l, Label::Broadcast(_))).count();
    let broadcast = operands.iter().map(n_broadcast).max().unwrap_or(0);
    let output = match right {
        Some(text) => parse_term(text, Some(broadcast))?,
        None => implicit_output(&operands, broadcast),
    };
    for (position, label) in output.iter().enumerate() {
        let name = display_label(*label);
        if output[..position].contains(label) {
            return Err(Error::source(format!("`{name}` occurs twice in the output")));
        }
        if !operands.iter().any(|labels| labels.contains(label)) {
            return Err(Error::source(format!("`{name}` occurs in the output but in no operand")));
        }
    }
    if right.is_some() && broadcast > 0 && !output.iter().any(|l| matches!(l, Label::Broadcast(_))) {
        return Err(Error::source("the operands have `...`, but the output does not"));
    }
    Ok(Subscripts { operands, output })
}

/// NumPy's rule without an arrow: what `...` stands for, then the letters that occur once, in alphabetical order.
fn implicit_output(operands: &[Vec<Label>], broadcast: usize) -> Vec<Label> {
    let mut counts: BTreeMap<Label, usize> = BTreeMap::new();
    operands.iter().flatten().for_each(|label| *counts.entry(*label).or_default() += 1);
    let once = counts.into_iter().filter(|(label, n)| matches!(label, Label::Letter(_)) && *n == 1);
    (0..broadcast).rev().map(Label::Broadcast).chain(once.map(|(label, _)| label)).collect()
}

fn parse_operand(term: &str, ty: &TensorType) -> Result<Vec<Label>> {
    let letters = term.chars().filter(|c| is_subscript(*c)).count();
    let missing = ty.rank().checked_sub(letters);
    let labels = parse_term(term, missing)?;
    if labels.len() != ty.rank() {
        let shape = display_shape(&ty.shape);
        return Err(Error::source(format!(
            "`{}` names {} axes of a tensor of shape {shape}",
            term.trim(),
            labels.len()
        )));
    }
    Ok(labels)
}

/// Labels of one term; `...` becomes `under_ellipsis` labels.
fn parse_term(term: &str, under_ellipsis: Option<usize>) -> Result<Vec<Label>> {
    let mut labels = Vec::new();
    let mut rest = term.trim();
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            let n = under_ellipsis.unwrap_or(0);
            if after.contains("...") {
                return Err(Error::source(format!("`{}` has more than one `...`", term.trim())));
            }
            labels.extend((0..n).rev().map(Label::Broadcast));
            rest = after;
            continue;
        }
        match first {
            ' ' => {}
            letter if is_subscript(letter) => labels.push(Label::Letter(letter)),
            other => return Err(Error::source(format!("`{other}` is not a subscript; they are single letters"))),
        }
        rest = &rest[first.len_utf8()..];
    }
    Ok(labels)
}

/// Letters, and every other character beyond ASCII: programs that make specifications run out of letters.
pub fn is_subscript(character: char) -> bool {
    character.is_ascii_alphabetic() || (!character.is_ascii() && !character.is_whitespace())
}

fn display_label(label: Label) -> String {
    match label {
        Label::Letter(letter) => letter.to_string(),
        Label::Broadcast(_) => "...".to_string(),
    }
}
