//! Every engine and every way to plan gives the same blocks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tilewright::ir::program::FunctionTable;
use tilewright::ir::{oracle, text};
use tilewright::place::{Cluster, SchedulerName};
use tilewright::{Relation, RelationKernel, Session};

use crate::random::sequence;
use crate::reference::Block;
use crate::{check, elementwise, pair, session};

/// Sessions that plan or run in different ways.
fn sessions() -> Vec<Session> {
    let schedulers = [
        SchedulerName::Algebraic,
        SchedulerName::Timed,
        SchedulerName::Pattern,
        SchedulerName::Lshs,
        SchedulerName::RoundRobin,
    ];
    let placed = schedulers.map(|scheduler| Session::builder().cluster(Cluster::of(2, 2, scheduler).unwrap()));
    let others = [
        Session::builder().rewrites(false),
        Session::builder().chaos(5),
        Session::builder().tile(3),
        Session::builder().block_bytes(32),
        Session::builder().memory(1 << 24),
    ];
    placed.into_iter().chain(others).map(|builder| builder.threads(2).build()).collect()
}

#[test]
fn plans_of_every_kind_agree() {
    for session in sessions() {
        for seed in 1000..1025 {
            let (relation, blocks) = sequence(&session, seed);
            check(&relation, &blocks);
        }
    }
}

fn inputs_of(relation: &Relation) -> (tilewright::Program, BTreeMap<String, tilewright::Array>) {
    let (program, inputs) = relation.tensor().program().unwrap();
    (program, inputs.into_iter().map(|(name, source)| (name, source.to_array().unwrap())).collect())
}

#[test]
fn the_oracle_agrees() {
    let session = session();
    for seed in 2000..2060 {
        let (relation, _) = sequence(&session, seed);
        let (program, inputs) = inputs_of(&relation);
        let expected = oracle::evaluate(&program, &inputs).unwrap().remove(&program.outputs[0]).unwrap();
        let computed = relation.tensor().compute().unwrap();
        assert_eq!(
            (computed.shape(), computed.to_f64_vec()),
            (expected.shape(), expected.to_f64_vec()),
            "{relation:?}"
        );
    }
}

#[test]
fn programs_of_relations_have_a_text() {
    let session = session();
    let (a, _) = pair(&session, &[12, 20], &[4, 5], 1);
    let some = a.filter(|key| (key[0] + key[1]) % 3 != 1).unwrap();
    let mut functions = FunctionTable::default();
    let relations = [
        some.join(&a, &[1], &[1], "ab,cb->ac").unwrap().aggregate(&[2], "add").unwrap(),
        some.join(&some, &[0], &[0], elementwise("sum", |x, y| x + y)).unwrap(),
    ];
    for relation in relations {
        let (program, _) = inputs_of(&relation);
        for node in &program.body.nodes {
            if let tilewright::ir::Op::BlockFn(call) = &node.op {
                functions.register(Shared(call.function.clone()));
            }
        }
        let written = text::print_program(&program);
        let read = text::parse_program(&written, &functions).unwrap();
        assert_eq!(text::print_program(&read), written);
    }
}

/// A function under the name of another, for a table of functions.
struct Shared(tilewright::ir::program::FunctionRef);

impl tilewright::ir::program::BlockFunction for Shared {
    fn name(&self) -> &str {
        self.0.0.name()
    }

    fn apply(
        &self,
        operands: &[tilewright::ArrayView<'_>],
        results: &mut [tilewright::Array],
    ) -> tilewright::Result<()> {
        self.0.0.apply(operands, results)
    }
}

#[test]
fn no_plan_computes_what_is_filtered_away() {
    for (k, session) in sessions().into_iter().enumerate() {
        let calls = Arc::new(AtomicU64::new(0));
        let (a, x) = pair(&session, &[8, 8], &[2, 2], 3);
        let counter = calls.clone();
        let counted = RelationKernel::function("counted", move |blocks| {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(blocks[0].to_array())
        });
        let keeps = |key: &[u64]| key[0] == (key[1] + 1) % 4;
        let some = a.transform(counted).unwrap().filter(keeps).unwrap();
        let product = some.join(&a, &[1], &[0], "matmul").unwrap().aggregate(&[0, 2], "add").unwrap();
        let add = |x: &Block, y: &Block| x.zip(y, |x, y| x + y);
        check(&product, &x.filter(keeps).join(&x, &[1], &[0], Block::matmul).aggregate(&[0, 2], add));
        assert_eq!(calls.load(Ordering::Relaxed), 4, "session {k}");
    }
}

#[test]
fn a_budget_holds_for_relations() {
    let blocks = |session: &Session| {
        let (a, _) = pair(session, &[400, 400], &[100, 100], 4);
        a.join(&a, &[1], &[0], "matmul").unwrap().aggregate(&[0, 2], "add").unwrap().compute()
    };
    // Sixteen blocks of 80 kB are cut, and as many results are kept.
    assert!(blocks(&Session::builder().threads(2).memory(4 << 20).build()).is_ok());
    let error = blocks(&Session::builder().threads(2).memory(1 << 20).build()).unwrap_err();
    assert!(error.message().contains("the budget is"), "{error:?}");
}
