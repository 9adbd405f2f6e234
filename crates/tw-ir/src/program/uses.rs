//! The values that nodes read, at any depth.

use std::collections::HashSet;
use std::hash::BuildHasher;

use super::{Node, Op, Region, ValueId};

impl Op {
    /// The regions inside a loop or a branch; other operations have none.
    pub fn regions(&self) -> impl Iterator<Item = &Region> {
        let regions = match self {
            Op::While { condition: first, body: second } | Op::If { then: first, otherwise: second } => {
                [Some(first), Some(second)]
            }
            _ => [None, None],
        };
        regions.into_iter().flatten()
    }
}

impl Node {
    /// Adds the values that it and the regions inside it read.
    pub fn add_uses<S: BuildHasher>(&self, used: &mut HashSet<ValueId, S>) {
        used.extend(&self.args);
        self.op.regions().for_each(|region| region.add_uses(used));
    }
}

impl Region {
    /// Adds the values that it reads at any depth, and its results.
    pub fn add_uses<S: BuildHasher>(&self, used: &mut HashSet<ValueId, S>) {
        used.extend(&self.results);
        self.nodes.iter().for_each(|node| node.add_uses(used));
    }

    /// Values that the nodes from `start` on read, at any depth, and the results of the region.
    pub fn used_from<S: BuildHasher + Default>(&self, start: usize) -> HashSet<ValueId, S> {
        let mut used: HashSet<ValueId, S> = self.results.iter().copied().collect();
        self.nodes[start..].iter().for_each(|node| node.add_uses(&mut used));
        used
    }

    /// Its nodes and those of the regions inside it.
    pub fn all_nodes(&self) -> Vec<&Node> {
        let mut nodes = Vec::new();
        for node in &self.nodes {
            nodes.push(node);
            node.op.regions().for_each(|region| nodes.extend(region.all_nodes()));
        }
        nodes
    }
}

#[cfg(test)]
mod tests {
    use crate::program::{Op, Program, Region, TensorType, ValueId};
    use crate::span::Span;
    use crate::{DType, Extent};

    /// A loop inside a branch: its condition gives a value of the outermost region, its body one that is made there.
    #[test]
    fn uses_are_found_at_any_depth() {
        let mut program = Program::new();
        let mut value = || program.new_value(TensorType::dense(DType::F64, vec![Extent::Known(1)]));
        let [outer, flag, start, carried, made, end, result] = std::array::from_fn(|_| value());
        let node = |op: Op, args: &[ValueId], results: &[ValueId]| super::Node {
            op,
            args: args.to_vec(),
            results: results.to_vec(),
            span: Span::default(),
        };
        let condition = Region { params: vec![carried], nodes: vec![], results: vec![outer] };
        let body = Region { params: vec![], nodes: vec![node(Op::Resolve, &[carried], &[made])], results: vec![made] };
        let turns = node(Op::While { condition, body }, &[start], &[end]);
        let then = Region { params: vec![], nodes: vec![turns], results: vec![end] };
        let branch = node(Op::If { then, otherwise: Region::default() }, &[flag], &[result]);
        let region = Region { params: vec![], nodes: vec![branch], results: vec![result] };
        let sorted = |used: std::collections::HashSet<ValueId>| {
            let mut used: Vec<ValueId> = used.into_iter().collect();
            used.sort();
            used
        };
        assert_eq!(sorted(region.used_from(0)), [outer, flag, start, carried, made, end, result]);
        assert_eq!(sorted(region.used_from(1)), [result]);
        assert_eq!(region.all_nodes().len(), 3);
    }
}
