//! Better trees from good ones: every subtree of few leaves is replaced by the best one over the same leaves, until nothing changes.

use super::{ContractionOrder, Network, exact, union};

/// Leaves of a subtree that is looked at.
const LEAVES: usize = 7;

/// An order as a tree: nodes are the operands, then the pairs.
pub(super) struct Tree<'a> {
    network: &'a Network,
    nodes: Vec<Node>,
    root: usize,
    /// Pairs written so far.
    writes: usize,
    /// Per index of the current subtree: a bit for each leaf with the index, and one more if the tree above needs it.
    masks: Vec<u32>,
}

struct Node {
    children: Option<(usize, usize)>,
    /// Indices that the rest of the tree needs, and the number of points they span.
    indices: Vec<u32>,
    size: f64,
    /// Operations of this pair alone.
    operations: f64,
    /// When the node was written.
    written: usize,
    /// The subtree below it that could not be improved: nodes, and when they were written.
    settled: Vec<(usize, usize)>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(network: &'a Network, pairs: Vec<(usize, usize)>) -> Tree<'a> {
        let leaf = |indices: &Vec<u32>| Node {
            children: None,
            indices: indices.clone(),
            size: network.size(indices),
            operations: 0.0,
            written: 0,
            settled: Vec::new(),
        };
        let nodes = network.operands.iter().map(leaf).collect();
        let mut tree = Tree { network, nodes, root: 0, writes: 0, masks: vec![0; network.extents.len()] };
        let mut uses: Vec<usize> = network.kept.iter().map(|&kept| kept as usize).collect();
        network.operands.iter().flatten().for_each(|&index| uses[index as usize] += 1);
        for (a, b) in pairs {
            let (left, right) = (&tree.nodes[a].indices, &tree.nodes[b].indices);
            let all = union(left, right);
            left.iter().chain(right).for_each(|&index| uses[index as usize] -= 1);
            let indices: Vec<u32> = all.iter().copied().filter(|&index| uses[index as usize] > 0).collect();
            indices.iter().for_each(|&index| uses[index as usize] += 1);
            let operations = network.pair_operations(&all, indices.len());
            let (size, children) = (network.size(&indices), Some((a, b)));
            tree.nodes.push(Node { children, indices, size, operations, written: 0, settled: Vec::new() });
        }
        tree.root = tree.nodes.len() - 1;
        tree
    }

    /// Improves the tree while there are subtrees left to look at.
    pub(super) fn improve(&mut self, subtrees: &mut usize) {
        let mut changed = true;
        while changed {
            changed = false;
            for node in self.bottom_up() {
                if *subtrees == 0 {
                    return;
                }
                changed |= self.improve_at(node, subtrees);
            }
        }
    }

    /// Pairs, children before parents.
    fn bottom_up(&self) -> Vec<usize> {
        let (mut stack, mut found) = (vec![self.root], Vec::new());
        while let Some(node) = stack.pop() {
            if let Some((a, b)) = self.nodes[node].children {
                found.push(node);
                stack.extend([a, b]);
            }
        }
        found.reverse();
        found
    }

    fn improve_at(&mut self, top: usize, subtrees: &mut usize) -> bool {
        let (leaves, inner) = self.around(top);
        let written = |&node: &usize| (node, self.nodes[node].written);
        let subtree: Vec<(usize, usize)> = leaves.iter().chain(&inner).map(written).collect();
        if leaves.len() < 3 || self.nodes[top].settled == subtree {
            return false;
        }
        let before: f64 = inner.iter().map(|&node| self.nodes[node].operations).sum();
        let around = self.indices_around(&leaves, top);
        let local = self.local(&leaves, &around);
        // Sets of many indices take longer.
        *subtrees = subtrees.saturating_sub(1 + local.extents.len() / 64);
        let Some(best) = exact::orders(&local, 1).pop().filter(|best| best.operations < before * (1.0 - 1e-12)) else {
            self.nodes[top].settled = subtree;
            return false;
        };
        // The last pair takes the number of the top, so that references to it stay valid.
        let mut places: Vec<usize> = inner;
        places.retain(|&node| node != top);
        places.push(top);
        let place = |local: usize| if local < leaves.len() { leaves[local] } else { places[local - leaves.len()] };
        self.writes += 1;
        // The leaves below every node, as bits.
        let mut below: Vec<u32> = (0..leaves.len()).map(|leaf| 1 << leaf).collect();
        for (k, (a, b)) in best.pairs.into_iter().enumerate() {
            let inside = below[a] | below[b];
            below.push(inside);
            let (a, b) = (place(a), place(b));
            let all = union(&self.nodes[a].indices, &self.nodes[b].indices);
            let left = around.iter().filter(|(_, mask)| mask & inside != 0 && mask & !inside != 0);
            let indices: Vec<u32> = left.map(|(index, _)| *index).collect();
            let operations = self.network.pair_operations(&all, indices.len());
            let (size, children) = (self.network.size(&indices), Some((a, b)));
            let written = self.writes;
            self.nodes[places[k]] = Node { children, indices, size, operations, written, settled: Vec::new() };
        }
        true
    }

    /// The indices of the leaves of a subtree, ascending: which leaves have them, and whether the tree above needs them.
    fn indices_around(&mut self, leaves: &[usize], top: usize) -> Vec<(u32, u32)> {
        let mut around = Vec::new();
        for (bit, &node) in leaves.iter().chain([&top]).enumerate() {
            for &index in &self.nodes[node].indices {
                let mask = &mut self.masks[index as usize];
                if *mask == 0 {
                    around.push((index, 0));
                }
                *mask |= 1 << bit;
            }
        }
        around.sort_unstable();
        around.iter_mut().for_each(|(index, mask)| *mask = std::mem::take(&mut self.masks[*index as usize]));
        around
    }

    /// The leaves of a subtree as a network of their own, where indices that the same leaves have are one.
    fn local(&self, leaves: &[usize], around: &[(u32, u32)]) -> Network {
        let mut alike = [(1.0, 0.0); 2 << LEAVES];
        for &(index, mask) in around {
            let (extent, log) = &mut alike[mask as usize];
            *extent *= self.network.extents[index as usize];
            *log += self.network.logs[index as usize];
        }
        let mut local = Network::without_indices(leaves.len(), self.network.shift);
        for (mask, (extent, log)) in alike.into_iter().enumerate().filter(|(_, (_, log))| *log > 0.0) {
            let having = (0..leaves.len()).filter(|leaf| mask >> leaf & 1 == 1);
            local.push(having, mask >> leaves.len() & 1 == 1, extent, log);
        }
        local
    }

    /// The leaves of a subtree, the largest taken apart first, and the pairs inside of it.
    fn around(&self, top: usize) -> (Vec<usize>, Vec<usize>) {
        let (mut leaves, mut inner) = (vec![top], Vec::new());
        while leaves.len() < LEAVES {
            let size = |&(_, &leaf): &(usize, &usize)| self.nodes[leaf].size;
            let open = leaves.iter().enumerate().filter(|(_, leaf)| self.nodes[**leaf].children.is_some());
            let Some((place, &node)) = open.max_by(|a, b| size(a).total_cmp(&size(b))) else { break };
            let Some((a, b)) = self.nodes[node].children else { break };
            leaves[place] = a;
            leaves.push(b);
            inner.push(node);
        }
        (leaves, inner)
    }

    pub(super) fn order(&self) -> ContractionOrder {
        let leaves = self.network.operands.len();
        let mut number: Vec<usize> = (0..self.nodes.len()).collect();
        let mut order = ContractionOrder { pairs: Vec::with_capacity(leaves - 1), operations: 0.0 };
        for node in self.bottom_up() {
            let Some((a, b)) = self.nodes[node].children else { continue };
            number[node] = leaves + order.pairs.len();
            order.pairs.push((number[a], number[b]));
            order.operations += self.nodes[node].operations;
        }
        order
    }
}
