//! Orders for many operands: the pair that looks best goes first. Several rules of what looks best are tried, and their trees improved.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use super::improve::Tree;
use super::{Network, Order, union};

/// How much the memory that a pair frees counts against what its result takes.
const WEIGHTS: [f64; 4] = [1.0, 0.5, 0.0, 2.0];

/// Pairs that are looked at before no further rule is tried and terms whose partner is gone get no new one.
const LIMIT: usize = 1_000_000;

pub(super) fn orders(network: &Network, wanted: usize) -> Vec<Order> {
    let mut found = Vec::new();
    let mut looked = 0;
    for weight in WEIGHTS {
        let mut greedy = Greedy::new(network, weight);
        greedy.run();
        looked += greedy.looked;
        let mut tree = Tree::new(network, greedy.pairs);
        let is_finite = tree.order().operations.is_finite();
        if is_finite {
            tree.improve();
        }
        found.push(tree.order());
        if looked > LIMIT || !is_finite {
            break;
        }
    }
    found.sort_by(|a, b| a.operations.total_cmp(&b.operations));
    found.dedup_by(|a, b| a.pairs == b.pairs);
    found.truncate(wanted);
    found
}

struct Greedy<'a> {
    network: &'a Network,
    weight: f64,
    /// Indices of every operand and result; none once it has been multiplied.
    terms: Vec<Option<Vec<u32>>>,
    /// The live term with these indices, if any: terms with the same ones are multiplied at once.
    alike: HashMap<Vec<u32>, usize>,
    /// Live terms that have an index.
    users: Vec<Vec<usize>>,
    queue: BinaryHeap<Candidate>,
    pairs: Vec<(usize, usize)>,
    /// Pairs whose score was computed.
    looked: usize,
}

impl<'a> Greedy<'a> {
    fn new(network: &'a Network, weight: f64) -> Greedy<'a> {
        Greedy {
            network,
            weight,
            terms: Vec::new(),
            alike: HashMap::new(),
            users: vec![Vec::new(); network.extents.len()],
            queue: BinaryHeap::new(),
            pairs: Vec::new(),
            looked: 0,
        }
    }

    fn run(&mut self) {
        for indices in &self.network.operands {
            self.terms.push(Some(indices.clone()));
            indices.iter().for_each(|&index| self.users[index as usize].push(self.terms.len() - 1));
        }
        (0..self.network.operands.len()).for_each(|term| self.multiply_if_alike(term));
        for term in (0..self.terms.len()).filter(|&term| self.terms[term].is_some()).collect::<Vec<_>>() {
            self.suggest(term, |other| other > term);
        }
        while let Some(candidate) = self.queue.pop() {
            let (a, b) = candidate.pair;
            if self.terms[a].is_none() || self.terms[b].is_none() {
                // One of them is gone; the other needs a new partner, unless that has cost enough already.
                let left = [a, b].into_iter().filter(|&term| self.terms[term].is_some() && self.looked < LIMIT);
                left.collect::<Vec<_>>().into_iter().for_each(|term| self.suggest(term, |_| true));
                continue;
            }
            let now = self.score(a, b);
            if now < candidate.score {
                self.queue.push(Candidate { score: now, pair: (a, b) });
                continue;
            }
            let made = self.multiply(a, b);
            self.suggest(made, |_| true);
        }
        self.multiply_the_rest();
    }

    /// Queues the best partner of a term among those that share an index with it.
    fn suggest(&mut self, term: usize, allowed: impl Fn(usize) -> bool) {
        let Some(indices) = &self.terms[term] else { return };
        let mut others: Vec<usize> =
            indices.iter().flat_map(|&index| &self.users[index as usize]).copied().filter(|&t| t != term).collect();
        others.retain(|&other| allowed(other));
        others.sort_unstable();
        others.dedup();
        self.looked += others.len();
        let scored = others
            .into_iter()
            .map(|other| Candidate { score: self.score(term, other), pair: (term.min(other), term.max(other)) });
        if let Some(best) = scored.max() {
            self.queue.push(best);
        }
    }

    /// What the result takes, less what is freed.
    fn score(&self, a: usize, b: usize) -> f64 {
        let (Some(left), Some(right)) = (&self.terms[a], &self.terms[b]) else { return f64::INFINITY };
        let (mut result, mut freed_left, mut freed_right) = (1.0, 1.0, 1.0);
        for &index in left {
            let extent = self.network.extents[index as usize];
            freed_left *= extent;
            // An index of one term alone is needed by another, or kept.
            let stays = self.network.kept[index as usize]
                || self.users[index as usize].len() > 2
                || right.binary_search(&index).is_err();
            if stays {
                result *= extent;
            }
        }
        for &index in right {
            let extent = self.network.extents[index as usize];
            freed_right *= extent;
            if left.binary_search(&index).is_err() {
                result *= extent;
            }
        }
        result - self.weight * (freed_left + freed_right)
    }

    fn multiply(&mut self, a: usize, b: usize) -> usize {
        let (left, right) = (self.take(a), self.take(b));
        // The users of an index no longer count the two.
        let needed = |index: &u32| self.network.kept[*index as usize] || !self.users[*index as usize].is_empty();
        let result: Vec<u32> = union(&left, &right).into_iter().filter(needed).collect();
        self.pairs.push((a, b));
        let made = self.terms.len();
        result.iter().for_each(|&index| self.users[index as usize].push(made));
        self.terms.push(Some(result));
        self.multiply_if_alike(made);
        self.terms.len() - 1
    }

    fn take(&mut self, term: usize) -> Vec<u32> {
        let indices = self.terms[term].take().unwrap_or_default();
        indices.iter().for_each(|&index| self.users[index as usize].retain(|&user| user != term));
        if self.alike.get(&indices) == Some(&term) {
            self.alike.remove(&indices);
        }
        indices
    }

    fn multiply_if_alike(&mut self, term: usize) {
        let Some(indices) = self.terms[term].clone() else { return };
        match self.alike.get(&indices) {
            Some(&other) if other != term => {
                self.multiply(other, term);
            }
            _ => {
                self.alike.insert(indices, term);
            }
        }
    }

    /// What shares no index is multiplied at the end, small ones first.
    fn multiply_the_rest(&mut self) {
        let mut rest: BinaryHeap<Candidate> = BinaryHeap::new();
        let sized = |greedy: &Self, term: usize| {
            let indices = greedy.terms[term].as_ref()?;
            Some(Candidate { score: greedy.network.size(indices), pair: (term, term) })
        };
        rest.extend((0..self.terms.len()).filter_map(|term| sized(self, term)));
        while let (Some(a), Some(b)) = (rest.pop(), rest.pop()) {
            let made = self.multiply(a.pair.0, b.pair.0);
            rest.extend(sized(self, made));
        }
    }
}

/// A pair that may be multiplied; the greatest is the one with the lowest score, then the earliest.
struct Candidate {
    score: f64,
    pair: (usize, usize),
}

impl Ord for Candidate {
    fn cmp(&self, other: &Candidate) -> Ordering {
        other.score.total_cmp(&self.score).then_with(|| other.pair.cmp(&self.pair))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Candidate) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}
