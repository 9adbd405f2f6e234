//! Index notation.

use tw_ir::{Array, Op};

use super::{parse, run_with, shown};

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
    assert_eq!(shown(&format!("{A}y[i] = exp(0 * x[i]) + max(x[i], 2) ** 2")), "f64[4] 5 5 10 17");
    assert_eq!(shown(&format!("{A}y[i] = if x[i] > 2 and not i == 3 then 1.5 else x[i]")), "f64[4] 1 2 1.5 4");
    assert_eq!(shown(&format!("{A}s = sum(x)\ny[i] = x[i] / s + sum(x) + x.max()")), "f64[4] 14.1 14.2 14.3 14.4");
    assert_eq!(shown(&format!("{A}y[i] = (A @ A.T)[i, 0] + A.T[1, i] + len(x)")), "i64[2] 10 22");
    assert_eq!(shown(&format!("{A}y[i] = f32(x[i]) * 0.5")), "f32[4] 0.5 1 1.5 2");
    assert_eq!(shown(&format!("{A}param two = 2\ny[i] = x[i] * two")), "i64[4] 2 4 6 8");
}

#[test]
fn affine_accesses() {
    assert_eq!(shown(&format!("{A}y[i] = x[3-i]")), "i64[4] 4 3 2 1");
    assert_eq!(shown(&format!("{A}y[i] = x[2*i] + x[2*i+1]")), "i64[2] 3 7");
    assert_eq!(shown(&format!("{A}y[i] = x[i / 2]")), "i64[8] 1 1 2 2 3 3 4 4");
    assert_eq!(shown(&format!("{A}y[i] = x[i % 2] * x[i]")), "i64[4] 1 4 3 8");
    assert_eq!(shown(&format!("{A}y[i] = x[(i + 1) // 2 % 3] for i in 0..5")), "i64[5] 1 2 2 3 3");
    assert_eq!(shown(&format!("{A}w = ones(2)\ny[i] = sum[k](x[i+k] * w[k])")), "f64[3] 3 5 7");
    assert_eq!(shown(&format!("{A}y[i] = x[i+1] - x[i-1] for i in 1..3")), "i64[3] 0 2 2");
    assert_eq!(shown(&format!("{A}y[i] = x[i+1]")), "i64[3] 2 3 4");
    assert_eq!(shown(&format!("{A}n = len(x)\ny[i] = x[n - 1 - i] + A[0, n - 4]")), "i64[4] 4 3 2 1");
    assert_eq!(shown(&format!("{A}y[i] = sum[j](A[i,j]) for i in 1..2, j in 0..2")), "i64[2] 0 7");
}

#[test]
fn edge_rules() {
    assert_eq!(shown(&format!("{A}y[i] = x[clamp(i-1)]")), "i64[4] 1 1 2 3");
    assert_eq!(shown(&format!("{A}y[i] = x[wrap(i+1)]")), "i64[4] 2 3 4 1");
    assert_eq!(shown(&format!("{A}y[i] = x[fill(i-1)] + x[i]")), "i64[4] 1 3 5 7");
    assert_eq!(shown(&format!("{A}y[i,j] = A[clamp(i-1), j] + A[i, wrap(j+1)]")), "i64[2, 3] 1 3 2 4 6 5");
    assert_eq!(shown(&format!("{A}y[i,j] = A[clamp(i+1), wrap(j-1)]")), "i64[2, 3] 5 3 4 5 3 4");
    assert_eq!(shown(&format!("{A}y[i,j] = A[fill(i+1), wrap(j-1)]")), "i64[2, 3] 5 3 4 0 0 0");
}

#[test]
fn reductions_of_every_kind() {
    for (expression, expected) in [
        ("sum[i, j](A[i,j])", "i64[] 15"),
        ("prod[k](x[k])", "i64[] 24"),
        ("min[k](x[k]) + max[k](x[k])", "i64[] 5"),
        ("mean[k](x[k])", "f64[] 2.5"),
        ("var[k](x[k])", "f64[] 1.25"),
        ("std[k](x[k] % 2)", "f64[] 0.5"),
        ("any[k](x[k] > 3)", "bool[] 1"),
        ("all[k](x[k] > 3)", "bool[] 0"),
        ("count[k](x[k] > 1)", "i64[] 3"),
        ("argmax[k](x[k] % 3)", "i64[] 1"),
        ("argmin[i, j](-A[i,j])", "i64[] 5"),
        ("argmax[k in 2..4](-x[k])", "i64[] 2"),
        ("sum[k in 1..3](x[k])", "i64[] 5"),
        ("sum[k in 0..5](1)", "i64[] 5"),
        ("sum[k](x[k] where x[k] > 2)", "i64[] 7"),
        ("sum[k](x[k] > 2)", "i64[] 2"),
        ("sum[i](max[j](A[i,j]))", "i64[] 7"),
        ("sum[i](sum[j](A[i,j] where j > 0) where i > 0)", "i64[] 9"),
        ("max[i](A[i,0] * sum[j](A[i,j]))", "i64[] 36"),
        ("sqrt(sum[i](x[i] * x[i]) - 5) + 1", "f64[] 6"),
        ("x / sum[i](x[i])", "f64[4] 0.1 0.2 0.3 0.4"),
    ] {
        assert_eq!(shown(&format!("{A}y = {expression}")), expected, "{expression}");
    }
    assert_eq!(shown(&format!("{A}y = sum[k](x[k]) where x[k] > 2")), "i64[] 7");
    assert_eq!(shown(&format!("{A}y = sum[k](x[k]) for k in 1..3")), "i64[] 5");
    assert_eq!(shown(&format!("{A}y[i] = A[i,0] - max[j](A[i,j]) / 2")), "f64[2] -1 0.5");
    assert_eq!(shown(&format!("{A}y[i] = sum[j](A[i,j] - mean[k](A[i,k]))")), "f64[2] 0 0");
}

#[test]
fn nested_reductions_are_statements_of_their_own() {
    let a = "input A: f64[2, 3]\n";
    assert_eq!(last_statement(&format!("{a}y[i] = sum[j](sum[k](A[i,j] * A[i,k]))\noutput y")), (1, 2, 3));
    assert_eq!(last_statement(&format!("{a}y[i] = sum[j](max[k](A[i,k]) * A[i,j])\noutput y")), (2, 2, 2));
    assert_eq!(last_statement(&format!("{a}y[i,j] = A[i,j] / sum[k](A[i,k])\noutput y")), (2, 2, 2));
}

#[test]
fn guards_leave_zeros() {
    assert_eq!(shown(&format!("{A}y[i] = x[i] where x[i] % 2 == 0")), "i64[4] 0 2 0 4");
    assert_eq!(shown(&format!("{A}y[i] = x[i-1] where i > 0 for i in 0..4")), "i64[4] 0 1 2 3");
}

#[test]
fn accumulation_on_the_left() {
    assert_eq!(shown(&format!("{A}y[i / 2] += x[i]")), "i64[2] 3 7");
    assert_eq!(shown(&format!("{A}y[i % 3] max= x[i]")), "i64[3] 4 2 3");
    assert_eq!(shown(&format!("{A}y[i % 3] *= x[i]")), "i64[3] 4 2 3");
    assert_eq!(shown(&format!("{A}y: f64[3]\ny[i / 2] += x[i]")), "f64[3] 3 7 0");
    assert_eq!(shown(&format!("{A}y = ones(3)\ny[i / 2] += x[i]")), "f64[3] 4 8 1");
    assert_eq!(shown(&format!("{A}y = ones(3)\ny[i / 2] -= x[i]")), "f64[3] -2 -6 1");
    assert_eq!(shown(&format!("{A}y = ones(3) * 3\ny[i / 2] min= x[i]")), "f64[3] 1 3 3");
    assert_eq!(shown(&format!("{A}y[i / 2] or= x[i] == 4")), "bool[2] 0 1");
    assert_eq!(shown(&format!("{A}y[i / 2] and= x[i] > 1")), "bool[2] 0 1");
    assert_eq!(shown(&format!("{A}y[i] += A[i,j] * A[i,k]")), "i64[2] 9 144");
    assert_eq!(shown(&format!("{A}y[i] += sum[j](A[i,j])")), "i64[2] 3 12");
    assert_eq!(shown(&format!("{A}y[i] += max[j](A[i,j] * x[k])")), "i64[2] 20 50");
    assert_eq!(shown(&format!("{A}y[i] -= max[j](A[i,j])")), "i64[2] -2 -5");
    assert_eq!(shown(&format!("{A}y[i,i] += x[i] for i in 0..2")), "i64[2, 2] 1 0 0 2");
    assert_eq!(shown(&format!("{A}y: i64[2]\ny[fill(i - 1)] += x[i]")), "i64[2] 2 3");
    assert_eq!(shown(&format!("{A}y = 0\ny += sum[i](x[i])")), "i64[] 10");
}

/// Without brackets on the left, contributions join the value that the name has, as in `y = y + ..`.
#[test]
fn accumulation_into_a_name() {
    assert_eq!(shown("y += i*i for i in 0..4"), "i64[] 14");
    assert_eq!(shown("y = 0\ny += i*i for i in 0..4"), "i64[] 14");
    assert_eq!(shown("y = 5\ny += i for i in 0..4"), "i64[] 11");
    assert_eq!(shown("y = 0\ny += i*j + 0.5 for i in 0..2, j in 0..3"), "f64[] 6");
    assert_eq!(shown("y = 0\ny += 1 for i in 0..4 where i % 2 == 0"), "i64[] 2");
    assert_eq!(shown("y = 1\ny *= i for i in 1..5"), "i64[] 24");
    assert_eq!(shown("y = 10\ny -= i for i in 0..4"), "i64[] 4");
    assert_eq!(shown(&format!("{A}y = 5\ny += x[i] for i in 0..4")), "i64[] 15");
    assert_eq!(shown(&format!("{A}y = 5\ny += x[i] where x[i] > 2")), "i64[] 12");
    assert_eq!(shown(&format!("{A}y = 2.5\ny max= x[i] where x[i] > 9")), "f64[] 2.5");
    assert_eq!(shown(&format!("{A}y = true\ny and= x[i] > 0 for i in 0..4")), "bool[] 1");
    assert_eq!(shown("y[i] = 2*i for i in 0..3"), "i64[3] 0 2 4");
}

#[test]
fn parts_of_a_tensor_are_replaced() {
    let y = "y = arange(5)\n";
    assert_eq!(shown(&format!("{y}y[0] = 7")), "i64[5] 7 1 2 3 4");
    assert_eq!(shown(&format!("{y}y[i] = -y[i] for i in 1..4")), "i64[5] 0 -1 -2 -3 4");
    assert_eq!(shown(&format!("{y}y[i+1] = y[i] for i in 0..3")), "i64[5] 0 0 1 2 4");
    assert_eq!(shown(&format!("{y}y[2*i] = 9 for i in 0..3")), "i64[5] 9 1 9 3 9");
    assert_eq!(shown(&format!("{y}y[i] = 0 where y[i] > 2")), "i64[5] 0 1 2 0 0");
    assert_eq!(shown(&format!("{y}y[i] = y[i] * 2")), "i64[5] 0 2 4 6 8");
    assert_eq!(shown(&format!("{y}x = ones(2)\ny[i] = x[i]")), "f64[2] 1 1");
    assert_eq!(shown("y = zeros(2, 3)\ny[i, 1] = i + 1"), "f64[2, 3] 0 1 0 0 2 0");
    assert_eq!(shown("y = zeros(3, 3)\ny[i, i] = 2"), "f64[3, 3] 2 0 0 0 2 0 0 0 2");
    assert_eq!(shown("y = zeros(2, 3)\ny[1, j] = sum[i](i) for i in 0..4"), "f64[2, 3] 0 0 0 6 6 6");
    assert_eq!(shown("u = arange(5) * 1.0\nu[i] = (u[i-1] + u[i+1]) / 2 + 1 for i in 1..4\ny = u"), "f64[5] 0 2 3 4 4");
    assert_eq!(shown("y: f64[4]\ny[i] = 1 for i in 1..3"), "f64[4] 0 1 1 0");
    assert_eq!(shown("y[i, i] = 1 for i in 0..2"), "i64[2, 2] 1 0 0 1");
}

#[test]
fn computed_positions() {
    let x = "x = arange(1, 5) * 10\nat = (arange(4) * 3 + 1) % 4\nA = reshape(arange(6), 2, 3)\n";
    assert_eq!(shown(&format!("{x}y[i] = x[at[i]]")), "i64[4] 20 10 40 30");
    assert_eq!(shown(&format!("{x}y[i] = x[at[i] - 1]")), "i64[4] 10 40 30 20");
    assert_eq!(shown(&format!("{x}y[i] = x[clamp(at[i] + 2)]")), "i64[4] 40 30 40 40");
    assert_eq!(shown(&format!("{x}y[i,j] = A[i, at[j] % 3]")), "i64[2, 4] 1 0 0 2 4 3 3 5");
    assert_eq!(shown(&format!("{x}y = sum[i](x[at[i]] * i)")), "i64[] 180");
    assert_eq!(shown(&format!("{x}y[i] = x[min(i * i, 3)] for i in 0..3")), "i64[3] 10 20 40");
    assert_eq!(shown(&format!("{x}k0 = sum(at) - 6\ny = x[k0 + 2]")), "i64[] 30");
    assert_eq!(shown(&format!("{x}k0 = sum(at) - 6\ny[i] = A[i, k0 + 2]")), "i64[2] 2 5");
    assert_eq!(shown(&format!("{x}y: i64[4]\ny[at[i]] += x[i]")), "i64[4] 20 10 40 30");
    assert_eq!(shown(&format!("{x}y: f64[2]\ny[at[i] // 2] += x[i] where i > 0")), "f64[2] 20 70");
    assert_eq!(
        shown(&format!("{x}y: i64[2, 2]\ny[j, at[i] % 2] += A[j, k] * x[i] for j in 0..2")),
        "i64[2, 2] 180 120 720 480"
    );
    assert_eq!(shown(&format!("{x}y = zeros(3)\ny[at[i] % 2] max= x[i]")), "f64[3] 40 30 0");
    assert_eq!(shown(&format!("{x}y: i64[4, 4]\ny[i, at[i]] += 1")), "i64[4, 4] 0 1 0 0 1 0 0 0 0 0 0 1 0 0 1 0");
}

#[test]
fn extents_that_depend_on_data() {
    let x = "x = arange(6) * 2\nz = x[x > 3]\n";
    assert_eq!(shown(&format!("{x}y[i] = z[i] * 2 + i")), "i64[4] 8 13 18 23");
    assert_eq!(shown(&format!("{x}y = sum[i](z[i] * z[i])")), "i64[] 216");
    assert_eq!(shown(&format!("{x}y[i] = z[wrap(i+1)] + z[clamp(i-1)]")), "i64[4] 10 12 16 12");
    assert_eq!(shown(&format!("{x}y[i] = x[i] + 0 * i for i in 0..len(z)")), "i64[4] 0 2 4 6");
    assert_eq!(shown(&format!("{x}y[i, j] = z[i] - x[j] where j < 1 for j in 0..2")), "i64[4, 2] 4 0 6 0 8 0 10 0");
    assert_eq!(shown(&format!("{x}y = x\ny[i] = 1 for i in 0..len(z)")), "i64[6] 1 1 1 1 8 10");
}
