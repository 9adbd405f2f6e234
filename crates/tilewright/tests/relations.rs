//! Relations against maps of blocks, and what they refuse.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tilewright::ir::scalar::BinaryOp;
use tilewright::{Array, ArrayView, Buffer, DType, Error, Key, Relation, RelationKernel, Result, Session, Tensor};

#[path = "relations/engines.rs"]
mod engines;
#[path = "relations/random.rs"]
mod random;
#[path = "relations/reference.rs"]
mod reference;

use reference::{Block, Blocks};

fn session() -> Session {
    Session::builder().threads(2).build()
}

fn tensor(session: &Session, block: &Block) -> Tensor {
    let array = Array::new(block.shape.clone(), Buffer::F64(block.values.clone())).unwrap();
    session.array(array)
}

/// Small integers that differ from place to place.
fn numbers(shape: &[u64], seed: u64) -> Block {
    let mut state = seed;
    Block::new(shape, |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % 7) as f64 - 3.0
    })
}

fn pair(session: &Session, shape: &[u64], tiles: &[u64], seed: u64) -> (Relation, Blocks) {
    let block = numbers(shape, seed);
    (Relation::of(&tensor(session, &block), tiles).unwrap(), Blocks::of(&block, tiles))
}

#[track_caller]
fn check(relation: &Relation, expected: &Blocks) {
    assert_eq!(relation.count(), expected.0.len() as u64, "{relation:?}");
    assert_eq!(relation.keys().unwrap(), expected.0.keys().cloned().collect::<Vec<Key>>());
    assert_eq!(relation.frontier(), expected.frontier().unwrap_or(vec![0; relation.arity()]));
    assert!(expected.0.is_empty() || relation.is_continuous() == expected.is_continuous());
    let computed = relation.compute().unwrap();
    for ((key, block), (other, wanted)) in computed.iter().zip(&expected.0) {
        assert_eq!(key, other);
        assert_eq!(relation.bound(), wanted.shape);
        assert_eq!(&Block::of(block), wanted, "block {key:?} of {relation:?}");
    }
}

fn doubles(view: &ArrayView<'_>) -> Vec<f64> {
    (0..view.len()).map(|k| view.at(k).as_f64()).collect()
}

/// A kernel of the user that works element by element on blocks of one shape.
fn elementwise(name: &str, f: fn(f64, f64) -> f64) -> RelationKernel {
    RelationKernel::function(name, move |blocks| {
        let second = doubles(blocks.last().unwrap());
        let values = doubles(&blocks[0]).into_iter().zip(second).map(|(x, y)| f(x, y)).collect();
        Array::new(blocks[0].shape().to_vec(), Buffer::F64(values))
    })
}

#[test]
fn a_matrix_product_is_a_join_and_an_aggregate() {
    let session = session();
    let (a, x) = pair(&session, &[12, 20], &[4, 5], 1);
    let (b, y) = pair(&session, &[20, 6], &[5, 3], 2);
    let joined = a.join(&b, &[1], &[0], "matmul").unwrap();
    let wanted = x.join(&y, &[1], &[0], Block::matmul);
    check(&joined, &wanted);
    let product = joined.aggregate(&[0, 2], "add").unwrap();
    check(&product, &wanted.aggregate(&[0, 2], |x, y| x.zip(y, |x, y| x + y)));
    let array = product.to_array(None).unwrap().compute().unwrap();
    assert_eq!(Block::of(&array), numbers(&[12, 20], 1).matmul(&numbers(&[20, 6], 2)));
}

/// Tasks that a relation takes.
fn n_tasks(session: &Session, relation: &Relation) -> usize {
    let (program, _) = relation.tensor().program().unwrap();
    session.plan(&program).unwrap().schedule.n_tasks()
}

#[test]
fn a_product_is_planned_as_one_contraction() {
    let session = session();
    let a = Relation::of(&session.random_normal(&[400, 300], 1).unwrap(), &[100, 100]).unwrap();
    let b = Relation::of(&session.random_normal(&[300, 200], 2).unwrap(), &[100, 100]).unwrap();
    let product = a.join(&b, &[1], &[0], "matmul").unwrap().aggregate(&[0, 2], "add").unwrap();
    // 4 * 3 * 2 products are folded, and nothing else is.
    let (program, _) = product.tensor().program().unwrap();
    let schedule = session.plan(&program).unwrap().schedule;
    let workflow = schedule.workflow();
    let folds = schedule.order().filter(|&task| match &workflow.kernels[workflow.kernel(task)].kernel {
        tilewright::ir::kernel::Kernel::Statement(kernel) => kernel.accum.is_some(),
        _ => false,
    });
    assert_eq!(folds.count(), 24);
}

#[test]
fn components_may_agree_crosswise() {
    let session = session();
    let (a, x) = pair(&session, &[6, 6], &[2, 2], 12);
    let (b, y) = pair(&session, &[6, 6], &[2, 2], 13);
    let minus: fn(f64, f64) -> f64 = |x, y| x - y;
    let times: fn(f64, f64) -> f64 = |x, y| x * y;
    let function = elementwise("minus", minus);
    for (kernel, f) in [(RelationKernel::from("sub"), minus), (function, minus), ("ab,ab->ab".into(), times)] {
        let blocks = |x: &Block, y: &Block| x.zip(y, f);
        check(&a.join(&b, &[0, 1], &[1, 0], kernel.clone()).unwrap(), &x.join(&y, &[0, 1], &[1, 0], blocks));
        check(&a.join(&b, &[1], &[0], kernel).unwrap(), &x.join(&y, &[1], &[0], blocks));
    }
}

#[test]
fn what_is_filtered_away_is_not_computed() {
    let session = session();
    let calls = Arc::new(AtomicU64::new(0));
    let (a, x) = pair(&session, &[12, 12], &[2, 3], 3);
    let counter = calls.clone();
    let counted = RelationKernel::function("counted", move |blocks| {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(blocks[0].to_array())
    });
    let keeps = |key: &[u64]| (key[0] + 2 * key[1]) % 5 == 1;
    let some = a.transform(counted).unwrap().filter(keeps).unwrap();
    let wanted = x.filter(keeps);
    let n = wanted.0.len() as u64;
    assert_eq!((some.count(), n), (5, 5));
    check(&some, &wanted);
    assert_eq!(calls.load(Ordering::Relaxed), n);
}

#[test]
fn a_filtered_join_makes_only_its_own_products() {
    let session = session();
    let a = Relation::of(&session.random_normal(&[400, 300], 1).unwrap(), &[100, 100]).unwrap();
    let b = Relation::of(&session.random_normal(&[300, 200], 2).unwrap(), &[100, 100]).unwrap();
    let joined = a.join(&b, &[1], &[0], "matmul").unwrap();
    let one = joined.filter(|key| key == [3, 1, 1]).unwrap();
    // Two operands are made and cut, multiplied, and the product is moved to its place.
    assert_eq!((one.count(), one.frontier()), (1, vec![4, 2, 2]));
    assert!(n_tasks(&session, &one) <= 6, "{}", n_tasks(&session, &one));
    // A cross join has far more blocks than its operands.
    let cross = a.rekey(|key| vec![3 * key[0] + key[1]]).unwrap();
    let cross = cross.join(&cross, &[], &[], "add").unwrap().filter(|key| key[0] + key[1] == 11).unwrap();
    assert_eq!(cross.count(), 12);
    assert!(n_tasks(&session, &cross) <= 12 * 4, "{}", n_tasks(&session, &cross));
}

#[test]
fn products_with_holes_are_sums_of_products() {
    let session = session();
    let (a, x) = pair(&session, &[12, 20], &[4, 5], 4);
    let (b, y) = pair(&session, &[20, 6], &[5, 3], 5);
    let keeps = |key: &[u64]| (key[0] * 3 + key[1]) % 4 != 2;
    let (a, x) = (a.filter(keeps).unwrap(), x.filter(keeps));
    let product = a.join(&b, &[1], &[0], "matmul").unwrap().aggregate(&[2, 0], "add").unwrap();
    let wanted = x.join(&y, &[1], &[0], Block::matmul).aggregate(&[2, 0], |x, y| x.zip(y, |x, y| x + y));
    let rewritten = session.plan(&product.tensor().program().unwrap().0).unwrap().program;
    let sums = rewritten.body.nodes.iter().filter(|node| match &node.op {
        tilewright::ir::Op::Index(stmt) => stmt.accum.is_some(),
        _ => false,
    });
    assert_eq!(sums.count(), 1, "join and aggregate are one statement");
    check(&product, &wanted);
}

#[test]
fn functions_aggregate_in_the_order_of_keys() {
    let session = session();
    for n in [1u64, 2, 3, 5, 7, 8, 13] {
        let (a, x) = pair(&session, &[3 * n, 4], &[3, 2], n);
        let first = a.aggregate(&[1], elementwise("first", |x, _| x)).unwrap();
        check(&first, &x.aggregate(&[1], |x, _| x.clone()));
        let last = a.aggregate(&[], elementwise("last", |_, y| y)).unwrap();
        check(&last, &x.aggregate(&[], |_, y| y.clone()));
        let keeps = |key: &[u64]| key[0] != 1 && (key[1] == 0 || !key[0].is_multiple_of(3));
        let (a, x) = (a.filter(keeps).unwrap(), x.filter(keeps));
        let sum = a.aggregate(&[1], elementwise("sum", |x, y| x + y)).unwrap();
        check(&sum, &x.aggregate(&[1], |x, y| x.zip(y, |x, y| x + y)));
        let last = a.aggregate(&[1], elementwise("last", |_, y| y)).unwrap();
        check(&last, &x.aggregate(&[1], |_, y| y.clone()));
    }
}

#[test]
fn blocks_are_found_by_key() {
    let session = session();
    let (a, x) = pair(&session, &[6, 6], &[3, 2], 8);
    for (relation, reference) in
        [(a.clone(), x.clone()), (a.filter(|k| k != [0, 1]).unwrap(), x.filter(|k| k != [0, 1]))]
    {
        let block = relation.block(&[1, 2]).unwrap().compute().unwrap();
        assert_eq!(Block::of(&block), reference.0[&vec![1, 2]]);
    }
    assert_message(a.filter(|k| k != [0, 1]).unwrap().block(&[0, 1]), "no block for key (0, 1)");
}

#[test]
fn empty_relations_are_relations() {
    let session = session();
    let (a, x) = pair(&session, &[6, 6], &[3, 2], 9);
    let (nothing, none) = (a.filter(|_| false).unwrap(), x.filter(|_| false));
    check(&nothing, &none);
    check(&nothing.join(&a, &[0], &[0], "add").unwrap(), &none);
    check(&nothing.transform("exp").unwrap(), &none);
    for kernel in ["add".into(), elementwise("sum", |x, y| x + y)] {
        assert_eq!(nothing.aggregate(&[1], kernel.clone()).unwrap().count(), 0);
        assert_eq!(nothing.aggregate(&[], kernel).unwrap().count(), 0);
    }
    check(&nothing.tile(0, 1).unwrap(), &none);
    assert_eq!(nothing.rekey(|key| vec![key[0]]).unwrap().count(), 0);
}

#[test]
fn planning_ten_thousand_keys_is_fast() {
    let session = session();
    let a = Relation::of(&session.random_normal(&[1000, 1000], 1).unwrap(), &[10, 10]).unwrap();
    let sum = a.transform("exp").unwrap().join(&a, &[0, 1], &[0, 1], "mul").unwrap();
    let (program, _) = sum.tensor().program().unwrap();
    let start = std::time::Instant::now();
    let planned = session.plan(&program).unwrap();
    assert!(planned.schedule.n_tasks() >= 10_000);
    let odd = sum.filter(|key| (key[0] + key[1]) % 2 == 1).unwrap().aggregate(&[0], "add").unwrap();
    session.plan(&odd.tensor().program().unwrap().0).unwrap();
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}

#[track_caller]
fn assert_message<T>(result: Result<T>, expected: &str) {
    let error: Error = result.err().expect("this should be refused");
    assert!(error.message().contains(expected), "{}", error.message());
    assert!(!error.span().to_string().is_empty(), "no line in {error:?}");
}

#[test]
fn what_breaks_integrity_is_named() {
    let session = session();
    let (a, _) = pair(&session, &[6, 6], &[3, 2], 6);
    assert_message(a.rekey(|key| vec![key[1]]), "rekey maps both (0, 0) and (1, 0) to key (0,)");
    assert_message(a.rekey(|key| vec![2 * key[0], key[1]]), "rekey leaves a hole at key (1, 0)");
    assert_message(a.rekey(|key| vec![0; key[0] as usize + 1]), "rekey maps (1, 0) to (0, 0), but (0, 0) to (0,)");
    let holes = a.filter(|key| key != [1, 1]).unwrap();
    assert_message(holes.to_array(None), "to_array of a relation with a hole at key (1, 1)");
    assert_message(holes.concat(0, 0), "concat along component 0 finds a hole at key (1, 1)");
    assert_message(
        holes.rekey(|key| vec![key[0], u64::MAX - key[1]]),
        "rekey maps (0, 0) to (0, 18446744073709551615)",
    );
    let far = holes.rekey(|key| vec![key[0] << 40, key[1]]).unwrap();
    assert_eq!((far.frontier(), far.count()), (vec![(1 << 40) + 1, 3], 5));
    assert_message(far.concat(0, 0), "finds a hole at key (1, 0)");
    assert_message(far.to_array(None), "hole at key (1, 0)");
    // Holes may move, and be filled by what is there.
    check_rekeyed(&holes);
}

fn check_rekeyed(holes: &Relation) {
    let line = holes.rekey(|key| vec![if key[0] == 0 { key[1] } else { 3 + key[1] / 2 }]).unwrap();
    assert!(line.is_continuous());
    assert_eq!(line.frontier(), [5]);
    assert_eq!(line.to_array(Some(&[0])).unwrap().shape().unwrap(), [15, 2]);
}

#[test]
fn shapes_and_components_are_checked() {
    let session = session();
    let x = tensor(&session, &numbers(&[6, 6], 7));
    let a = Relation::of(&x, &[3, 2]).unwrap();
    assert_message(Relation::of(&x, &[4, 2]), "tiles of 4 along axis 0, which has 6 elements");
    assert_message(Relation::of(&x, &[0, 2]), "tiles of 0 along axis 0");
    assert_message(Relation::of(&x, &[6]), "1 tile lengths for an array with 2 axes");
    assert_message(a.tile(0, 2), "tile of tiles of 2 along axis 0, which has 3 elements");
    assert_message(a.tile(2, 1), "tile along axis 2 of blocks with 2 axes");
    assert_message(a.concat(2, 0), "concat by component 2 of a key with 2 components");
    assert_message(a.concat(0, 2), "concat along axis 2 of blocks with 2 axes");
    assert_message(a.join(&a, &[2], &[0], "add"), "join by component 2 of a key with 2 components");
    assert_message(a.join(&a, &[0, 0], &[0, 1], "add"), "join names component 0 of the key twice");
    assert_message(a.join(&a, &[0, 1], &[0], "add"), "join of 2 components of the left key with 1 of the right key");
    assert_message(a.aggregate(&[3], "add"), "aggregate by component 3 of a key with 2 components");
    assert_message(a.aggregate(&[0], "sub"), "aggregate by `sub`");
    assert_message(a.aggregate(&[0], "matmul"), "aggregate by `ab,bc->ac`");
    assert_message(a.join(&a, &[0], &[0], "exp"), "join by `exp`");
    assert_message(a.transform("add"), "transform by `add`");
    assert_message(a.transform("frobnicate"), "there is no kernel `frobnicate`");
    assert_message(a.join(&a, &[0], &[0], "abc,cd->ad"), "`abc` names 3 axes of blocks with 2");
    assert!(a.join(&a, &[0], &[0], "matmul").is_err(), "3 x 2 blocks do not multiply with each other");
    assert_message(a.join(&a, &[0], &[1], "add").unwrap().to_array(None), "to_array of keys with 3 components");
}

#[test]
fn kernels_that_give_something_else_are_refused() {
    let session = session();
    let (a, _) = pair(&session, &[6, 6], &[3, 2], 10);
    let wrong = RelationKernel::function("wrong", |_| Array::zeros(&[2, 2], DType::F64));
    let message = "by `wrong` gave a block of f64[2, 2] instead of f64[3, 2]";
    assert_message(a.transform(wrong.clone()).unwrap().compute(), message);
    assert_message(a.join(&a, &[0, 1], &[0, 1], wrong.clone()).unwrap().compute(), message);
    assert_message(a.aggregate(&[0], wrong.clone()).unwrap().compute(), message);
    assert_message(a.aggregate(&[0], wrong.giving(&[2, 2], DType::F64)), "gives other blocks than it takes");
    let other_type = RelationKernel::function("other_type", |_| Array::zeros(&[3, 2], DType::F32));
    assert_message(a.transform(other_type.clone()).unwrap().compute(), "gave a block of f32[3, 2]");
    let declared = a.transform(other_type.giving(&[3, 2], DType::F32)).unwrap();
    assert_eq!((declared.dtype(), declared.compute().unwrap().len()), (DType::F32, 6));
}

#[test]
fn kernels_with_parameters() {
    let session = session();
    let (a, x) = pair(&session, &[6, 6], &[3, 2], 11);
    check(&a.transform(RelationKernel::with_scalar(BinaryOp::Mul, 2.0)).unwrap(), &x.transform(|x| x.map(|v| 2.0 * v)));
    let sums = a.transform(RelationKernel::reduce(tilewright::build::Reduction::Sum, &[1])).unwrap();
    check(&sums, &x.transform(|x| Block::new(&[3], |at| x.get(&[at[0], 0]) + x.get(&[at[0], 1]))));
    let smallest = a.transform("min").unwrap();
    assert_eq!(smallest.bound(), [0u64; 0]);
    assert_eq!(a.transform(RelationKernel::cast(DType::I32)).unwrap().dtype(), DType::I32);
    assert_message(
        a.transform(RelationKernel::reduce(tilewright::build::Reduction::Sum, &[2])),
        "along axis 2 of blocks",
    );
}
