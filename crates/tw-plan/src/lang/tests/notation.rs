//! Index notation.

use tw_ir::{Array, Op};

use super::{parse, run, run_with, shown};

/// Index statements, reads and variables of the last index node.
fn last_statement(text: &str) -> (usize, usize, usize) {
    let unit = parse(text).unwrap_or_else(|errors| panic!("{text}\n{errors:?}"));
    let statements: Vec<_> = unit
        .program
        .body
        .nodes
        .iter()
        .filter_map(|node| match &node.op {
            Op::Index(statement) => Some(statement),
            _ => None,
        })
        .collect();
    let last = statements.last().unwrap();
    (statements.len(), last.reads.len(), last.vars.len())
}

const A: &str = "A = reshape(arange(6), 2, 3)\nx = arange(1, 5)\n";

#[test]
fn products_are_one_statement() {
    let text = "input A: f64[2, 3]\ninput B: f64[3, 4]\nC[i,j] = sum[k](A[i,k] * B[k,j])\noutput C";
    assert_eq!(last_statement(text), (1, 2, 3));
    let (a, b) = (Array::from_f64(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), Array::from_f64(&[1.0; 12]));
    let inputs = [("A", a.reshaped(&[2, 3]).unwrap()), ("B", b.reshaped(&[3, 4]).unwrap())];
    assert_eq!(run_with(text, &inputs).to_f64_vec(), [6.0, 6.0, 6.0, 6.0, 15.0, 15.0, 15.0, 15.0]);
    let implicit = text.replace("= sum[k](A[i,k] * B[k,j])", "+= A[i,k] * B[k,j]");
    assert_eq!(last_statement(&implicit), (1, 2, 3));
    assert_eq!(run_with(&implicit, &inputs), run_with(text, &inputs));
}

#[test]
fn equal_reads_are_shared() {
    assert_eq!(last_statement("input x: f64[4]\ny[i] = x[i] * x[i] + x[i+0] - x[3-i]\noutput y"), (1, 2, 1));
}

#[test]
fn elementwise_and_index_values() {
    assert_eq!(shown("y[i,j] = i * 10 + j for i in 0..2, j in 0..3"), "i64[2, 3] 0 1 2 10 11 12");
    assert_eq!(shown(&format!("{A}y[j,i] = A[i,j]")), "i64[3, 2] 0 3 1 4 2 5");
}
