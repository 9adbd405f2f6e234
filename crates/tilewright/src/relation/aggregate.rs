//! Aggregate: combines the blocks whose keys agree in some components.

use std::collections::BTreeMap;
use std::sync::Arc;

use tw_build::Reduction;
use tw_ir::accum::OnEmpty;
use tw_ir::error::{Error, Result};
use tw_ir::index::{Access, Edge, Idx};
use tw_ir::program::{IndexStmt, Op, Output};
use tw_ir::scalar::{BinaryOp, ScalarCode};
use tw_ir::{DType, Extent};

use super::join::{picked, unpacked};
use super::kernel::{BlockKernel, KeyedOperand, Kind, RelationKernel};
use super::keys::{Key, Keys, check_components};
use super::view::{columns, looked_up, var, variables};
use super::{Relation, located};
use crate::tensor::Tensor;

impl Relation {
    /// One block for all keys that agree in the components `by`, which are the key of the result, in that order. The kernel makes one block of two; it must be
    /// associative. Built-in ones are `add`, `mul`, `min`, `max`, `and`, `or`.
    #[track_caller]
    pub fn aggregate(&self, by: &[usize], kernel: impl Into<RelationKernel>) -> Result<Relation> {
        let kernel = kernel.into();
        located(|| {
            check_components("aggregate", by, &self.keys)?;
            let unfit = || kernel.unfit("aggregate", "add, mul, min, max, and, or, or a function of two blocks");
            match &kernel.0 {
                Kind::Function(function) => self.folded(by, function),
                Kind::Binary(op) => self.reduced(by, reduction(*op).ok_or_else(unfit)?),
                // The sum of two blocks is called as the sum of all of them.
                Kind::Reduce(kind @ (Reduction::Sum | Reduction::Prod | Reduction::Any | Reduction::All), None) => {
                    self.reduced(by, *kind)
                }
                _ => Err(unfit()),
            }
        })
    }

    fn reduced(&self, by: &[usize], kind: Reduction) -> Result<Relation> {
        let dtype = self.dtype();
        if matches!(kind, Reduction::Any | Reduction::All) && dtype != DType::Bool {
            return Err(Error::types(format!("aggregate of blocks of {dtype} by a logical operation")));
        }
        let mut accum = kind.accum(dtype)?;
        let from = self.tensor.shape()?;
        let n_lead = from.len() - self.bound.len();
        if self.count() == 0 {
            // Without any key there is no group either.
            let keys = Keys::of(by.len(), Vec::new());
            return Relation::new(looked_up(&self.tensor, n_lead, &keys.axes(), &[])?, keys);
        }
        // A key without blocks is no key.
        accum.on_empty = OnEmpty::Identity;
        let (keys, lead) = match &self.keys {
            Keys::Dense(frontier) => {
                let kept: Vec<u64> = by.iter().map(|&component| frontier[component]).collect();
                (Keys::Dense(kept), by.iter().map(|&component| var(component)).collect())
            }
            Keys::Listed { .. } => {
                let groups = Groups::of(self, by)?;
                let keys = Keys::of(by.len(), groups.members.keys().cloned().collect());
                let tables = columns(&keys.axes(), &groups.of_position);
                let lead = tables.into_iter().map(|table| {
                    let table: Arc<[i64]> = table.into_iter().map(|at| at as i64).collect();
                    var(0).table(table)
                });
                (keys, lead.collect::<Vec<Idx>>())
            }
        };
        let mut params = vec![dtype];
        params.extend(std::iter::repeat_n(DType::I64, from.len()));
        let mut code = ScalarCode::new(params);
        let body = code.param(0);
        code.set_results(vec![body]);
        let out = Output {
            idx: lead.into_iter().chain((n_lead..from.len()).map(var)).collect(),
            edge: Edge::Error,
            shape: keys.axes().iter().chain(&self.bound).map(|&n| Extent::Known(n)).collect(),
            fill: Vec::new(),
        };
        let reads = vec![Access { operand: 0, idx: (0..from.len()).map(var).collect(), edge: Edge::Error }];
        let vars = variables(&from, n_lead);
        let stmt = IndexStmt { vars, reads, code, has_guard: false, accum: Some(accum), out };
        let tensor = Tensor::apply(self.tensor.session(), Op::Index(stmt), &[&self.tensor])?;
        Relation::new(tensor, keys)
    }

    /// A balanced tree over the blocks of every group, in the order of their keys: pairs, pairs of pairs, and so on for all groups at once; then what is
    /// left over where the number of blocks is no power of two.
    fn folded(&self, by: &[usize], function: &BlockKernel) -> Result<Relation> {
        let axes = self.keys.axes();
        let operand = KeyedOperand { tensor: &self.tensor, lead: picked(&axes, &[]) };
        if function.gives(&operand)? != (self.bound.clone(), self.dtype()) {
            return Err(Error::source("aggregate by a function that gives other blocks than it takes"));
        }
        let groups = Groups::of(self, by)?;
        let keys = Keys::of(by.len(), groups.members.keys().cloned().collect());
        let combine = |left: (&Tensor, &[u64]), right: (&Tensor, &[u64])| {
            let keyed = [left, right].map(|(tensor, positions)| {
                let lead = tensor.shape()?.len() - self.bound.len();
                Ok(KeyedOperand { tensor, lead: picked(&tensor.shape()?[..lead], positions) })
            });
            let [left, right] = keyed;
            function.apply("aggregate", &[left?, right?], 1)
        };

        // Blocks of every group that are not part of a larger pair yet: where they are, from left to right.
        let mut open: Vec<Vec<Place>> = vec![Vec::new(); groups.members.len()];
        let mut levels: Vec<Tensor> = vec![self.tensor.clone()];
        let mut current: Vec<Vec<u64>> = groups.members.into_values().collect();
        while current.iter().any(|positions| positions.len() > 1) {
            let level = levels.len() - 1;
            let (mut lefts, mut rights) = (Vec::new(), Vec::new());
            for (positions, open) in current.iter_mut().zip(&mut open) {
                if positions.len() % 2 == 1 {
                    open.extend(positions.pop().map(|position| Place { level, position }));
                }
                let first = lefts.len() as u64;
                for pair in positions.chunks_exact(2) {
                    lefts.push(pair[0]);
                    rights.push(pair[1]);
                }
                *positions = (first..lefts.len() as u64).collect();
            }
            levels.push(combine((&levels[level], &lefts), (&levels[level], &rights))?);
        }
        let level = levels.len() - 1;
        for (positions, open) in current.iter().zip(&mut open) {
            open.extend(positions.first().map(|&position| Place { level, position }));
        }
        // The last that was left open stands furthest to the left. Groups whose two last pieces lie in the same tensors are done together.
        while open.iter().any(|places| places.len() > 1) {
            let mut together: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
            for (group, places) in open.iter().enumerate() {
                if let [.., right, left] = places.as_slice() {
                    together.entry((left.level, right.level)).or_default().push(group);
                }
            }
            for ((left_level, right_level), groups) in together {
                let mut take = |group: &usize| open[*group].pop().map_or(0, |place| place.position);
                let lefts: Vec<u64> = groups.iter().map(&mut take).collect();
                let rights: Vec<u64> = groups.iter().map(&mut take).collect();
                levels.push(combine((&levels[left_level], &lefts), (&levels[right_level], &rights))?);
                let level = levels.len() - 1;
                for (position, &group) in groups.iter().enumerate() {
                    open[group].push(Place { level, position: position as u64 });
                }
            }
        }
        let places: Vec<Place> = open.into_iter().filter_map(|places| places.first().copied()).collect();
        let packed = gathered(&levels, &places, self.bound.len())?;
        Relation::new(unpacked(&packed, &keys)?, keys)
    }
}

/// A block: in which of several tensors, and where in its key axes.
#[derive(Clone, Copy)]
struct Place {
    level: usize,
    position: u64,
}

/// Blocks of several tensors, one after the other.
fn gathered(levels: &[Tensor], places: &[Place], rank: usize) -> Result<Tensor> {
    let used: Vec<usize> = (0..levels.len()).filter(|&k| places.iter().any(|place| place.level == k)).collect();
    let parts = used.iter().map(|&level| {
        let positions: Vec<u64> =
            places.iter().filter(|place| place.level == level).map(|place| place.position).collect();
        let n_lead = levels[level].shape()?.len() - rank;
        looked_up(&levels[level], n_lead, &[positions.len() as u64], &positions)
    });
    let parts: Vec<Tensor> = parts.collect::<Result<_>>()?;
    match parts.as_slice() {
        [] => looked_up(&levels[0], levels[0].shape()?.len() - rank, &[0], &[]),
        [only] => Ok(only.clone()),
        several => {
            // Back in the order of groups.
            let mut next: Vec<u64> = Vec::new();
            let mut start = 0;
            for part in several {
                next.push(start);
                start += part.shape()?[0];
            }
            let order: Vec<u64> = places
                .iter()
                .map(|place| {
                    let part = used.iter().position(|&level| level == place.level).unwrap_or(0);
                    next[part] += 1;
                    next[part] - 1
                })
                .collect();
            let all = crate::concat(&several.iter().collect::<Vec<_>>(), 0)?;
            looked_up(&all, 1, &[places.len() as u64], &order)
        }
    }
}

/// Which blocks become one.
struct Groups {
    /// Positions of the members, by the key of the group.
    members: BTreeMap<Key, Vec<u64>>,
    /// For every position, which group it belongs to.
    of_position: Vec<u64>,
}

impl Groups {
    fn of(relation: &Relation, by: &[usize]) -> Result<Groups> {
        let mut members: BTreeMap<Key, Vec<u64>> = BTreeMap::new();
        for (position, key) in relation.keys()?.into_iter().enumerate() {
            let group = by.iter().map(|&component| key[component]).collect();
            members.entry(group).or_default().push(position as u64);
        }
        let mut of_position = vec![0; members.values().map(Vec::len).sum()];
        for (group, positions) in members.values().enumerate() {
            positions.iter().for_each(|&position| of_position[position as usize] = group as u64);
        }
        Ok(Groups { members, of_position })
    }
}

/// The reduction that folds by an operation.
fn reduction(op: BinaryOp) -> Option<Reduction> {
    Some(match op {
        BinaryOp::Add => Reduction::Sum,
        BinaryOp::Mul => Reduction::Prod,
        BinaryOp::Min => Reduction::Min,
        BinaryOp::Max => Reduction::Max,
        BinaryOp::And => Reduction::All,
        BinaryOp::Or => Reduction::Any,
        _ => return None,
    })
}
