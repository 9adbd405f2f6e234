//! Join: pairs the blocks of two relations whose keys agree.

use std::collections::HashMap;

use tw_build::{SliceItem, is_subscript};
use tw_ir::error::{Error, Result};
use tw_ir::program::OperandMode;

use super::kernel::{KeyedOperand, Kind, RelationKernel};
use super::keys::{Key, Keys, check_components};
use super::view::{columns, looked_up, moved, var};
use super::{Relation, located};
use crate::tensor::Tensor;

/// The result's components `0..n`, as labels of the axes of an operand.
pub(super) fn labels(n: usize) -> Vec<usize> {
    (0..n).collect()
}

impl Relation {
    /// Blocks of two relations whose keys agree: component `left[k]` of the left key is component `right[k]` of the right key. The key of the result is the
    /// left key and the right one without the components that agree; its block is the kernel's of the two blocks.
    #[track_caller]
    pub fn join(
        &self,
        other: &Relation,
        left: &[usize],
        right: &[usize],
        kernel: impl Into<RelationKernel>,
    ) -> Result<Relation> {
        let kernel = kernel.into();
        located(|| {
            check_components("join", left, &self.keys)?;
            check_components("join", right, &other.keys)?;
            if left.len() != right.len() {
                let (l, r) = (left.len(), right.len());
                return Err(Error::source(format!("join of {l} components of the left key with {r} of the right key")));
            }
            match (&self.keys, &other.keys) {
                (Keys::Dense(f), Keys::Dense(g)) => self.join_dense(other, (f, g), (left, right), &kernel),
                _ => self.join_listed(other, (left, right), &kernel),
            }
        })
    }

    /// Keys are axes: those that agree are one variable.
    fn join_dense(
        &self,
        other: &Relation,
        (f, g): (&[u64], &[u64]),
        (left, right): (&[usize], &[usize]),
        kernel: &RelationKernel,
    ) -> Result<Relation> {
        let (mut f, mut g) = (f.to_vec(), g.to_vec());
        for (&l, &r) in left.iter().zip(right) {
            (f[l], g[r]) = (f[l].min(g[r]), f[l].min(g[r]));
        }
        let (a, b) = (first_keys(&self.tensor, &f)?, first_keys(&other.tensor, &g)?);
        let mut frontier = f;
        let in_result: Vec<usize> = (0..g.len())
            .map(|component| match right.iter().position(|&r| r == component) {
                Some(k) => left[k],
                None => {
                    frontier.push(g[component]);
                    frontier.len() - 1
                }
            })
            .collect();
        let n = frontier.len();
        let operands = [(&a, &labels(self.arity())), (&b, &in_result)];
        let tensor = match &kernel.0 {
            Kind::Einsum(spec) => einsum_over_keys(spec, &operands.map(|(x, labels)| (x, &labels[..])), n)?,
            Kind::Binary(op) => {
                let rank = self.bound.len().max(other.bound.len());
                let [a, b] = operands.map(|(x, labels)| broadcast(x, labels, n, rank));
                a?.binary(*op, &b?)?
            }
            Kind::Function(function) => {
                let keyed = operands.map(|(tensor, labels)| KeyedOperand {
                    tensor,
                    lead: labels.iter().map(|&label| OperandMode::Grid(label as u32)).collect(),
                });
                function.apply("join", &keyed, n)?
            }
            _ => return Err(kernel.unfit("join", "kernels of two blocks")),
        };
        Relation::new(tensor, Keys::Dense(frontier))
    }

    /// Keys are listed: every pair of blocks has a position in the result.
    fn join_listed(
        &self,
        other: &Relation,
        (left, right): (&[usize], &[usize]),
        kernel: &RelationKernel,
    ) -> Result<Relation> {
        let kept: Vec<usize> = (0..other.arity()).filter(|component| !right.contains(component)).collect();
        let mut partners: HashMap<Key, Vec<(u64, Key)>> = HashMap::new();
        for (position, key) in other.keys()?.into_iter().enumerate() {
            let rest = kept.iter().map(|&component| key[component]).collect();
            let agreed = right.iter().map(|&component| key[component]).collect();
            partners.entry(agreed).or_default().push((position as u64, rest));
        }
        // Both relations are in order, and so is the result.
        let (mut keys, mut lefts, mut rights) = (Vec::new(), Vec::new(), Vec::new());
        for (position, key) in self.keys()?.into_iter().enumerate() {
            let agreed: Key = left.iter().map(|&component| key[component]).collect();
            for (partner, rest) in partners.get(&agreed).into_iter().flatten() {
                keys.push([&key[..], rest].concat());
                lefts.push(position as u64);
                rights.push(*partner);
            }
        }
        let keys = Keys::of(self.arity() + kept.len(), keys);
        let (to, n) = (keys.axes(), keys.axes().len());
        let sides = [(self, &lefts), (other, &rights)];
        if let Kind::Function(function) = &kernel.0 {
            let keyed = sides.map(|(side, positions)| KeyedOperand {
                tensor: &side.tensor,
                lead: picked(&side.keys.axes(), positions),
            });
            let blocks = function.apply("join", &keyed, 1)?;
            return Relation::new(unpacked(&blocks, &keys)?, keys);
        }
        let [a, b] = sides.map(|(side, positions)| looked_up(&side.tensor, side.keys.axes().len(), &to, positions));
        let (a, b) = (a?, b?);
        let tensor = match &kernel.0 {
            Kind::Einsum(spec) => einsum_over_keys(spec, &[(&a, &labels(n)), (&b, &labels(n))], n)?,
            Kind::Binary(op) => {
                let rank = self.bound.len().max(other.bound.len());
                broadcast(&a, &labels(n), n, rank)?.binary(*op, &broadcast(&b, &labels(n), n, rank)?)?
            }
            _ => return Err(kernel.unfit("join", "kernels of two blocks")),
        };
        Relation::new(tensor, keys)
    }
}

/// What a function sees of the key axes of an operand: in its p-th call the block at the p-th of some positions.
pub(super) fn picked(axes: &[u64], positions: &[u64]) -> Vec<OperandMode> {
    columns(axes, positions).into_iter().map(|column| OperandMode::Pick(0, column.into())).collect()
}

/// Blocks one after the other, under the axes of their keys.
pub(super) fn unpacked(blocks: &Tensor, keys: &Keys) -> Result<Tensor> {
    let positions: Vec<u64> = (0..keys.count()).collect();
    looked_up(blocks, 1, &keys.axes(), &positions)
}

/// The blocks whose keys lie below a frontier.
fn first_keys(x: &Tensor, frontier: &[u64]) -> Result<Tensor> {
    if x.shape()?.starts_with(frontier) {
        return Ok(x.clone());
    }
    let first = |&n: &u64| SliceItem::Slice { start: Some(0), stop: Some(n as i64), step: 1 };
    x.slice(&frontier.iter().map(first).collect::<Vec<_>>())
}

/// The operand with all `n` components of the result as axes, of extent 1 where it has none of that label, and `rank` axes for its blocks.
fn broadcast(x: &Tensor, labels: &[usize], n: usize, rank: usize) -> Result<Tensor> {
    let known = x.shape()?;
    let (lead, bound) = known.split_at(labels.len());
    let mut to = vec![1; n + rank - bound.len()];
    labels.iter().zip(lead).for_each(|(&label, &extent)| to[label] = extent);
    to.extend(bound);
    // An operand whose axes are in another order may have the right extents all the same.
    if to == known && labels.is_sorted() {
        return Ok(x.clone());
    }
    let idx = labels.iter().copied().chain(n + rank - bound.len()..to.len()).map(var).collect();
    moved(x, idx, &to, n)
}

/// Subscripts of blocks, with a letter in front for every component of the key of the result.
pub(super) fn einsum_over_keys(spec: &str, operands: &[(&Tensor, &[usize])], n: usize) -> Result<Tensor> {
    let (terms, out) = match spec.split_once("->") {
        Some((terms, out)) => (terms, out.to_string()),
        None => (spec, letters_that_occur_once(spec)),
    };
    let terms: Vec<&str> = terms.split(',').collect();
    if terms.len() != operands.len() {
        return Err(Error::source(format!("\"{spec}\" is for {} blocks, not {}", terms.len(), operands.len())));
    }
    let free: Vec<char> = ('A'..='Z').chain('a'..='z').filter(|&letter| !spec.contains(letter)).collect();
    let letters = free.get(..n).ok_or_else(|| Error::source("more components and subscripts than letters"))?;
    let with_keys = |(term, (x, labels)): (&&str, &(&Tensor, &[usize]))| {
        let n_letters = term.chars().filter(|&c| is_subscript(c)).count();
        let rank = x.ty().rank() - labels.len();
        if n_letters > rank || (n_letters < rank && !term.contains("...")) {
            return Err(Error::source(format!("`{}` names {n_letters} axes of blocks with {rank}", term.trim()))
                .note(format!("in the kernel \"{spec}\"")));
        }
        Ok(labels.iter().map(|&label| letters[label]).chain(term.chars()).collect::<String>())
    };
    let inputs: Vec<String> = terms.iter().zip(operands).map(with_keys).collect::<Result<_>>()?;
    let spec = format!("{}->{}{out}", inputs.join(","), letters.iter().collect::<String>());
    let tensors: Vec<&Tensor> = operands.iter().map(|(x, _)| *x).collect();
    crate::einsum(&spec, &tensors)
}

/// NumPy's output of subscripts without an arrow.
fn letters_that_occur_once(spec: &str) -> String {
    let mut letters: Vec<char> = spec.chars().filter(|&c| is_subscript(c)).collect();
    letters.sort_unstable();
    let once = letters.iter().filter(|letter| letters.iter().filter(|other| other == letter).count() == 1);
    let dots = if spec.contains("...") { "..." } else { "" };
    dots.chars().chain(once.copied()).collect()
}
