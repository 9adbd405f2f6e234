use std::time::Instant;

use super::*;

/// A small generator, so that every run sees the same networks.
struct Draws(u64);

impl Draws {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// Operands that each share an index with an earlier one, further indices at random places, and some indices kept.
fn random_network(draws: &mut Draws, operands: usize, extra: usize) -> (Vec<Vec<u32>>, Vec<u32>, Vec<f64>) {
    let mut indices = vec![Vec::new(); operands];
    let mut extents = Vec::new();
    let mut kept = Vec::new();
    for k in 0..operands - 1 + extra {
        let one = if k < operands - 1 { k + 1 } else { draws.below(operands as u64) as usize };
        let other = draws.below(if k < operands - 1 { one as u64 } else { operands as u64 }) as usize;
        let index = extents.len() as u32;
        indices[one].push(index);
        indices[other].push(index);
        extents.push((1 + draws.below(9)) as f64);
        if draws.below(8) == 0 {
            kept.push(index);
        }
    }
    (indices, kept, extents)
}

/// Operations of an order, counted from the definition.
fn operations(operands: &[Vec<u32>], kept: &[u32], extents: &[f64], order: &ContractionOrder) -> f64 {
    let summed_early = |index: &u32| kept.contains(index) || operands.iter().filter(|o| o.contains(index)).count() > 1;
    let mut terms: Vec<Option<Vec<u32>>> = operands
        .iter()
        .map(|indices| {
            let mut indices: Vec<u32> = indices.iter().copied().filter(summed_early).collect();
            indices.sort_unstable();
            indices.dedup();
            Some(indices)
        })
        .collect();
    let mut total = 0.0;
    for &(a, b) in &order.pairs {
        let all = union(&terms[a].take().expect("used once"), &terms[b].take().expect("used once"));
        let needed = |index: &u32| kept.contains(index) || terms.iter().flatten().any(|term| term.contains(index));
        let left: Vec<u32> = all.iter().copied().filter(needed).collect();
        let summed: f64 = all.iter().filter(|i| !left.contains(i)).map(|&i| extents[i as usize]).product();
        let points: f64 = all.iter().map(|&i| extents[i as usize]).product();
        total += points * if summed > 1.0 { 2.0 } else { 1.0 };
        terms.push(Some(left));
    }
    assert_eq!(terms.iter().flatten().count(), 1, "everything is multiplied");
    total
}

fn best_by_trying_all(network: &Network, terms: &[Option<Vec<u32>>]) -> f64 {
    let live: Vec<usize> = (0..terms.len()).filter(|&t| terms[t].is_some()).collect();
    let mut best = if live.len() == 1 { 0.0 } else { f64::INFINITY };
    for (k, &a) in live.iter().enumerate() {
        for &b in &live[k + 1..] {
            let mut next = terms.to_vec();
            let all = union(&next[a].take().unwrap_or_default(), &next[b].take().unwrap_or_default());
            let needed = |i: &&u32| network.kept[**i as usize] || next.iter().flatten().any(|term| term.contains(i));
            let left: Vec<u32> = all.iter().filter(needed).copied().collect();
            let here = network.pair_operations(&all, left.len());
            next.push(Some(left));
            best = best.min(here + best_by_trying_all(network, &next));
        }
    }
    best
}

#[test]
fn few_operands_have_the_best_of_all_orders() {
    let mut draws = Draws(1);
    for round in 0..60 {
        let (operands, kept, extents) = random_network(&mut draws, 2 + round % 5, round % 4);
        let network = Network::new(&operands, &kept, &extents);
        let terms: Vec<Option<Vec<u32>>> = network.operands.iter().cloned().map(Some).collect();
        let orders = network.orders(3);
        assert_eq!(orders[0].operations, best_by_trying_all(&network, &terms), "{operands:?} -> {kept:?}");
        for order in &orders {
            assert_eq!(order.operations, operations(&operands, &kept, &extents, order), "{operands:?} -> {kept:?}");
        }
        assert!(orders.is_sorted_by(|a, b| a.operations <= b.operations && a.pairs != b.pairs));
    }
}

#[test]
fn many_operands_are_counted_right_and_near_the_best() {
    let mut draws = Draws(2);
    for round in 0..20 {
        let (operands, kept, extents) = random_network(&mut draws, 12, round % 6);
        let network = Network::new(&operands, &kept, &extents);
        let exact = network.orders(1)[0].operations;
        for order in greedy::orders(&network, 4) {
            assert_eq!(order.operations, operations(&operands, &kept, &extents, &order), "{operands:?} -> {kept:?}");
            assert!(order.operations >= exact);
        }
        assert!(greedy::orders(&network, 1)[0].operations <= 1.25 * exact, "{operands:?} -> {kept:?}");
    }
    let (operands, kept, extents) = random_network(&mut draws, 300, 60);
    let network = Network::new(&operands, &kept, &extents);
    let order = &network.orders(1)[0];
    let counted = operations(&operands, &kept, &extents, order);
    assert!((order.operations / counted - 1.0).abs() < 1e-9);
}

#[test]
fn a_chain_of_matrices_is_solved_as_the_textbook_does() {
    // The example of Cormen et al.: 15125 multiplications, so twice as many operations.
    let sides = [30.0, 35.0, 15.0, 5.0, 10.0, 20.0, 25.0];
    let operands: Vec<Vec<u32>> = (0..6).map(|k| vec![k, k + 1]).collect();
    let order = &Network::new(&operands, &[0, 6], &sides).orders(1)[0];
    assert_eq!(order.operations, 2.0 * 15125.0);
}

/// The fewest operations of a chain of matrices by the textbook's program over its stretches, which knows nothing of sets of operands.
fn best_of_chain(sides: &[f64]) -> f64 {
    let n = sides.len() - 1;
    let mut best = vec![vec![0.0; n + 1]; n];
    for length in 2..=n {
        for start in 0..=n - length {
            let end = start + length;
            let cut = |middle: usize| {
                best[start][middle] + best[middle][end] + 2.0 * sides[start] * sides[middle] * sides[end]
            };
            best[start][end] = (start + 1..end).map(cut).fold(f64::INFINITY, f64::min);
        }
    }
    best[0][n]
}

fn random_chain(draws: &mut Draws, operands: u32) -> (Network, Vec<f64>) {
    let sides: Vec<f64> = (0..=operands).map(|_| (2 + draws.below(58)) as f64).collect();
    let indices: Vec<Vec<u32>> = (0..operands).map(|k| vec![k, k + 1]).collect();
    (Network::new(&indices, &[0, operands], &sides), sides)
}

#[test]
fn chains_of_up_to_sixteen_matrices_are_exact() {
    let mut draws = Draws(4);
    for operands in [9, 12, 14, 15, 16] {
        let (network, sides) = random_chain(&mut draws, operands);
        assert_eq!(network.orders(1)[0].operations, best_of_chain(&sides), "{sides:?}");
    }
}

#[test]
fn chains_of_many_matrices_are_near_the_best() {
    let mut draws = Draws(5);
    for operands in [17, 50, 200, 1000] {
        let (network, sides) = random_chain(&mut draws, operands);
        let ratio = network.orders(1)[0].operations / best_of_chain(&sides);
        assert!((1.0..1.01).contains(&ratio), "{operands} operands: {ratio}");
    }
}

#[test]
fn sets_of_more_than_64_indices_are_exact_too() {
    // Every pair of twelve operands shares an index of its own: 66 of them.
    let mut operands = vec![Vec::new(); 12];
    let mut extents = Vec::new();
    for a in 0..12 {
        for b in 0..a {
            operands[a].push(extents.len() as u32);
            operands[b].push(extents.len() as u32);
            extents.push(if (a + b) % 3 == 0 { 3.0 } else { 2.0 });
        }
    }
    let network = Network::new(&operands, &[], &extents);
    let order = &network.orders(1)[0];
    assert_eq!(order.operations, operations(&operands, &[], &extents, order));
    assert!(order.operations <= greedy::orders(&network, 1)[0].operations);
}

#[test]
fn repeated_private_and_unit_indices_do_not_matter() {
    let operands = vec![vec![0, 0, 1], vec![1, 2, 3], vec![2, 4]];
    let network = Network::new(&operands, &[0], &[4.0, 5.0, 6.0, 7.0, 1.0]);
    assert_eq!(network.orders(1)[0].operations, 2.0 * 30.0 + 2.0 * 20.0);
    assert_eq!(Network::new(&[vec![0]], &[], &[3.0]).orders(5)[0].pairs, []);
}

#[test]
fn one_index_of_a_thousand_operands_takes_few_looks() {
    let operands: Vec<Vec<u32>> = (0..1000).map(|k| vec![0, k + 1, (k + 1) % 1000 + 1]).collect();
    let extents: Vec<f64> = (0..1001).map(|k| (2 + k % 3) as f64).collect();
    let network = Network::new(&operands, &[0], &extents);
    let order = &network.orders(1)[0];
    assert_eq!(order.pairs.len(), 999);
    assert!(order.operations < 1e6, "{}", order.operations);
}

#[test]
fn sizes_beyond_all_numbers_are_still_ordered() {
    // A chain of thick matrices and one vector at its end, which makes everything cheap if it comes first.
    let operands: Vec<Vec<u32>> = (0..200).map(|k| if k == 199 { vec![k] } else { vec![k, k + 1] }).collect();
    let order = &Network::new(&operands, &[0], &vec![1e200; 200]).orders(1)[0];
    assert_eq!(order.operations, f64::INFINITY);
    let goes_on = |(made, pair): (usize, &(usize, usize))| made == 199 || pair.0 == made || pair.1 == made;
    assert!((199..).zip(&order.pairs).all(goes_on), "{:?}", order.pairs);
}

#[test]
#[ignore = "prints how long ordering takes; run with --release --ignored --nocapture"]
fn times() {
    let mut draws = Draws(3);
    for (operands, extra) in [(12, 6), (16, 8), (16, 30), (16, 100), (100, 50), (1000, 100), (1000, 500), (1000, 1500)]
    {
        let (indices, kept, extents) = random_network(&mut draws, operands, extra);
        let network = Network::new(&indices, &kept, &extents);
        let started = Instant::now();
        let order = &network.orders(3)[0];
        println!("{operands} operands, {extra} extra: {:.2e} in {:?}", order.operations, started.elapsed());
    }
}
