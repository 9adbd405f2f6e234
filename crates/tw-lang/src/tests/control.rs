//! Loops, branches and block functions.

use std::collections::BTreeMap;

use tw_ir::program::{BlockFunction, FunctionTable};
use tw_ir::{Array, ArrayView, Op, Scalar};

use super::{parse, run, shown};

#[test]
fn loops_carry_what_they_assign() {
    assert_eq!(shown("y = 1\nk = 0\nwhile k < 10 { y = y * 2; k += 1 }"), "i64[] 1024");
    let newton = "x = 2.0\nerr = 1.0\nsteps = 0
        while err > 1e-12 and steps < 100 {
            new = (x + 2 / x) / 2     # local to the body
            err = abs(new - x)
            x = new
            steps += 1
        }
        y = x";
    assert!((run(newton)[0] - std::f64::consts::SQRT_2).abs() < 1e-12);
    let jacobi = "param n = 6\nu = zeros(n)\nu[0] = 1.0\nk = 0
        while k < 200 { u[i] = (u[i-1] + u[i+1]) / 2 for i in 1..n-1; k += 1 }
        y = u";
    let u = run(jacobi);
    assert!((0..6).all(|i| (u[i] - (1.0 - i as f64 / 5.0)).abs() < 1e-6), "{u:?}");
}

#[test]
fn loops_nest() {
    let text = "y = 0\ni0 = 0
        while i0 < 3 {
            j0 = 0
            while j0 < i0 { y += 1; j0 += 1 }
            i0 += 1
        }";
    assert_eq!(shown(text), "i64[] 3");
}

#[test]
fn a_loop_whose_condition_is_false_does_not_run() {
    assert_eq!(shown("y = 3\nwhile false { y = 4 }"), "i64[] 3");
}

#[test]
fn branches_join() {
    let text = "x = arange(3)\nif sum(x) > 2 { y = x; z = 1 } else { y = -x }";
    assert_eq!(shown(text), "i64[3] 0 1 2");
    assert_eq!(shown("y = 1\nif sum(arange(3)) > 5 { y = 2 }"), "i64[] 1");
    assert_eq!(shown("s = sum(arange(3))\nif s > 5 { y = 2 }\nelse if s > 2 { y = 1.5 }\nelse { y = 0 }"), "f64[] 1.5");
    assert_eq!(shown("param big = true\nif big { y = arange(2) } else { y = 1 }"), "i64[2] 0 1");
}

#[test]
fn masks_inside_loops_resolve_inside() {
    let text = "x = arange(10)\ny = 0\nk = 0
        while k < 3 { y = y + sum(x[x > k * 3]); k += 1 }";
    assert_eq!(shown(text), "i64[] 108");
}

struct Double;

impl BlockFunction for Double {
    fn name(&self) -> &str {
        "double"
    }
    fn apply(&self, operands: &[ArrayView<'_>], results: &mut [Array]) -> tw_ir::Result<()> {
        let mut total = 0.0;
        for k in 0..operands[0].data().len() {
            let value = operands[0].data().get(k).as_f64();
            results[0].data_mut().set(k, Scalar::F64(2.0 * value));
            total += value;
        }
        results[1].data_mut().set(0, Scalar::F64(total));
        Ok(())
    }
}

#[test]
fn block_functions() {
    let mut functions = FunctionTable::default();
    functions.register(Double);
    let text = "input x: f64[5] tile(2)\ny, s = block double(x[b]) -> f64[b], f64[1*b]\noutput y\noutput s";
    let unit = super::parse_program(text, &BTreeMap::new(), &super::Files, &functions).unwrap();
    let inputs = BTreeMap::from([("x".to_string(), Array::from_f64(&[1.0, 2.0, 3.0, 4.0, 5.0]))]);
    let results = tw_ir::oracle::evaluate(&unit.program, &inputs).unwrap();
    assert_eq!(results["y"].to_f64_vec(), [2.0, 4.0, 6.0, 8.0, 10.0]);
    assert_eq!(results["s"].to_f64_vec(), [3.0, 7.0, 5.0]);
    let errors = parse(text).unwrap_err();
    assert_eq!(errors[0].message(), "no block function is called `double`");
}

#[test]
fn nodes_and_errors_know_their_file() {
    let file = tw_ir::FileId::named("lib.tw");
    let parse = |text| crate::parse_file(file, text, &BTreeMap::new(), &crate::NoFiles, &FunctionTable::default());
    let is_placed = |span: &tw_ir::Span| matches!(span, &tw_ir::Span::Text { file: found, .. } if found == file);
    let unit = parse("x = arange(3)\ny[i] = x[i] + (1)\nif sum(y) > 2 { y = y + x }\noutput y").unwrap();
    assert!(unit.program.body.nodes.iter().all(|node| is_placed(&node.span)));
    for text in ["x = ", "x = (1", "x = y\nz = w", "x = 1", "x = \"a", "output arange(3) + arange(2)"] {
        let errors = parse(text).unwrap_err();
        assert!(errors.iter().all(|error| is_placed(error.span())), "{text}: {errors:?}");
    }
}

#[test]
fn nodes_know_their_text() {
    let text = "x = arange(3)\ny[i] = x[i] + 1\noutput y";
    let unit = parse(text).unwrap();
    let spans: Vec<String> = unit
        .program
        .body
        .nodes
        .iter()
        .filter(|node| matches!(node.op, Op::Index(_)))
        .map(|node| match node.span {
            tw_ir::Span::Text { start, end, .. } => text[start as usize..end as usize].to_string(),
            _ => String::new(),
        })
        .collect();
    assert_eq!(spans, ["arange(3)", "y[i] = x[i] + 1"]);
}
