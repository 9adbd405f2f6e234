//! The order of loops, and what must be converted for it.
//!
//! A level that stores some coordinates only can be reached after the levels above it, so each access gives edges from the variables of
//! outer levels to those of inner ones; dense levels give none, for their positions are computed. An output that is appended to wants its
//! variables in storage order too. Edges are added one group after the other, and a group that would close a cycle is left out: then the
//! operand is converted to an order that fits, or the output is made in another order and converted afterwards.
//!
//! Among the orders that remain, variables of sparse levels come first and those along which dense operands are contiguous last. A product
//! of matrices thus runs by rows (Gustavson, "Two Fast Algorithms for Sparse Matrices", 1978), in `i, k, j`, whatever its formats.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tw_ir::{Error, Result};

use super::KernelOperand;
use crate::expr::{AffineIndex, IndexExpr, IndexStatement, IndexVariable, Monoid};
use crate::format::TensorFormat;
use crate::level::{COMPRESSED, LevelKind};

/// The order of loops.
#[derive(Clone, Debug)]
pub struct LoopOrder {
    /// All variables.
    pub all: Vec<IndexVariable>,
    /// The loops around the assembly of the output: its variables, and those of a reduction that must lie between them.
    pub outer: Vec<IndexVariable>,
    /// The reduction that scatters, if one does.
    pub scatter: Option<Monoid>,
    /// The operands as they are read.
    pub operands: Vec<KernelOperand>,
    /// The operand of each access.
    pub storage_of: HashMap<usize, usize>,
    /// The format in which the output is made.
    pub output: TensorFormat,
}

impl LoopOrder {
    /// The place of a variable among all.
    pub fn position(&self, var: IndexVariable) -> usize {
        self.all.iter().position(|other| *other == var).unwrap_or(self.all.len())
    }
}

type Edges = BTreeSet<(IndexVariable, IndexVariable)>;

/// Edges from variables of outer levels to those of inner ones that are not dense.
fn storage_edges(format: &TensorFormat, index_of: &dyn Fn(usize) -> Vec<IndexVariable>) -> Edges {
    let mut edges = Edges::new();
    for l in (0..format.rank()).filter(|&l| !format.levels()[l].properties().full) {
        for inner in index_of(format.order()[l]) {
            for &mode in &format.order()[..l] {
                edges.extend(index_of(mode).into_iter().filter(|outer| *outer != inner).map(|outer| (outer, inner)));
            }
        }
    }
    edges
}

fn variables_of(index: &AffineIndex) -> Vec<IndexVariable> {
    index.terms.iter().map(|(var, _)| *var).collect()
}

/// Sorts variables by their edges, smallest key first; nothing if there is a cycle.
fn sorted(n: usize, edges: &Edges, key: &dyn Fn(IndexVariable) -> (usize, usize, usize)) -> Option<Vec<IndexVariable>> {
    let mut left: BTreeSet<IndexVariable> = (0..n).map(IndexVariable).collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        let free = left.iter().filter(|var| !edges.iter().any(|(a, b)| b == *var && left.contains(a)));
        let next = *free.min_by_key(|var| key(**var))?;
        left.remove(&next);
        order.push(next);
    }
    Some(order)
}

/// True if the output format can be written in storage order, level by level.
fn can_assemble(format: &TensorFormat) -> bool {
    let levels = format.levels();
    levels.iter().enumerate().all(|(l, level)| {
        let (properties, capabilities) = (level.properties(), level.capabilities());
        let below_runs = l > 0 && !levels[l - 1].properties().unique;
        let list_goes_on = properties.unique || l + 1 < levels.len();
        (properties.full || capabilities.append) && (properties.branchless == below_runs) && list_goes_on
    })
}

/// Chooses the order of loops of a statement whose simplified value is `value`.
pub fn choose(statement: &IndexStatement, value: &IndexExpr) -> Result<LoopOrder> {
    let n = statement.variables.len();
    let reduction = match value {
        IndexExpr::Reduce(how, vars, body) => Some((how.clone(), vars.clone(), &**body)),
        _ => None,
    };
    let reduced: Vec<IndexVariable> = reduction.iter().flat_map(|(_, vars, _)| vars.clone()).collect();
    let assembled = match can_assemble(&statement.output.format) {
        true => statement.output.format.clone(),
        false => {
            let level = |level: &LevelKind| if level.properties().full { *level } else { COMPRESSED };
            let levels = statement.output.format.levels().iter().map(level).collect();
            let format = &statement.output.format;
            TensorFormat::new(levels, format.order().to_vec(), format.width())?
        }
    };
    let stored: Vec<IndexVariable> = assembled.order().iter().map(|&mode| statement.indices[mode]).collect();

    // Reductions inside the expression lie inside everything that is bound around them.
    let mut edges = Edges::new();
    let inner = reduction.as_ref().map_or(value, |(_, _, body)| *body);
    let outside: Vec<IndexVariable> = statement.indices.iter().chain(&reduced).copied().collect();
    nested_edges(inner, &outside, &mut edges);
    let mut groups: Vec<(Option<usize>, Edges)> = Vec::new();
    groups.push((None, gustavson_edges(statement, value, &stored, &reduced)));
    for (access, number) in value.accesses() {
        let format = &statement.operands[access.tensor].format;
        groups.push((Some(number), storage_edges(format, &|mode| variables_of(&access.index[mode]))));
    }
    let no_key = |var: IndexVariable| (0, 0, var.0);
    let mut converted = BTreeSet::new();
    for (access, group) in groups {
        let more: Edges = edges.union(&group).copied().collect();
        match (sorted(n, &more, &no_key), access) {
            (Some(_), _) => edges = more,
            (None, Some(number)) => {
                converted.insert(number);
            }
            (None, None) => {}
        }
    }
    let in_order = storage_edges(&assembled, &|mode| vec![statement.indices[mode]]);
    let with_output: Edges = edges.union(&in_order).copied().collect();
    let edges = if sorted(n, &with_output, &no_key).is_some() { with_output } else { edges };

    let classes = classes(statement, value);
    let key = |var: IndexVariable| {
        let place = stored.iter().position(|other| *other == var);
        (classes[var.0], place.is_none() as usize, place.unwrap_or(var.0))
    };
    let all = sorted(n, &edges, &key).ok_or_else(|| Error::internal("the loops have no order"))?;
    let position = |var: &IndexVariable| all.iter().position(|other| other == var).unwrap_or(0);

    let last_output = stored.iter().map(position).max().map_or(0, |last| last + 1);
    let leading: Vec<IndexVariable> = all
        .iter()
        .copied()
        .filter(|var| stored.contains(var) || reduced.contains(var) && position(var) < last_output)
        .collect();
    let scatter = (leading.len() > stored.len()).then(|| reduction.map(|(how, _, _)| how)).flatten();

    // The output is made in the order of its loops, unless a workspace sorts it.
    let output = match scatter.is_some() || assembled.is_dense() {
        true => assembled,
        false => {
            let in_order = stored.windows(2).all(|pair| position(&pair[0]) < position(&pair[1]));
            let mut modes: Vec<usize> = assembled.order().to_vec();
            modes.sort_by_key(|&mode| position(&statement.indices[mode]));
            if in_order { assembled } else { assembled.with_order(modes)? }
        }
    };

    let (mut operands, mut storage_of): (Vec<KernelOperand>, HashMap<usize, usize>) = (Vec::new(), HashMap::new());
    for (access, number) in value.accesses() {
        let mut format = statement.operands[access.tensor].format.clone();
        if converted.contains(&number) {
            let mut modes = format.order().to_vec();
            modes.sort_by_key(|&mode| variables_of(&access.index[mode]).iter().map(&position).max());
            format = format.with_order(modes)?;
        }
        let operand = KernelOperand { tensor: access.tensor, format };
        let found = operands.iter().position(|other| *other == operand);
        storage_of.insert(number, found.unwrap_or(operands.len()));
        if found.is_none() {
            operands.push(operand);
        }
    }
    Ok(LoopOrder { all, outer: leading, scatter, operands, storage_of, output })
}

fn nested_edges(expr: &IndexExpr, outside: &[IndexVariable], edges: &mut Edges) {
    match expr {
        IndexExpr::Reduce(_, vars, body) => {
            edges.extend(vars.iter().flat_map(|var| outside.iter().map(move |outer| (*outer, *var))));
            let outside: Vec<IndexVariable> = outside.iter().chain(vars).copied().collect();
            nested_edges(body, &outside, edges);
        }
        other => other.parts().into_iter().for_each(|part| nested_edges(part, outside, edges)),
    }
}

/// Where no sparse operand holds all output indices, results are found by scattering rows, not by dot products for every element.
fn gustavson_edges(
    statement: &IndexStatement,
    value: &IndexExpr,
    stored: &[IndexVariable],
    reduced: &[IndexVariable],
) -> Edges {
    let mut edges = Edges::new();
    let [first, .., last] = stored else { return edges };
    let sparse: Vec<BTreeSet<IndexVariable>> = value
        .accesses()
        .into_iter()
        .filter(|(access, _)| !statement.operands[access.tensor].format.is_dense())
        .map(|(access, _)| access.index.iter().flat_map(variables_of).collect())
        .collect();
    if sparse.iter().any(|vars| stored.iter().all(|var| vars.contains(var))) {
        return edges;
    }
    for var in reduced {
        if sparse.iter().any(|vars| vars.contains(var) && vars.contains(last)) {
            edges.insert((*var, *last));
        }
        if sparse.iter().any(|vars| vars.contains(var)) && !statement.output.format.is_dense() {
            edges.insert((*first, *var));
        }
    }
    edges
}

/// 1 for variables that only dense levels have, contiguous in some operand; 0 for others.
fn classes(statement: &IndexStatement, value: &IndexExpr) -> Vec<usize> {
    let mut sparse: BTreeMap<IndexVariable, bool> = BTreeMap::new();
    let mut contiguous = BTreeSet::new();
    for (access, _) in value.accesses() {
        let format = &statement.operands[access.tensor].format;
        for (l, level) in format.levels().iter().enumerate() {
            for var in variables_of(&access.index[format.order()[l]]) {
                *sparse.entry(var).or_default() |= !level.properties().full;
                if l + 1 == format.rank() {
                    contiguous.insert(var);
                }
            }
        }
    }
    let class = |v: usize| {
        let var = IndexVariable(v);
        (!sparse.get(&var).copied().unwrap_or(false) && contiguous.contains(&var)) as usize
    };
    (0..statement.variables.len()).map(class).collect()
}
