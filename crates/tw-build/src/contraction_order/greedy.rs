//! Orders for many operands: the pair that looks best goes first. Several rules of what looks best are tried, and their trees improved.
//!
//! Sizes are logarithms here: those of dense networks have no floating-point numbers.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use tw_ir::scalar::elementary::Elementary;

use super::improve::Tree;
use super::{ContractionOrder, Network};

/// What looks best.
#[derive(Clone, Copy)]
struct Rule {
    /// How much the memory that a pair frees counts against what its result takes.
    weight: f64,
    /// Whether a term whose partner is gone gets a new one at once. Without, every index suggests partners in the beginning, and only what is new does later: the rule that most others use.
    finds_new_partners: bool,
}

const RULES: [Rule; 5] = [
    Rule { weight: 1.0, finds_new_partners: false },
    Rule { weight: 1.0, finds_new_partners: true },
    Rule { weight: 0.5, finds_new_partners: true },
    Rule { weight: 0.0, finds_new_partners: true },
    Rule { weight: 2.0, finds_new_partners: true },
];

/// Words of sets of indices that are looked at before no further rule is tried and terms whose partner is gone get no new one.
const LIMIT: usize = 5_000_000;

/// Subtrees that are looked at before trees are taken as they are.
const SUBTREES: usize = 12_000;

/// Bits of the largest size that is counted as it is.
const MOST_BITS: f64 = 900.0;

/// The logarithm of a unit in which the sizes of a good order can be counted.
pub(super) fn unit(network: &Network) -> f64 {
    let mut greedy = Greedy::new(network, RULES[0]);
    greedy.run();
    (greedy.largest - MOST_BITS).max(0.0)
}

pub(super) fn orders(network: &Network, wanted: usize) -> Vec<ContractionOrder> {
    let mut found: Vec<(Vec<(usize, usize)>, f64)> = Vec::new();
    let mut looked = 0;
    for rule in RULES {
        let mut greedy = Greedy::new(network, rule);
        greedy.run();
        looked += greedy.looked;
        found.push((greedy.pairs, greedy.largest));
        if looked > LIMIT {
            break;
        }
    }
    // What is far smaller than the largest of all sizes does not matter beside it.
    let largest = found.iter().map(|(_, largest)| *largest).fold(f64::INFINITY, f64::min);
    let scaled = network.scaled((largest - MOST_BITS).max(network.shift));
    let mut trees: Vec<(f64, Tree<'_>)> = Vec::new();
    for (pairs, _) in found {
        let tree = Tree::new(&scaled, pairs);
        trees.push((tree.order().operations, tree));
    }
    // All of them somewhat, then the best as far as it may go: which that is cannot be told before.
    let mut left = SUBTREES;
    for (operations, tree) in trees.iter_mut().filter(|(operations, _)| operations.is_finite()) {
        let mut subtrees = SUBTREES / RULES.len() / 2;
        left -= subtrees;
        tree.improve(&mut subtrees);
        left += subtrees;
        *operations = tree.order().operations;
    }
    trees.sort_by(|a, b| a.0.total_cmp(&b.0));
    trees.iter_mut().for_each(|(_, tree)| tree.improve(&mut left));
    let mut orders: Vec<ContractionOrder> = trees.iter().map(|(_, tree)| tree.order()).collect();
    orders.sort_by(|a, b| a.operations.total_cmp(&b.operations));
    orders.dedup_by(|a, b| a.pairs == b.pairs);
    orders.truncate(wanted);
    orders.iter_mut().for_each(|order| order.operations *= Elementary::exp2(scaled.shift - network.shift));
    orders
}

/// A set of indices, with the logarithm of how many points they span.
#[derive(Clone)]
struct Term {
    bits: Vec<u64>,
    log: f64,
}

struct Greedy<'a> {
    network: &'a Network,
    rule: Rule,
    logs: Vec<f64>,
    /// Every operand and result; none once it has been multiplied.
    terms: Vec<Option<Term>>,
    /// The live term with these indices, if any: terms with the same ones are multiplied at once.
    alike: HashMap<Vec<u64>, usize>,
    /// Live terms that have an index.
    users: Vec<Vec<usize>>,
    queue: BinaryHeap<Candidate>,
    pairs: Vec<(usize, usize)>,
    /// Words that were looked at.
    looked: usize,
    /// The logarithm of the most points of any pair.
    largest: f64,
}

impl<'a> Greedy<'a> {
    fn new(network: &'a Network, rule: Rule) -> Greedy<'a> {
        Greedy {
            network,
            rule,
            logs: network.logs.clone(),
            terms: Vec::new(),
            alike: HashMap::new(),
            users: vec![Vec::new(); network.extents.len()],
            queue: BinaryHeap::new(),
            pairs: Vec::new(),
            looked: 0,
            largest: 0.0,
        }
    }

    fn run(&mut self) {
        for indices in &self.network.operands {
            let mut bits = vec![0u64; self.logs.len().div_ceil(64)];
            indices.iter().for_each(|&index| bits[index as usize / 64] |= 1 << (index % 64));
            let log = indices.iter().map(|&index| self.logs[index as usize]).sum();
            self.terms.push(Some(Term { bits, log }));
            indices.iter().for_each(|&index| self.users[index as usize].push(self.terms.len() - 1));
        }
        (0..self.network.operands.len()).for_each(|term| self.multiply_if_alike(term));
        if self.rule.finds_new_partners {
            for term in (0..self.terms.len()).filter(|&term| self.terms[term].is_some()).collect::<Vec<_>>() {
                let others = self.next_to(term).into_iter().filter(|&other| other > term).collect();
                self.suggest(term, others);
            }
        } else {
            for index in (0..self.users.len()).filter(|&index| !self.network.kept[index]) {
                let mut users = self.users[index].clone();
                users.sort_unstable();
                (1..users.len()).for_each(|k| self.suggest(users[k - 1], users[k..].to_vec()));
            }
        }
        while let Some(candidate) = self.queue.pop() {
            let (b, a) = candidate.pair;
            if self.terms[a].is_none() || self.terms[b].is_none() {
                // One of them is gone; the other needs a new partner, unless that has cost enough already.
                let mut left = vec![a, b];
                left.retain(|&term| self.rule.finds_new_partners && self.terms[term].is_some() && self.looked < LIMIT);
                for term in left {
                    let others = self.next_to(term);
                    self.suggest(term, others);
                }
                continue;
            }
            let made = self.multiply(a, b);
            let others = self.next_to(made);
            self.suggest(made, others);
        }
        self.multiply_the_rest();
    }

    /// Terms that share an index with a term, which may be summed one day.
    fn next_to(&self, term: usize) -> Vec<usize> {
        let Some(Term { bits, .. }) = &self.terms[term] else { return Vec::new() };
        let shared = ones(bits).filter(|&index| self.rule.finds_new_partners || !self.network.kept[index]);
        let mut others: Vec<usize> =
            shared.flat_map(|index| &self.users[index]).copied().filter(|&other| other != term).collect();
        others.sort_unstable();
        others.dedup();
        others
    }

    /// Queues the best partner of a term among some.
    fn suggest(&mut self, term: usize, others: Vec<usize>) {
        self.looked += others.len() * self.logs.len().div_ceil(64);
        let scored = others.into_iter().map(|other| {
            let (result, [one, two]) = self.sizes(term, other);
            let score = difference(result, self.rule.weight, one, two);
            Candidate { score, pair: (term.max(other), term.min(other)) }
        });
        if let Some(best) = scored.max() {
            self.queue.push(best);
        }
    }

    /// The logarithms of the sizes of what two terms make, and of both.
    fn sizes(&self, a: usize, b: usize) -> (f64, [f64; 2]) {
        let (Some(one), Some(two)) = (&self.terms[a], &self.terms[b]) else { return (f64::INFINITY, [0.0; 2]) };
        let mut result = one.log + two.log;
        let both: Vec<u64> = one.bits.iter().zip(&two.bits).map(|(a, b)| a & b).collect();
        for index in ones(&both) {
            // It was counted twice, and once more if no other operand needs it.
            let stays = self.network.kept[index] || self.users[index].len() > 2;
            result -= self.logs[index] * if stays { 1.0 } else { 2.0 };
        }
        (result, [one.log, two.log])
    }

    fn multiply(&mut self, a: usize, b: usize) -> usize {
        let (one, two) = (self.take(a), self.take(b));
        let all: Vec<u64> = one.bits.iter().zip(&two.bits).map(|(a, b)| a | b).collect();
        let (mut bits, mut log) = (all.clone(), 0.0);
        let mut points = 0.0;
        for index in ones(&all) {
            points += self.logs[index];
            // The users of an index no longer count the two.
            if self.network.kept[index] || !self.users[index].is_empty() {
                log += self.logs[index];
            } else {
                bits[index / 64] &= !(1 << (index % 64));
            }
        }
        self.largest = self.largest.max(points);
        self.pairs.push((a, b));
        let made = self.terms.len();
        ones(&bits).for_each(|index| self.users[index].push(made));
        self.terms.push(Some(Term { bits, log }));
        self.multiply_if_alike(made);
        self.terms.len() - 1
    }

    fn take(&mut self, number: usize) -> Term {
        let term = self.terms[number].take().unwrap_or(Term { bits: Vec::new(), log: 0.0 });
        ones(&term.bits).for_each(|index| self.users[index].retain(|&user| user != number));
        if self.alike.get(&term.bits) == Some(&number) {
            self.alike.remove(&term.bits);
        }
        term
    }

    fn multiply_if_alike(&mut self, number: usize) {
        let Some(Term { bits, .. }) = self.terms[number].clone() else { return };
        match self.alike.get(&bits) {
            Some(&other) if other != number => {
                self.multiply(other, number);
            }
            _ => {
                self.alike.insert(bits, number);
            }
        }
    }

    /// Contracts the remaining operands at the end, small ones first.
    fn multiply_the_rest(&mut self) {
        let mut rest: BinaryHeap<Candidate> = BinaryHeap::new();
        let sized = |greedy: &Self, term: usize| {
            let log = greedy.terms[term].as_ref()?.log;
            Some(Candidate { score: log, pair: (term, term) })
        };
        rest.extend((0..self.terms.len()).filter_map(|term| sized(self, term)));
        let mut waiting: Option<usize> = None;
        while let Some(Candidate { pair: (term, _), .. }) = rest.pop() {
            // What was made may have been multiplied at once with something that is still in the list.
            if self.terms[term].is_none() {
                continue;
            }
            match waiting.take().filter(|&other| self.terms[other].is_some()) {
                None => waiting = Some(term),
                Some(other) => {
                    let made = self.multiply(other, term);
                    rest.extend(sized(self, made));
                }
            }
        }
    }
}

/// The positions of the bits that are set.
fn ones(bits: &[u64]) -> impl Iterator<Item = usize> {
    bits.iter().enumerate().flat_map(|(word, &bits)| {
        std::iter::successors((bits != 0).then_some(bits), |left| Some(left & (left - 1)).filter(|left| *left != 0))
            .map(move |left| 64 * word + left.trailing_zeros() as usize)
    })
}

/// A number that is ordered as `2^result - weight (2^one + 2^two)` is, which may have no floating-point number: its logarithm, on either side of zero.
fn difference(result: f64, weight: f64, one: f64, two: f64) -> f64 {
    /// More than any logarithm.
    const FAR: f64 = 1e6;
    let largest = result.max(one).max(two);
    // Not those of the system, which differ between machines in the last bits: plans would, too.
    let [result, one, two] = [result, one, two].map(|log| Elementary::exp2(log - largest));
    let value = result - weight * (one + two);
    // Sizes that are equal but for rounding should be found equal, so that the first of them goes first.
    let log = ((largest + Elementary::log2(value.abs())) * 1e9).round() / 1e9;
    match value {
        _ if value.abs() < 1e-12 => 0.0,
        _ if value > 0.0 => FAR + log,
        _ => -FAR - log,
    }
}

/// A pair that may be multiplied; the greatest is the one with the lowest score, then the earliest.
struct Candidate {
    score: f64,
    /// The later one first.
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
