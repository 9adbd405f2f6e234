//! Expressions on whole tensors.

use super::{run, run_with, shown};
use tw_ir::Array;

#[test]
fn arithmetic_and_precedence() {
    assert_eq!(run("x = arange(4)\ny = 1 + x * 2 - -x ** 2"), [1.0, 4.0, 9.0, 16.0]);
    assert_eq!(shown("x = arange(1, 4)\ny = 7 // x % 2 / 4"), "f64[3] 0.25 0.25 0");
    assert_eq!(shown("x = arange(4)\ny = not x > 1 and x != 0 or x == 3"), "bool[4] 0 1 0 1");
    assert_eq!(shown("x = arange(3)\ny = 2 ** 3 ** 0 * x"), "i64[3] 0 2 4");
    assert_eq!(shown("x = arange(4)\ny = if x % 2 == 0 then x else -1"), "i64[4] 0 -1 2 -1");
    assert_eq!(shown("x = arange(3)\ny = select(x > 0, 1.5, 0)"), "f64[3] 0 1.5 1.5");
    assert_eq!(shown("x = arange(5)\ny = clip(x, 1, 3) + min(x, 2, 3) + max(x, 1)"), "i64[5] 2 3 6 8 9");
}

#[test]
fn literals_are_weak_and_fold() {
    assert_eq!(shown("x = f32(arange(3))\ny = x * 0.5 + 1"), "f32[3] 1 1.5 2");
    assert_eq!(shown("half = 1 / 2\nx = f32(arange(3))\ny = x * half"), "f32[3] 0 0.5 1");
    assert_eq!(shown("y = 2 ** 10 - 1 // 2"), "i64[] 1024");
    assert_eq!(shown("y = sqrt(16) + abs(-1)"), "f64[] 5");
    assert_eq!(shown("y = if 1 < 2 then 3 else 4.0"), "f64[] 3");
    assert_eq!(shown("y = not true or false"), "bool[] 0");
    assert_eq!(shown("y = f32(2)"), "f32[] 2");
}

#[test]
fn parameters() {
    let text = "param n = 4\nparam m = n // 2 + 1\nparam h = 1 / n\ny = full(m, value=h)\noutput y";
    assert_eq!(run_with(text, &[]).to_f64_vec(), [0.25; 3]);
    let unit = super::parse_with(text, &[("n", super::ParamValue::Int(8))]).unwrap();
    assert_eq!(unit.params["m"], super::ParamValue::Int(5));
    assert_eq!(unit.program.ty(unit.program.body.results[0]).to_string(), "f64[5]");
    let unit = super::parse_with("param t = 0.5\ny = t\noutput y", &[("t", super::ParamValue::Int(2))]).unwrap();
    assert_eq!(unit.params["t"], super::ParamValue::Float(2.0));
}

#[test]
fn created_tensors() {
    assert_eq!(shown("y = zeros(2, 2) + ones(2)"), "f64[2, 2] 1 1 1 1");
    assert_eq!(shown("y = zeros((2, 1), dtype=i64)"), "i64[2, 1] 0 0");
    assert_eq!(shown("y = arange(5, 0, -2)"), "i64[3] 5 3 1");
    assert_eq!(shown("y = arange(0, 1, 0.25)"), "f64[4] 0 0.25 0.5 0.75");
    assert_eq!(shown("y = linspace(0, 1, 5)"), "f64[5] 0 0.25 0.5 0.75 1");
    assert_eq!(shown("y = eye(2, 3, k=1)"), "f64[2, 3] 0 1 0 0 0 1");
    assert_eq!(shown("x = arange(2)\ny = ones_like(x)"), "i64[2] 1 1");
    let draws = run("y = random.integers(3, 6, 50)");
    assert!(draws.iter().all(|v| (3.0..6.0).contains(v)) && draws.contains(&3.0) && draws.contains(&5.0));
    assert_eq!(run("y = random.normal(3, seed=7)"), run("a = random.normal(9)\ny = random.normal(3, seed=7)"));
    assert_eq!(run("a = random.uniform(8)\nb = random.uniform(8)\ny = any(a == b)"), [0.0]);
    let scaled = run("y = random.uniform(20, seed=3, low=2, high=4) / 1.0");
    assert!(scaled.iter().all(|v| (2.0..4.0).contains(v)));
}

#[test]
fn reductions() {
    let x = "x = reshape(arange(6), 2, 3)\n";
    assert_eq!(shown(&format!("{x}y = x.sum(axis=0)")), "i64[3] 3 5 7");
    assert_eq!(shown(&format!("{x}y = sum(x, axis=(0, 1), keepdims=true)")), "i64[1, 1] 15");
    assert_eq!(shown(&format!("{x}y = mean(x, axis=-1)")), "f64[2] 1 4");
    assert_eq!(shown(&format!("{x}y = x.max() - min(x)")), "i64[] 5");
    assert_eq!(shown(&format!("{x}y = argmax(x, axis=1) + argmin(x)")), "i64[2] 2 2");
    assert_eq!(shown(&format!("{x}y = var(x, axis=0, ddof=1)")), "f64[3] 4.5 4.5 4.5");
    assert_eq!(shown(&format!("{x}y = std(x, axis=0)")), "f64[3] 1.5 1.5 1.5");
    assert_eq!(shown(&format!("{x}y = count(x > 2) + sum(x > 2)")), "i64[] 6");
    assert_eq!(shown(&format!("{x}y = any(x > 4, axis=1) and all(x >= 0)")), "bool[2] 0 1");
    assert_eq!(shown(&format!("{x}y = cumsum(x, axis=1)")), "i64[2, 3] 0 1 3 3 7 12");
    assert_eq!(shown("y = cummax(concat(arange(3), arange(2)))"), "i64[5] 0 1 2 2 2");
    assert_eq!(shown("y = prod(arange(1, 5)) + cumprod(arange(1, 4))[-1]"), "i64[] 30");
}

#[test]
fn products() {
    assert_eq!(shown("A = reshape(arange(6), 2, 3)\ny = A @ A.T"), "i64[2, 2] 5 14 14 50");
    assert_eq!(shown("A = reshape(arange(6), 2, 3)\nv = ones(3)\ny = A @ v + 1"), "f64[2] 4 13");
    assert_eq!(shown("A = eye(2)\ny = A @ A @ A * 2"), "f64[2, 2] 2 0 0 2");
    assert_eq!(shown("A = reshape(arange(6), 2, 3)\ny = einsum(\"ij,kj->ik\", A, A)"), "i64[2, 2] 5 14 14 50");
    assert_eq!(
        shown("A = reshape(arange(8), 2, 2, 2)\nB = reshape(arange(4), 2, 2)\ny = A @ B"),
        "i64[2, 2, 2] 2 3 6 11 10 19 14 27"
    );
}

#[test]
fn slices_and_layouts() {
    let x = "x = reshape(arange(12), 3, 4)\n";
    for (expression, expected) in [
        ("x[1:3, ::2]", "i64[2, 2] 4 6 8 10"),
        ("x[0, :]", "i64[4] 0 1 2 3"),
        ("x[-1]", "i64[4] 8 9 10 11"),
        ("x[..., -1]", "i64[3] 3 7 11"),
        ("x[::-1, 0]", "i64[3] 8 4 0"),
        ("x[:, newaxis, 1]", "i64[3, 1] 1 5 9"),
        ("x[2:0:-1, 3]", "i64[2] 11 7"),
        ("x.T[1]", "i64[3] 1 5 9"),
        ("transpose(x, 1, 0)[2]", "i64[3] 2 6 10"),
        ("flip(x, axis=1)[0]", "i64[4] 3 2 1 0"),
        ("roll(x, 1, axis=1)[0]", "i64[4] 3 0 1 2"),
        ("roll(x[0], -5)", "i64[4] 1 2 3 0"),
        ("diagonal(x, offset=1)", "i64[3] 1 6 11"),
        ("diagonal(x, offset=-1)", "i64[2] 4 9"),
        ("tril(x)[1]", "i64[4] 4 5 0 0"),
        ("triu(x, k=1)[1]", "i64[4] 0 0 6 7"),
        ("ravel(x)[5:7]", "i64[2] 5 6"),
        ("reshape(x, 2, -1)[1]", "i64[6] 6 7 8 9 10 11"),
        ("squeeze(x[0:1])", "i64[4] 0 1 2 3"),
        ("expand_dims(x[0, :2], axis=1)", "i64[2, 1] 0 1"),
        ("broadcast_to(x[0, :2], 2, 2)", "i64[2, 2] 0 1 0 1"),
        ("pad(x[0, :2], 1)", "i64[4] 0 0 1 0"),
        ("pad(x[0, 1:3], (2, 1), edge=clamp)", "i64[5] 1 1 1 2 2"),
        ("pad(x[0, :3], (1, 2), edge=wrap)", "i64[6] 2 0 1 2 0 1"),
        ("pad(x[0, :1], (0, 1), value=9)", "i64[2] 0 9"),
        ("concat(x[0], x[1, :1] * 1.0)", "f64[5] 0 1 2 3 4"),
        ("concat(x[:, :1], x[:, 3:], axis=1)", "i64[3, 2] 0 3 4 7 8 11"),
        ("stack(x[0, :2], x[1, :2], axis=1)", "i64[2, 2] 0 4 1 5"),
        ("retile(x, tile(2, (3 1)))[0]", "i64[4] 0 1 2 3"),
        ("x[0].shape[0] + len(x) + size(x)", "i64[] 19"),
    ] {
        assert_eq!(shown(&format!("{x}y = {expression}")), expected, "{expression}");
    }
}

#[test]
fn gathers_masks_and_sorting() {
    let x = "x = reshape(arange(12), 3, 4) * 10\ni0 = arange(2, -1, -1)\n";
    for (expression, expected) in [
        ("take(x, i0, axis=1)[0]", "i64[3] 20 10 0"),
        ("x[i0, 0]", "i64[3] 80 40 0"),
        ("x[0, i0 - 1]", "i64[3] 10 0 30"),
        ("x[i0, i0]", "i64[3] 100 50 0"),
        ("x[1][argsort(-x[1])][0]", "i64[] 70"),
        ("sort(x[0], descending=true)", "i64[4] 30 20 10 0"),
        ("topk(x, 2, axis=0)[:, 1]", "i64[2] 90 50"),
        ("argtopk(-x[0], 3)", "i64[3] 0 1 2"),
        ("x[0][x[0] > 5]", "i64[3] 10 20 30"),
        ("x[x[:, 0] > 30]", "i64[2, 4] 40 50 60 70 80 90 100 110"),
        ("x[x > 95]", "i64[2] 100 110"),
        ("x[x > 95] + x[x > 95]", "i64[2] 200 220"),
        ("nonzero(x[0] > 5)", "i64[3] 1 2 3"),
        ("nonzero(x > 95, axis=0) * 10 + nonzero(x > 95, axis=1)", "i64[2] 22 23"),
        ("sum(x[x > 500])", "i64[] 0"),
        ("len(x[x > 95]) + 1", "i64[] 3"),
        ("zeros(len(x[x > 95]))", "f64[2] 0 0"),
    ] {
        assert_eq!(shown(&format!("{x}y = {expression}")), expected, "{expression}");
    }
}

#[test]
fn inputs_and_outputs() {
    let text = "input A: f64[2, 2] tile(1, 2)\ninput v = \"vector.npy\" tile((2 3))\nB = A + v[0]\noutput B -> \"b.npy\"\noutput v";
    let unit = super::parse(text).unwrap();
    assert_eq!(unit.inputs[0].ty.to_string(), "f64[2, 2] tile(1, 2)");
    assert_eq!(unit.inputs[1].path.as_deref(), Some("vector.npy"));
    assert_eq!(unit.inputs[1].ty.to_string(), "i64[5] tile((2 3))");
    let inputs = [
        ("A".to_string(), Array::from_f64(&[1.0, 2.0, 3.0, 4.0]).reshaped(&[2, 2]).unwrap()),
        ("v".to_string(), Array::from_i64(&[1, 2, 3, 4, 5])),
    ];
    let outcome = tw_ir::oracle::evaluate_all(&unit.program, &inputs.into_iter().collect()).unwrap();
    assert_eq!(outcome.stored["b.npy"].to_f64_vec(), [2.0, 3.0, 4.0, 5.0]);
    assert_eq!(outcome.outputs["v"].to_f64_vec(), [1.0, 2.0, 3.0, 4.0, 5.0]);
    let unit = super::parse("input M = \"matrix.npy\" tile(-1)\noutput M").unwrap();
    assert_eq!(unit.inputs[0].ty.to_string(), "f64[2, 3] tile(2, 3)");
}

#[test]
fn updates_of_whole_tensors() {
    assert_eq!(shown("y = arange(3)\ny += 1\ny *= 2\ny -= 1\ny max= 2"), "i64[3] 2 3 5");
    assert_eq!(shown("y = 1\ny += 1\ny /= 4"), "f64[] 0.5");
    assert_eq!(shown("y = arange(3) > 0\ny and= arange(3) < 2"), "bool[3] 0 1 0");
}

#[test]
fn constants_are_lists() {
    assert_eq!(shown("y = [1, 2.5, 3]"), "f64[3] 1 2.5 3");
    assert_eq!(shown("param n = 2\ny = [[n, 0], [0, n + 1]] @ [1, 1]"), "i64[2] 2 3");
    assert_eq!(shown("y = []"), "f64[0]");
    assert_eq!(shown("x = arange(5)\nw = [1, -1]\ny[i] = sum[k](x[i+k] * w[k])"), "i64[4] -1 -1 -1 -1");
    assert_eq!(shown("x = arange(5)\ny = x[[4, 0]]"), "i64[2] 4 0");
}

#[test]
fn slices_and_masks_are_assigned() {
    let x = "y = arange(6)\n";
    for (statement, expected) in [
        ("y[1:3] = 0", "i64[6] 0 0 0 3 4 5"),
        ("y[::2] = [7, 8, 9]", "i64[6] 7 1 8 3 9 5"),
        ("y[4::-2] = [7, 8, 9]", "i64[6] 9 1 8 3 7 5"),
        ("y[-2:] += 10", "i64[6] 0 1 2 3 14 15"),
        ("y[:] = -y", "i64[6] 0 -1 -2 -3 -4 -5"),
        ("y[5:2] = 1", "i64[6] 0 1 2 3 4 5"),
        ("y[y % 2 == 0] = 0", "i64[6] 0 1 0 3 0 5"),
        ("y[y > 3] *= -1", "i64[6] 0 1 2 3 -4 -5"),
        ("y = reshape(y, 2, 3)\ny[0, :] = y[1]", "i64[2, 3] 3 4 5 3 4 5"),
        ("y = reshape(y, 2, 3)\ny[..., 1] = [[8], [9]][:, 0]", "i64[2, 3] 0 8 2 3 9 5"),
        ("y = reshape(y, 2, 3)\ny[:, ::2] = [[1], [2]]", "i64[2, 3] 1 1 1 2 4 2"),
        ("y = reshape(y, 2, 3)\ny[1:, -1] = 8", "i64[2, 3] 0 1 2 3 4 8"),
    ] {
        assert_eq!(shown(&format!("{x}{statement}")), expected, "{statement}");
    }
}
