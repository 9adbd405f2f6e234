//! Every rule by itself, and the paper's tables.

use std::collections::BTreeMap;

mod found;
mod grids;
mod of_plan;
mod random;

use super::rules::RULES;
use super::*;

const N_SITES: u32 = 3;

fn matrix(name: &str, rows: u64, columns: u64, spread: Spread) -> RelationTerm {
    RelationTerm::input(name, Type::new(&[rows, columns], &[10, 10], spread))
}

fn somewhere(name: &str) -> RelationTerm {
    matrix(name, 3, 3, Spread::Somewhere)
}

fn double() -> KernelFunction {
    KernelFunction::same_bound("double", |values| 2 * values[0]).distributing_over(&KernelFunction::add())
}

fn negate() -> KernelFunction {
    KernelFunction::same_bound("negate", |values| -values[0])
}

fn even(component: usize) -> Predicate {
    Predicate::new("even", &[component], |key| key[0].is_multiple_of(2))
}

fn diagonal() -> Predicate {
    Predicate::new("diagonal", &[0, 1], |key| key[0] == key[1])
}

/// The keys and arrays of a term, for inputs drawn from a seed. A sum that is still in parts has none.
fn meaning(term: &RelationTerm, seed: u64) -> BTreeMap<Vec<u64>, i64> {
    fn inputs(term: &RelationTerm, sites: SiteSet, found: &mut BTreeMap<String, Tuples>) {
        if let RelationTerm::Input { name, ty } = term {
            let value = |key: &[u64]| {
                key.iter().fold(sites.seed as i64 % 97 + name.len() as i64, |v, &k| 31 * v + k as i64) % 1000
            };
            found.insert(name.clone(), sites.spread(ty, value));
        }
        term.parts().into_iter().for_each(|part| inputs(part, sites, found));
    }
    let sites = SiteSet { n: N_SITES, seed };
    let mut tuples = BTreeMap::new();
    inputs(term, sites, &mut tuples);
    let mut once: BTreeMap<Vec<u64>, i64> = BTreeMap::new();
    for ((key, _), array) in evaluate(term, &tuples, sites).unwrap() {
        if let Some(other) = once.insert(key.clone(), array) {
            assert_eq!(other, array, "{term} has two arrays for {key:?}");
        }
    }
    once
}

/// A term that a rule fits, what it becomes, and nearby terms that it does not fit.
fn examples() -> Vec<(&'static str, RelationTerm, &'static str, Vec<RelationTerm>)> {
    let (a, b) = (|| somewhere("a"), || somewhere("b"));
    let insert = || KeyMap::insert(2, 2);
    let swap = || KeyMap::new("swap", 1, |key| vec![vec![key[1], key[0]]]);
    let by = |by: &[usize]| matrix("p", 3, 3, Spread::part(by));
    let on: &[(usize, usize)] = &[(1, 0)];
    let product = || a().broadcast().join(b(), on, KernelFunction::mul());
    vec![
        ("R1-1", a().filter(even(0)).filter(even(1)), "filter[even & even[1, 0]](a)", vec![a().filter(even(0))]),
        (
            "R1-2",
            a().map(swap(), double()).map(swap(), negate()),
            "map[swap.swap, negate.double](a)",
            vec![a().map(insert(), KernelFunction::identity()).map(KeyMap::identity(), double())],
        ),
        (
            "R1-3",
            a().map(KeyMap::identity(), double()).filter(even(0)),
            "map[id, double](filter[even[0]](a))",
            vec![a().map(swap(), double()).filter(even(0))],
        ),
        (
            "R1-4",
            a().shuffle(&[0]).aggregate(&[0], KernelFunction::add()).map(KeyMap::identity(), negate()),
            "agg[0][after negate, add](SHUF[0](a))",
            // Before the second phase there are only parts, and what does not distribute must wait.
            vec![a().aggregate(&[0], KernelFunction::add()).map(KeyMap::identity(), negate())],
        ),
        (
            "R1-5",
            a().shuffle(&[1]).aggregate(&[1], KernelFunction::add()).filter(even(0)),
            "agg[1][add](filter[even[1]](SHUF[1](a)))",
            vec![a().filter(even(0)).aggregate(&[1], KernelFunction::add())],
        ),
        (
            "R1-6",
            product().filter(even(1)),
            "join[(1, 0)][mul](filter[even[1]](BCAST(a)), filter[even[0]](b))",
            vec![product().filter(even(0)), product().filter(diagonal())],
        ),
        (
            "R1-7",
            product().map(KeyMap::identity(), negate()),
            "join[(1, 0)][negate.mul](BCAST(a), b)",
            vec![product().map(KeyMap::new("drop", 1, |key| vec![key.to_vec()]), negate())],
        ),
        ("R2-1", a().shuffle(&[0]).broadcast().shuffle(&[1]), "SHUF[1](SHUF[0](a))", vec![a().shuffle(&[1])]),
        ("R2-2", a().filter(even(0)).shuffle(&[1]), "filter[even[0]](SHUF[1](a))", vec![a().shuffle(&[1])]),
        (
            "R2-3",
            a().map(swap(), double()).broadcast(),
            "map[swap, double](BCAST(a))",
            vec![a().map(swap(), double()).shuffle(&[0])],
        ),
        (
            "R2-4",
            by(&[0]).shuffle(&[0]).aggregate(&[0], KernelFunction::add()),
            "agg[0][add](p)",
            vec![
                by(&[1]).shuffle(&[0]).aggregate(&[0], KernelFunction::add()),
                by(&[0, 1]).shuffle(&[0]).aggregate(&[0], KernelFunction::add()),
                a().shuffle(&[0]).aggregate(&[0], KernelFunction::add()),
            ],
        ),
        (
            "R2-5",
            a().shuffle(&[1]).aggregate(&[1], KernelFunction::add()),
            "agg[0][add](SHUF[0](agg[1][add](a)))",
            vec![a().broadcast().shuffle(&[1]).aggregate(&[1], KernelFunction::add())],
        ),
        (
            "R2-6",
            product(),
            "join[(1, 0)][mul](SHUF[1](a), SHUF[0](b))",
            vec![by(&[0]).join(matrix("q", 3, 3, Spread::part(&[0])), &[(0, 0)], KernelFunction::mul())],
        ),
        (
            "R2-7",
            a().shuffle(&[1]).join(b().shuffle(&[0]), on, KernelFunction::mul()).shuffle(&[1]),
            "join[(1, 0)][mul](SHUF[1](a), SHUF[0](b))",
            vec![
                a().shuffle(&[1]).join(b().shuffle(&[0]), on, KernelFunction::mul()).shuffle(&[0]),
                a().broadcast().join(b(), on, KernelFunction::mul()).shuffle(&[1]),
            ],
        ),
    ]
}

#[test]
fn every_rule_has_a_before_and_an_after() {
    let examples = examples();
    assert_eq!(
        examples.iter().map(|(name, ..)| *name).collect::<Vec<_>>(),
        RULES.iter().map(|r| r.name).collect::<Vec<_>>()
    );
    for (rule, (name, before, after, apart)) in RULES.iter().zip(&examples) {
        before.types().unwrap();
        let made: Vec<String> = (rule.apply)(before).iter().map(RelationTerm::to_string).collect();
        assert!(made.iter().any(|made| made == after), "{name}: {before} becomes {made:?}");
        for other in apart {
            let made = (rule.apply)(other);
            assert!(made.is_empty(), "{name} must leave {other} alone, but makes {}", made[0]);
        }
    }
}

#[test]
fn every_rule_keeps_keys_and_arrays() {
    for (name, before, ..) in examples() {
        for seed in 0..50 {
            let expected = meaning(&before, seed);
            for (rule, made) in rules::rewrites(&before) {
                if made.types().unwrap().spread != Spread::Partial {
                    assert_eq!(meaning(&made, seed), expected, "{name}: {rule} makes {made} of {before}");
                }
            }
        }
    }
}

#[test]
fn rules_in_a_row_keep_keys_and_arrays() {
    let product = matrix("a", 3, 4, Spread::part(&[0])).broadcast().join(
        matrix("b", 4, 2, Spread::part(&[1])),
        &[(1, 0)],
        KernelFunction::mul(),
    );
    let term = product
        .shuffle(&[0, 2])
        .aggregate(&[0, 2], KernelFunction::add())
        .map(KeyMap::identity(), double())
        .filter(even(0));
    let expected = meaning(&term, 11);
    let found = search(&term, N_SITES as u64, 400, 400).unwrap();
    assert!(found.tried > 50, "{}", found.tried);
    for (_, term, path) in &found.best {
        assert_eq!(meaning(term, 11), expected, "{path:?} lead to {term}");
    }
}

/// A relation of a matrix cut into blocks.
fn cut(name: &str, shape: [u64; 2], frontier: [u64; 2], spread: Spread) -> RelationTerm {
    let bound = [shape[0] / frontier[0], shape[1] / frontier[1]];
    RelationTerm::input(name, Type::new(&frontier, &bound, spread))
}

/// The three products of the paper, as terms; `blocks` along every axis.
fn products([i, j, k]: [u64; 3], sites: u64) -> [RelationTerm; 3] {
    let matmul = |a: RelationTerm, b: RelationTerm| a.join(b, &[(1, 0)], KernelFunction::mat_mul());
    let a = |by: &[usize]| cut("a", [i, k], [sites, sites], Spread::part(by));
    let b = |by: &[usize]| cut("b", [k, j], [sites, sites], Spread::part(by));
    let bmm = matmul(a(&[0]).broadcast(), b(&[1])).aggregate(&[0, 2], KernelFunction::add());
    let cmm = matmul(a(&[1]), b(&[0])).shuffle(&[0, 2]).aggregate(&[0, 2], KernelFunction::add());
    // Both replicated so that every voxel has its blocks, half as many along each axis: their copies are as many as
    // there are sites.
    let side = sites / 2;
    let x = cut("a", [i, k], [side, side], Spread::part(&[0])).map(KeyMap::insert(2, side), KernelFunction::identity());
    let y = cut("b", [k, j], [side, side], Spread::part(&[0])).map(KeyMap::insert(0, side), KernelFunction::identity());
    let voxels = x.shuffle(&[0, 2]).join(y.shuffle(&[0, 2]), &[(0, 0), (1, 1), (2, 2)], KernelFunction::mat_mul());
    [bmm, cmm, voxels.aggregate(&[0, 2], KernelFunction::add())]
}

#[test]
fn costs_of_products_are_those_of_the_paper() {
    for (dims, expected) in [
        ([40_000, 40_000, 40_000], [1.6e10, 1.6e10, 1.6e10]),
        ([10_000, 10_000, 640_000], [6.4e10, 1.0e9, 6.4e10]),
        ([80_000, 80_000, 10_000], [8.0e9, 6.4e10, 8.0e9]),
    ] {
        let found = products(dims, 10).map(|term| cost(&term, 10).unwrap() as f64);
        assert_eq!(found, expected, "{dims:?}");
        for term in products(dims, 10) {
            let ty = term.types().unwrap();
            assert_eq!(ty.bound.iter().zip(&ty.frontier).map(|(b, f)| b * f).collect::<Vec<_>>(), [dims[0], dims[1]]);
            assert_ne!(ty.spread, Spread::Partial);
        }
    }
}

/// A relation of a vector cut into blocks.
fn cut_vector(name: &str, n: u64, blocks: u64, spread: Spread) -> RelationTerm {
    RelationTerm::input(name, Type::new(&[blocks], &[n / blocks], spread))
}

#[test]
fn costs_of_nearest_neighbours_are_those_of_the_paper() {
    const SITES: u64 = 8;
    let subtract = || KernelFunction::same_bound("matVecSub", |values| values[0] - values[1]);
    let sum_rows = || {
        let kernel = KernelFunction::new("rowSum", |bounds| vec![bounds[0][0]], |values| values[0]);
        kernel.distributing_over(&KernelFunction::add())
    };
    let on_both: &[(usize, usize)] = &[(0, 0), (1, 1)];
    let distance = |projected: RelationTerm, difference: RelationTerm| {
        projected.join(difference, on_both, KernelFunction::mul()).map(KeyMap::identity(), sum_rows())
    };
    for (n, d, expected) in [(1_500_000, 6_000, [2.88e8, 7.2e10]), (6_000, 100_000, [8.0e10, 4.8e9])] {
        // Rows of the candidates are on different sites; the query and the metric go everywhere.
        let query = || cut_vector("query", d, SITES, Spread::part(&[0])).broadcast();
        let rows = || cut("x", [n, d], [SITES, SITES], Spread::part(&[0])).join(query(), &[(1, 0)], subtract());
        let metric = |by: usize| cut("metric", [d, d], [SITES, SITES], Spread::part(&[by]));
        let projected = rows().join(metric(0).broadcast(), &[(1, 0)], KernelFunction::mat_mul());
        let projected = projected.aggregate(&[0, 2], KernelFunction::add());
        let horizontal = distance(projected, rows()).aggregate(&[0], KernelFunction::add());
        // Columns of the candidates and rows of the metric are, and parts of the product meet.
        let columns = || cut("x", [n, d], [SITES, SITES], Spread::part(&[1])).join(query(), &[(1, 0)], subtract());
        let projected = columns().join(metric(0), &[(1, 0)], KernelFunction::mat_mul());
        let projected = projected.shuffle(&[2]).aggregate(&[0, 2], KernelFunction::add());
        let parts = distance(projected, columns()).aggregate(&[0], KernelFunction::add());
        let vertical = parts.shuffle(&[0]).aggregate(&[0], KernelFunction::add());
        for (term, expected) in [horizontal, vertical].iter().zip(expected) {
            assert_eq!(term.types().unwrap().n_floats(), n);
            let found = cost(term, SITES).unwrap() as f64;
            // The query and the distances travel too, which the paper leaves out.
            assert!((found / expected - 1.0).abs() < 0.01, "{found:e} {expected:e}");
        }
    }
}

/// Gradients of the two weights of a network with one hidden layer, where every layer is a product and what is applied
/// to it leaves shapes alone.
struct Network {
    samples: u64,
    features: u64,
    hidden: u64,
    labels: u64,
    sites: u64,
}

impl Network {
    fn matrix(&self, name: &str, shape: [u64; 2], spread: Spread) -> RelationTerm {
        // Blocks need not divide the matrices of the paper evenly for their sizes to be right.
        let frontier = shape.map(|n| if n.is_multiple_of(self.sites) { self.sites } else { 1 });
        cut(name, shape, frontier, spread)
    }

    fn product(left: RelationTerm, right: RelationTerm, on: (usize, usize)) -> RelationTerm {
        // The bound of a product of one matrix, or its transpose, with another.
        let bound = move |bounds: &[&[u64]]| vec![bounds[0][1 - on.0], bounds[1][1 - on.1]];
        left.join(right, &[on], KernelFunction::new("product", bound, |values| values[0] * values[1]))
    }

    /// Samples on different sites, weights everywhere, gradients added up.
    fn data_parallel(&self) -> [RelationTerm; 2] {
        let samples = |name: &str, n: u64| self.matrix(name, [self.samples, n], Spread::part(&[0]));
        let first = || self.matrix("w1", [self.features, self.hidden], Spread::part(&[0])).broadcast();
        let second = || self.matrix("w2", [self.hidden, self.labels], Spread::part(&[0])).broadcast();
        let active = |weights: RelationTerm| {
            Network::product(samples("x", self.features), weights, (1, 0)).aggregate(&[0, 2], KernelFunction::add())
        };
        // Weights are sent once; what is computed from them is used again.
        let here = |name: &str, n: u64| self.matrix(name, [self.samples, n], Spread::part(&[0]));
        let error = Network::product(active(first()), second(), (1, 0)).aggregate(&[0, 2], KernelFunction::add());
        let meet = |gradient: RelationTerm| {
            let parts = gradient.aggregate(&[1, 2], KernelFunction::add());
            parts.shuffle(&[0, 1]).aggregate(&[0, 1], KernelFunction::add())
        };
        let of_second = meet(Network::product(here("active", self.hidden), error, (0, 0)));
        let of_first = meet(Network::product(samples("x", self.features), here("back", self.hidden), (0, 0)));
        [of_first, of_second]
    }

    /// Hidden units on different sites in the first layer, labels in the second; what is hidden goes everywhere in
    /// between, and parts of its gradient meet.
    fn model_parallel(&self) -> [RelationTerm; 2] {
        let samples = || self.matrix("x", [self.samples, self.features], Spread::All);
        let first = self.matrix("w1", [self.features, self.hidden], Spread::part(&[1]));
        let active = Network::product(samples(), first, (1, 0)).aggregate(&[0, 2], KernelFunction::add()).broadcast();
        let error = self.matrix("error", [self.samples, self.labels], Spread::part(&[1]));
        let of_second = Network::product(active, error, (0, 0)).aggregate(&[1, 2], KernelFunction::add());
        let labels = cut("error", [self.samples, self.labels], [1, self.sites], Spread::part(&[1]));
        let second = cut("w2", [self.hidden, self.labels], [1, self.sites], Spread::part(&[1]));
        let back = Network::product(labels, second, (1, 1)).shuffle(&[0, 2]).aggregate(&[0, 2], KernelFunction::add());
        let of_first = Network::product(samples(), back, (0, 0)).aggregate(&[1, 2], KernelFunction::add());
        [of_first, of_second]
    }
}

#[test]
fn costs_of_networks_are_those_of_the_paper() {
    const SITES: u64 = 5;
    let google = |hidden: u64| Network { samples: 10_000, features: 1_600, hidden, labels: 10, sites: SITES };
    // The labels of the other set are 14588, of which five even parts are 14590.
    let amazon = |hidden: u64| Network { samples: 1_000, features: 597_540, hidden, labels: 14_590, sites: SITES };
    for (network, expected) in [
        (google(100_000), [9.7e8, 1.0e10]),
        (google(150_000), [1.5e9, 1.5e10]),
        (google(200_000), [1.9e9, 2.0e10]),
        (amazon(1_000), [3.7e9, 1.0e7]),
        (amazon(3_000), [1.1e10, 3.0e7]),
        (amazon(5_000), [1.8e10, 5.0e7]),
        (amazon(7_000), [2.6e10, 7.0e7]),
    ] {
        let total = |terms: [RelationTerm; 2]| terms.iter().map(|term| cost(term, SITES).unwrap()).sum::<u64>() as f64;
        for (found, expected) in [total(network.data_parallel()), total(network.model_parallel())].iter().zip(expected)
        {
            assert!((found / expected - 1.0).abs() < 0.04, "{found:e} {expected:e} with {} hidden", network.hidden);
        }
    }
}

#[test]
fn rules_lead_from_the_broadcast_product_to_the_others() {
    let a = cut("a", [40, 640], [4, 4], Spread::part(&[1]));
    let b = cut("b", [640, 40], [4, 4], Spread::part(&[0]));
    let product = a.broadcast().join(b, &[(1, 0)], KernelFunction::mat_mul());
    let compiled = product.shuffle(&[0, 2]).aggregate(&[0, 2], KernelFunction::add());
    let found = search(&compiled, 4, 500, 3).unwrap();
    assert_eq!(found.stop, Stop::Exhausted);
    // The inputs are where a cross product needs them, so only parts of the result are sent.
    assert_eq!(found.best[0].0, (4 - 1) * 40 * 40);
    let again = search(&compiled, 4, 500, 3).unwrap();
    assert_eq!(again.best[0].1.to_string(), found.best[0].1.to_string());
    assert_eq!(search(&compiled, 4, 2, 3).unwrap().stop, Stop::Limit);
}

#[test]
fn filters_count_exactly() {
    let ty = matrix("a", 4, 4, Spread::All).filter(diagonal()).types().unwrap();
    assert_eq!((ty.n_keys(), ty.frontier.clone(), ty.n_floats()), (4, vec![4, 4], 400));
    let joined = matrix("a", 4, 4, Spread::All).filter(diagonal()).join(
        matrix("b", 4, 4, Spread::All),
        &[(1, 0)],
        KernelFunction::mat_mul(),
    );
    assert_eq!(joined.types().unwrap().n_keys(), 16);
}
