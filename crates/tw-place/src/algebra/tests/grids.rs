//! Grids of any three factors are terms: what they send, by the algebra and by the formula for words through a rank.
//!
//! A voxel of a grid is a pair of blocks to be multiplied, and a shuffle by its three numbers takes it to a site. SiteSet
//! are chosen by hashing, so of P voxels some may share a site and send nothing to each other. The formula has one
//! voxel on each site. Hence [`wire`], the average over all ways to hash, is the formula times 1 - 1/P, the chance that
//! two voxels are apart; what a single way to hash sends is at most the formula; and what one sends that takes no two
//! voxels to one site is the formula exactly.

use std::collections::BTreeMap;

use super::super::*;
use super::{cut, somewhere};

/// A product of an m x k and a k x n matrix, cut into a, b and c along m, n and k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grid {
    dims: [u64; 3],
    cuts: [u64; 3],
}

/// All grids with so many voxels.
fn grids(dims: [u64; 3], sites: u64) -> Vec<Grid> {
    let divisors = |n: u64| (1..=n).filter(move |d| n.is_multiple_of(*d));
    let rest = |a: u64| divisors(sites / a).map(move |b| Grid { dims, cuts: [a, b, sites / a / b] });
    divisors(sites).flat_map(rest).collect()
}

/// The arrays of some keys one after another, as wide together as so many.
fn concat(pieces: RelationTerm, group: &[usize], n: u64) -> RelationTerm {
    let whole = move |bounds: &[&[u64]]| vec![bounds[0][0], bounds[0][1] * n];
    // Numbers stand for arrays: any function that needs every piece will do.
    let (before, kernel) =
        (KernelFunction::identity(), KernelFunction::same_bound("append", |v| v[0].wrapping_add(v[1])));
    let after = KernelFunction::new("whole", whole, |values| values[0]);
    RelationTerm::Aggregate { group: group.to_vec(), before, kernel, after, input: Box::new(pieces) }
}

impl Grid {
    /// Words through all ranks together: every rank gets the blocks of its voxel but for what it owns, a P-th of each
    /// matrix. It is P times mk/(ac) + kn/(cb) + mn/(ab) - (mk + kn + mn)/P.
    fn formula(&self) -> u64 {
        let ([m, n, k], [a, b, c]) = (self.dims, self.cuts);
        m * k * (b - 1) + k * n * (a - 1) + m * n * (c - 1)
    }

    /// The left matrix by (i, k, piece) and the right one by (piece, k, j): of every block a piece at each voxel that
    /// needs the block. Blocks that are not cut would be on fewer sites than there are, which is not evenly spread.
    fn inputs(&self) -> [Type; 2] {
        let ([m, n, k], [a, b, c]) = (self.dims, self.cuts);
        let spread = || Spread::part(&[0, 1, 2]);
        [Type::new(&[a, c, b], &[m / a, k / c / b], spread()), Type::new(&[a, c, b], &[k / c, n / b / a], spread())]
    }

    /// Blocks at their voxels by (i, k, j), multiplied, and the products by (i, piece, k, j): of every block of the
    /// result a piece for each voxel with a part of it.
    fn voxels(&self) -> RelationTerm {
        let [a, b, c] = self.cuts;
        let [left, right] = self.inputs();
        let left =
            RelationTerm::input("a", left).map(KeyMap::insert(3, b), KernelFunction::identity()).shuffle(&[0, 1, 3]);
        let right =
            RelationTerm::input("b", right).map(KeyMap::insert(0, a), KernelFunction::identity()).shuffle(&[0, 2, 3]);
        let (left, right) = (concat(left, &[0, 1, 3], b), concat(right, &[0, 2, 3], a));
        let product = left.join(right, &[(0, 0), (1, 1), (2, 2)], KernelFunction::mat_mul());
        let piece = move |bounds: &[&[u64]]| vec![bounds[0][0], bounds[0][1] / c];
        product.map(KeyMap::insert(1, c), KernelFunction::new("piece", piece, |values| values[0]))
    }

    /// The product by (i, piece, j), summed on each site and then between sites.
    fn term(&self) -> RelationTerm {
        let parts = self.voxels().aggregate(&[0, 1, 3], KernelFunction::add());
        parts.shuffle(&[0, 1, 2]).aggregate(&[0, 1, 2], KernelFunction::add())
    }

    fn values(&self, sites: SiteSet) -> BTreeMap<String, Tuples> {
        let value = |key: &[u64]| key.iter().fold(3, |v, &k| (7 * v + k as i64) % 101);
        let [left, right] = self.inputs();
        BTreeMap::from([("a".into(), sites.spread(&left, value)), ("b".into(), sites.spread(&right, value))])
    }
}

/// Numbers that leave their site when a term is computed.
fn sent(term: &RelationTerm, inputs: &BTreeMap<String, Tuples>, sites: SiteSet) -> u64 {
    let below: u64 = term.parts().into_iter().map(|part| sent(part, inputs, sites)).sum();
    let RelationTerm::Shuffle(by, input) = term else { return below };
    let there = |key: &[u64]| sites.of(by.iter().map(|&k| key[k]));
    let moved = evaluate(input, inputs, sites).unwrap().into_keys().filter(|(key, site)| there(key) != *site).count();
    below + moved as u64 * input.types().unwrap().bound.iter().product::<u64>()
}

/// Shapes that every grid cuts evenly.
fn shapes(sites: u64) -> Vec<[u64; 3]> {
    let shapes = [[1, 1, 1], [16, 1, 1], [1, 1, 40], [8, 8, 1], [3, 2, 1], [1, 5, 4]];
    shapes.map(|shape| shape.map(|n| n * sites)).to_vec()
}

/// The grids that send least.
fn cheapest(grids: &[Grid], sends: impl Fn(&Grid) -> u64) -> Vec<Grid> {
    let least = grids.iter().map(&sends).min();
    grids.iter().filter(|grid| Some(sends(grid)) == least).copied().collect()
}

#[test]
fn every_grid_sends_what_the_formula_says() {
    for sites in [4, 6, 8, 12] {
        for dims in shapes(sites) {
            let all = grids(dims, sites);
            for grid in &all {
                let ty = grid.term().types().unwrap();
                assert_eq!((ty.n_floats(), ty.spread), (dims[0] * dims[1], Spread::part(&[0, 1, 2])));
                let found = wire(&grid.term(), sites).unwrap();
                assert!(found <= grid.formula());
                assert_eq!(found * sites, grid.formula() * (sites - 1), "{grid:?}");
            }
            let by_wire = cheapest(&all, |grid| wire(&grid.term(), sites).unwrap());
            assert_eq!(by_wire, cheapest(&all, Grid::formula), "{dims:?} on {sites}");
        }
    }
}

#[test]
fn voxels_apart_send_exactly_what_the_formula_says() {
    for n in [4, 6, 8, 12] {
        for grid in grids([n as u64; 3].map(|side| side * 2), n as u64) {
            let voxels = Type::new(&[grid.cuts[0], grid.cuts[2], grid.cuts[1]], &[], Spread::All).keys();
            let used = |sites: SiteSet| {
                voxels.iter().fold(0_u64, |used, key| used | 1 << sites.of(key.iter().copied())).count_ones()
            };
            let count = |sites: SiteSet| sent(&grid.term(), &grid.values(sites), sites);
            let mut apart = (0..).map(|seed| SiteSet { n, seed }).filter(|&sites| used(sites) == n);
            assert_eq!(count(apart.next().unwrap()), grid.formula(), "{grid:?} on {n}");
            let mut hashed = (0..10).map(|seed| SiteSet { n, seed });
            assert!(hashed.all(|sites| count(sites) <= grid.formula()), "{grid:?} on {n}");
        }
    }
}

#[test]
fn every_grid_computes_the_product() {
    for n in [4, 6, 12] {
        for grid in grids([n as u64; 3], n as u64) {
            let sites = SiteSet { n, seed: 7 };
            let inputs = grid.values(sites);
            let block = |name: &str, is: &dyn Fn(&[u64]) -> bool| -> i64 {
                inputs[name].iter().filter(|((key, _), _)| is(key)).map(|(_, array)| array).sum()
            };
            let found = evaluate(&grid.term(), &inputs, sites).unwrap();
            assert_eq!(found.len() as u64, n as u64);
            for ((key, _), array) in found {
                let left = |k: u64| block("a", &|at| at[..2] == [key[0], k]);
                let right = |k: u64| block("b", &|at| at[1..] == [k, key[2]]);
                assert_eq!(array, (0..grid.cuts[2]).map(|k| left(k) * right(k)).sum::<i64>(), "{grid:?} at {key:?}");
            }
        }
    }
}

#[test]
fn the_products_of_the_paper_are_grids() {
    for sites in [4, 6, 8, 12] {
        for dims in shapes(sites) {
            let [m, n, k] = dims;
            let matmul = |a: RelationTerm, b: RelationTerm| a.join(b, &[(1, 0)], KernelFunction::mat_mul());
            let formula = |cuts: [u64; 3]| {
                let grid = grids(dims, sites).into_iter().find(|grid| grid.cuts == cuts).unwrap();
                (grid.formula(), wire(&grid.term(), sites).unwrap())
            };
            // A broadcast reaches every site but one and hashes nothing, so it sends what the formula says.
            let rows = cut("a", [m, k], [sites, 1], Spread::part(&[0]));
            let bmm = matmul(rows, cut("b", [k, n], [1, sites], Spread::part(&[1])).broadcast());
            let bmm = bmm.aggregate(&[0, 2], KernelFunction::add());
            assert_eq!(wire(&bmm, sites).unwrap(), formula([sites, 1, 1]).0);
            // Every site has a part of every block of the sum, and whichever site a block is summed on has one.
            let columns = cut("a", [m, k], [sites, sites], Spread::part(&[1]));
            let cmm = matmul(columns, cut("b", [k, n], [sites, sites], Spread::part(&[0])));
            let cmm = cmm
                .aggregate(&[0, 2], KernelFunction::add())
                .shuffle(&[0, 1])
                .aggregate(&[0, 1], KernelFunction::add());
            assert_eq!(wire(&cmm, sites).unwrap(), formula([1, 1, sites]).0);
            // Whole blocks are replicated from where they are hashed to: a copy is at its voxel only by chance.
            for grid in grids(dims, sites).iter().filter(|grid| !grid.cuts.contains(&1)) {
                let [a, b, c] = grid.cuts;
                let left = cut("a", [m, k], [a, c], Spread::part(&[0, 1]))
                    .map(KeyMap::insert(2, b), KernelFunction::identity());
                let right = cut("b", [k, n], [c, b], Spread::part(&[0, 1]))
                    .map(KeyMap::insert(0, a), KernelFunction::identity());
                let (left, right) = (left.shuffle(&[0, 1, 2]), right.shuffle(&[0, 1, 2]));
                let rmm = left.join(right, &[(0, 0), (1, 1), (2, 2)], KernelFunction::mat_mul());
                let rmm = rmm
                    .aggregate(&[0, 2], KernelFunction::add())
                    .shuffle(&[0, 1])
                    .aggregate(&[0, 1], KernelFunction::add());
                let owned = m * k + k * n + m * n;
                assert_eq!(wire(&rmm, sites).unwrap() * sites, (grid.formula() + owned) * (sites - 1), "{grid:?}");
                assert!(formula(grid.cuts).1 < wire(&rmm, sites).unwrap());
            }
        }
    }
}

#[test]
fn cheapest_grids_are_those_of_the_reference() {
    for (dims, per_rank, cuts) in [
        ([40_000, 40_000, 40_000], 800_000_000, [5, 2, 1]),
        ([10_000, 10_000, 640_000], 90_000_000, [1, 1, 10]),
        ([80_000, 80_000, 10_000], 400_000_000, [5, 2, 1]),
    ] {
        let best = cheapest(&grids(dims, 10), |grid| wire(&grid.term(), 10).unwrap());
        assert!(best.contains(&Grid { dims, cuts }), "{best:?}");
        assert!(best.iter().all(|grid| grid.formula() == 10 * per_rank), "{best:?}");
    }
}

#[test]
fn two_phases_follow_from_one_by_a_rule() {
    let grid = Grid { dims: [8, 8, 8], cuts: [2, 2, 2] };
    let one = grid.voxels().shuffle(&[0, 1, 3]).aggregate(&[0, 1, 3], KernelFunction::add());
    let two = rules::rewrites(&one).into_iter().find(|(_, made)| made.to_string() == grid.term().to_string());
    assert_eq!(two.map(|(rule, _)| rule), Some("R2-5"));
}

#[test]
fn what_is_where_it_should_be_is_not_sent() {
    // By columns to by rows: what is on the diagonal stays, and a part of the rest that is as likely to be anywhere.
    let square = RelationTerm::input("a", Type::new(&[4, 4], &[10], Spread::part(&[1])));
    assert_eq!(wire(&square.clone().shuffle(&[0]), 4).unwrap(), (160 - 40) * 3 / 4);
    let upper = Predicate::new("upper", &[0, 1], |key| key[0] <= key[1]);
    assert_eq!(wire(&square.filter(upper).shuffle(&[0]), 4).unwrap(), (100 - 40) - (100 - 40) / 4);
    assert_eq!(wire(&somewhere("a").shuffle(&[0]), 3).unwrap(), 600);
}
