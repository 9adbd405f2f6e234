//! What must be refused, terms that were once taken for what they are not, and sizes that once were too large.

use super::super::rules::{RULES, rewrites};
use super::super::*;
use super::random::meaning;
use super::{matrix, somewhere};

fn successor() -> KernelFunction {
    KernelFunction::same_bound("succ", |values| values[0].wrapping_add(1))
}

fn maximum() -> KernelFunction {
    KernelFunction::same_bound("max", |values| values[0].max(values[1]))
}

fn never() -> Predicate {
    Predicate::new("never", &[], |_| false)
}

fn by(name: &str, components: &[usize]) -> RelationTerm {
    matrix(name, 3, 3, Spread::part(components))
}

/// A product that is whole while the columns of the right matrix decide on sites.
fn product() -> RelationTerm {
    somewhere("a").broadcast().join(by("b", &[1]), &[(1, 0)], KernelFunction::mul())
}

fn assert_sound(term: &RelationTerm) {
    for seed in 0..20 {
        let sites = SiteSet { n: 3, seed };
        let expected = meaning(term, sites);
        for (rule, made) in rewrites(term) {
            assert_eq!(meaning(&made, sites), expected, "{rule} makes {made} of {term}");
        }
    }
}

fn applied(name: &str, term: &RelationTerm) -> usize {
    let rule = RULES.iter().find(|rule| rule.name == name).unwrap();
    (rule.apply)(term).len()
}

#[test]
fn what_breaks_a_relation_is_refused_with_its_key() {
    let a = || somewhere("a");
    let error = |term: RelationTerm| term.types().unwrap_err().message().to_string();
    let constant = KeyMap::new("zero", 1, |_| vec![vec![0, 0]]);
    assert!(error(a().map(constant, KernelFunction::identity())).contains("the key [0, 0] twice"));
    let sparse = KeyMap::new("double", 1, |key| vec![vec![2 * key[0], key[1]]]);
    assert!(error(a().map(sparse, KernelFunction::identity())).contains("no tuple has the key [1, 0]"));
    assert!(error(a().join(somewhere("b"), &[(0, 0)], KernelFunction::mul())).contains("different sites"));
    assert!(error(a().shuffle(&[7])).contains("component 7 of keys with 2"));
    assert!(error(a().aggregate(&[0, 0], KernelFunction::add())).contains("twice"));
    assert!(error(a().aggregate(&[0], KernelFunction::add()).broadcast()).contains("parts of sums"));
}

#[test]
fn sites_depend_on_the_order_of_components() {
    let swapped = || by("p", &[0, 1]).aggregate(&[1, 0], KernelFunction::add());
    assert_eq!(swapped().types().unwrap().spread, Spread::Part(vec![1, 0]));
    let error = swapped().join(by("q", &[0, 1]), &[(0, 0), (1, 1)], KernelFunction::mul()).types().unwrap_err();
    assert!(error.message().contains("different sites"), "{error}");
    let straight = swapped().join(by("q", &[0, 1]), &[(1, 0), (0, 1)], KernelFunction::mul());
    assert_eq!(straight.types().unwrap().n_keys(), 9);
    assert_sound(&straight);
}

#[test]
fn a_shuffle_that_only_reorders_components_is_not_dropped() {
    let turned = somewhere("a").broadcast().join(by("p", &[0, 1]), &[(0, 1), (1, 0)], KernelFunction::mul());
    let shuffled = turned.shuffle(&[0, 1]);
    assert_eq!(applied("R2-7", &shuffled), 0);
    assert_ne!(wire(&shuffled, 3).unwrap(), wire(&somewhere("a").broadcast(), 3).unwrap());
    assert_sound(&shuffled.join(by("q", &[0, 1]), &[(0, 0), (1, 1)], KernelFunction::mul()));
}

#[test]
fn what_follows_a_whole_sum_keeps_it_whole() {
    let sum = product().aggregate(&[0, 2], KernelFunction::add());
    assert_ne!(sum.types().unwrap().spread, Spread::Partial);
    let RelationTerm::Aggregate { group, before, kernel, input, .. } = sum.clone() else { unreachable!() };
    let mapped = RelationTerm::Aggregate { group, before, kernel, after: successor(), input };
    // Another way to join leaves parts of sums, of which neither the successor nor the maximum is that of the sum.
    assert!(rewrites(&sum).iter().any(|(_, made)| made.types().unwrap().spread == Spread::Partial));
    for term in [mapped, sum.clone().aggregate(&[1], maximum()), sum.shuffle(&[0]).aggregate(&[0], maximum())] {
        assert!(rewrites(&term).iter().any(|(rule, _)| *rule == "R2-6"), "{term}");
        assert_sound(&term);
    }
}

#[test]
fn an_unfinished_sum_is_not_the_cheapest_product() {
    let whole = by("a", &[1])
        .broadcast()
        .join(by("b", &[1]), &[(1, 0)], KernelFunction::mul())
        .aggregate(&[0, 2], KernelFunction::add());
    let cheaper = |(_, made): &(&str, RelationTerm)| wire(made, 3).unwrap() < wire(&whole, 3).unwrap();
    let unfinished: Vec<_> = rewrites(&whole).into_iter().filter(cheaper).collect();
    assert!(unfinished.iter().any(|(_, made)| made.types().unwrap().spread == Spread::Partial));
    let found = search(&whole, 3, 100, 100).unwrap();
    assert!(found.best.iter().all(|(_, term, _)| term.types().unwrap().spread != Spread::Partial));
    let parts = somewhere("a").filter(never()).filter(never()).aggregate(&[0], KernelFunction::add());
    assert!(search(&parts, 3, 100, 100).unwrap().best.len() > 1);
}

#[test]
fn parts_are_combined_by_what_made_them() {
    let parts = || somewhere("a").aggregate(&[0], KernelFunction::add()).shuffle(&[0]);
    assert!(parts().aggregate(&[0], KernelFunction::add()).types().is_ok());
    for kernel in [maximum(), KernelFunction::mul()] {
        let error = parts().aggregate(&[0], kernel).types().unwrap_err();
        assert!(error.message().contains("parts of sums"), "{error}");
    }
}

#[test]
fn copies_are_not_parts() {
    let term = somewhere("a").broadcast().aggregate(&[0], KernelFunction::add()).shuffle(&[0]);
    let once = somewhere("a").shuffle(&[0]).aggregate(&[0], KernelFunction::add());
    let sites = SiteSet { n: 3, seed: 5 };
    assert_eq!(meaning(&term, sites), meaning(&once, sites));
}

#[test]
fn nothing_has_no_groups() {
    let nothing = || somewhere("a").filter(never()).broadcast().join(somewhere("b"), &[(1, 0)], KernelFunction::mul());
    for group in [&[2][..], &[]] {
        let term = nothing().shuffle(group).aggregate(group, KernelFunction::add());
        assert_eq!(term.types().unwrap().n_keys(), 0);
        assert_sound(&term);
    }
}

#[test]
fn a_hole_is_found_without_listing_what_is_below_the_frontier() {
    for factor in [1_000_000_000_000, u64::MAX / 2] {
        let far = || KeyMap::new("far", 1, move |key| vec![vec![factor * key[0], key[1]]]);
        let error = somewhere("a").map(far(), KernelFunction::identity()).types().unwrap_err();
        assert!(error.message().contains("no tuple has the key [1, 0]"), "{error}");
        // Where there were holes before, more are no mistake.
        let diagonal = Predicate::new("diagonal", &[0, 1], |key| key[0] == key[1]);
        let ty = somewhere("a").filter(diagonal).map(far(), KernelFunction::identity()).types().unwrap();
        assert_eq!((ty.n_keys(), ty.frontier[0]), (3, 2 * factor + 1));
    }
    // The last key is the one that is missing.
    let gap = KeyMap::new("gap", 1, |key| vec![vec![key[0], key[1] + u64::from(key == [2, 2])]]);
    let error = somewhere("a").map(gap, KernelFunction::identity()).types().unwrap_err();
    assert!(error.message().contains("no tuple has the key [0, 3]"), "{error}");
}

#[test]
fn sizes_beyond_counting_are_the_largest_number() {
    let ty = |frontier: &[u64]| Type::new(frontier, &[1 << 40, 1 << 40], Spread::Somewhere);
    assert_eq!((ty(&[4]).n_keys(), ty(&[4]).n_floats()), (4, u64::MAX));
    assert_eq!(ty(&[u64::MAX, 2]).n_keys(), u64::MAX);
    assert_eq!(ty(&[u64::MAX, 2, 0]).n_floats(), 0);
    let vast = RelationTerm::input("vast", ty(&[u64::MAX, 2]));
    assert_eq!(cost(&vast.broadcast(), 4).unwrap(), u64::MAX);
}

#[test]
fn a_function_called_id_is_not_the_identity() {
    let named = || KernelFunction::same_bound("id", |values| values[0].wrapping_add(1));
    let turned = || KeyMap::new("id", 1, |key| vec![vec![key[1], key[0]]]);
    assert!(!named().is_identity() && !turned().is_identity());
    assert!(KernelFunction::identity().is_identity() && KeyMap::identity().is_identity());
    let sites = SiteSet { n: 3, seed: 1 };
    let mapped = somewhere("a").map(KeyMap::identity(), named());
    let expected: Vec<i64> = meaning(&somewhere("a"), sites).values().map(|value| value + 1).collect();
    assert_eq!(meaning(&mapped, sites).into_values().collect::<Vec<_>>(), expected);
    let even = Predicate::new("even", &[0], |key| key[0].is_multiple_of(2));
    let summed = || somewhere("a").shuffle(&[0]).aggregate(&[0], KernelFunction::add());
    for term in [
        mapped.clone().map(KeyMap::identity(), successor()),
        mapped.map(turned(), KernelFunction::identity()),
        somewhere("a").map(turned(), KernelFunction::identity()).filter(even),
        somewhere("a").map(turned(), KernelFunction::identity()).shuffle(&[0]),
        summed().map(KeyMap::identity(), named()),
        product().map(KeyMap::identity(), named()),
    ] {
        assert_sound(&term);
    }
}
