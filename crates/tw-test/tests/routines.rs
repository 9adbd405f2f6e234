//! Routines of linear algebra: one node of a program until the planner expands them.

use std::collections::BTreeMap;

use tilewright::algorithms::{self, Compression, Routine, Transform};
use tilewright::{Array, Axis, Buffer, Session, Tensor};
use tw_ir::program::{Op, Program};
use tw_ir::text::{parse_program, print_program};
use tw_lang::NoFiles;
use tw_plan::{PlanOptions, plan_segment};
use tw_test::generate::function_table;

/// The routines of a program, which has no other operations but its sources.
fn only_routines(program: &Program) -> Vec<Routine> {
    let routine = |op: &Op| match op {
        Op::Routine(spec) => Some(spec.routine()),
        Op::Source(_) => None,
        op => panic!("{} beside a routine", op.name()),
    };
    program.body.nodes.iter().filter_map(|node| routine(&node.op)).collect()
}

fn has_routine(program: &Program) -> bool {
    program.body.nodes.iter().any(|node| matches!(node.op, Op::Routine(_)))
}

fn comes_back(program: &Program) {
    let text = print_program(program);
    let back = parse_program(&text, &function_table()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(print_program(&back), text);
    assert_eq!(back.values, program.values);
}

#[test]
fn every_routine_of_the_language_is_one_node() {
    for &routine in Routine::PLAIN {
        let mut text = "input A: f64[6, 6] tile(3, 3)\ninput b: f64[6, 2]\n".to_string();
        let names: Vec<String> = (0..n_results(routine)).map(|k| format!("x{k}")).collect();
        let args = ["A", "b"][..routine.n_args()].join(", ");
        text += &format!("{} = linalg.{}({args})\n", names.join(", "), routine.name());
        names.iter().for_each(|name| text += &format!("output {name}\n"));
        let unit = tw_lang::parse_program(&text, &BTreeMap::new(), &NoFiles, &function_table());
        let program = unit.unwrap_or_else(|errors| panic!("{text}{errors:?}")).program;
        assert_eq!(only_routines(&program), [routine], "{text}");
        comes_back(&program);
        for rewrites in [true, false] {
            let planned = plan_segment(&program, &PlanOptions { rewrites, ..PlanOptions::default() }).unwrap();
            assert!(!has_routine(&planned.program), "{text}");
            // The types that were foreseen, with their tilings, are those of the algorithm.
            for (&before, &after) in program.body.results.iter().zip(&planned.program.body.results) {
                assert!(program.ty(before).same_shape(planned.program.ty(after)), "{text}");
                assert_eq!(program.ty(before).tiling, planned.program.ty(after).tiling, "{text}");
            }
        }
    }
}

fn n_results(routine: Routine) -> usize {
    match routine {
        Routine::Lstsq => 4,
        Routine::Lu | Routine::Svd | Routine::SvdFull => 3,
        Routine::Eig | Routine::Eigh | Routine::Qr | Routine::QrComplete | Routine::QrIndirect | Routine::Slogdet => 2,
        _ => 1,
    }
}

#[test]
fn every_routine_of_a_tensor_is_one_node() {
    let session = Session::new();
    let plain = session.random_normal(&[6, 6], 1).unwrap();
    let a = plain.rechunk(&[Axis::uniform(6, 3), Axis::uniform(6, 3)]).unwrap();
    a.persist().unwrap();
    let check = |made: &Tensor, routine: Routine| {
        let (program, _) = made.program().unwrap();
        assert_eq!(only_routines(&program), [routine]);
        comes_back(&program);
    };
    for &routine in Routine::PLAIN.iter().filter(|routine| routine.n_args() == 1) {
        let made = algorithms::apply(routine, &[&a]).unwrap();
        made.iter().for_each(|made| check(made, routine));
    }
    let how = Compression { rank: 2, oversampling: 1, iterations: 1, seed: 3 };
    check(&algorithms::svd_compressed(&a, how).unwrap()[1], Routine::SvdCompressed(how));
    let fourier = algorithms::fourier(&a, Transform::FromReal, 0, 9).unwrap();
    check(&fourier, Routine::Fourier { transform: Transform::FromReal, axis: 0, n: 9 });
}

/// A loop factors a matrix in every turn: segments of loops carry routines too, and hold their operands in blocks of their own.
#[test]
fn routines_in_loops_agree_with_the_oracle() {
    let text = "input A: f64[6, 6] tile(2, 3)\nx = A\nk = 0\nwhile k < 3 {\n    x = linalg.solve(x + 7 * eye(6), A)\n    k = k + 1\n}\noutput x\n";
    let unit = tw_lang::parse_program(text, &BTreeMap::new(), &NoFiles, &function_table());
    let program = unit.unwrap_or_else(|errors| panic!("{errors:?}")).program;
    let data = Array::new(vec![6, 6], Buffer::F64((0..36).map(|k| f64::from(k * 7 % 11)).collect())).unwrap();
    let inputs = BTreeMap::from([("A".to_string(), data)]);
    let verdict = tw_test::differential::compare(&Session::new(), &program, &inputs, 1e-9);
    assert_eq!(verdict, tw_test::differential::Verdict::Equal);
}
