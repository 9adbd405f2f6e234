//! What is said about wrong programs, where it points, and what it suggests.

use super::{complaint, parse_with};
use crate::ParamValue;

/// Programs with their complaints; see [`complaint`].
fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(complaint(text), *expected, "{text}");
    }
}

#[test]
fn syntax() {
    check(&[
        ("x = (1 + 2\ny = 3", "this bracket is never closed: `)` is missing | (1 + 2"),
        ("x = 1 +", "a value was expected, but the end of the text was found | "),
        ("x = 1 2", "the end of the statement was expected, but `2` was found | 2"),
        (
            "x = 1)",
            "the end of the statement was expected, but `)` was found | ) | remove it, or open a bracket for it",
        ),
        (
            "x = 1e400",
            "the number 1e400 is too large | 1e400 | the largest is 1.7976931348623157e308; `inf` is infinity",
        ),
        (
            "x = 99999999999999999999",
            "the number 99999999999999999999 is too large | 99999999999999999999 | whole numbers go up to 9223372036854775807; write a point for a float",
        ),
        ("x = a b", "the end of the statement was expected, but `b` was found | b"),
        ("x = 3 & 4", "`&` means nothing here | & | use `and`"),
        (
            "param while = 3",
            "the name of a parameter was expected, but the keyword `while` was found | while | `while` is a keyword; choose another name",
        ),
        ("while = 3", "`while` is a keyword and cannot be assigned | while | choose another name"),
        (
            "x = 1 < 2 < 3",
            "`and` or `or` was expected, but `<` was found | < | comparisons do not chain: write `a < b and b < c`",
        ),
        (
            "for i in 0..3 { }",
            "a statement was expected, but the keyword `for` was found | for | ranges follow their statement: `y[i] = x[i-1] for i in 1..n`; repeat statements with `while`",
        ),
        (
            "else { }",
            "a statement was expected, but the keyword `else` was found | else | `else` follows the closing brace of an `if`",
        ),
        ("x == 3", "`=` was expected, but `==` was found | == | `=` assigns, `==` compares"),
        ("sum(x)", "`=` was expected, but `(` was found | ( | a value must go somewhere: `y = f(x)`"),
        (
            "x = if 1 then 2",
            "`else` was expected, but the end of the text was found |  | an expression needs both sides: `if c then a else b`",
        ),
        (
            "input A",
            "`:` and a type, or `=` and a file name was expected, but the end of the text was found |  | for example `input A: f64[n, n]` or `input A = \"A.npy\"`",
        ),
        ("input A = read(a)", "a file name in double quotes was expected, but `a` was found | a"),
        ("input A = read \"a.npy\"", "`(` was expected, but \"a.npy\" was found | \"a.npy\""),
        (
            "x = read(\"a.npy\")",
            "a file is read by an input | read | for example `input x = read(\"x.npy\")` at the start of the program",
        ),
        ("input A = a.npy", "a file name in double quotes was expected, but `a` was found | a"),
        ("x = \"text", "this quotation mark is never closed | \" | text ends on the line it starts on"),
        ("x = 2x", "`2x` is neither a number nor a name | 2x | write `*` to multiply"),
        (
            "x = sum[k]",
            "`(` and what is reduced was expected, but the end of the text was found |  | for example `sum[k](x[k])`",
        ),
        (
            "x, z = 3",
            "only functions with several results can be assigned to several names | 3 | for example `q, r = linalg.qr(x)`, or `q, r = block f(x[i, :]) -> ..`",
        ),
        ("x = - not 3", "a value was expected, but the keyword `not` was found | not"),
        ("while 1 < 2 { x = 3", "this bracket is never closed: `}` is missing | { x = 3"),
    ]);
}

#[test]
fn names_and_arguments() {
    check(&[
        ("matrix = 1\nx = matirx + 1", "no value is called `matirx` | matirx | did you mean `matrix`?"),
        ("x = sqr(4)", "no function is called `sqr` | sqr | did you mean `sqrt`?"),
        ("x = normal(3)", "no function is called `normal` | normal | did you mean `random.normal`?"),
        (
            "x = random.gauss(3)",
            "no function is called `random.gauss` | gauss | `random` has uniform, normal, integers",
        ),
        ("x = sum(ones(3), axes=0)", "`sum` has no argument called `axes` | axes | did you mean `axis`?"),
        ("x = sum(ones(3), axis=1)", "axis 1 of a tensor of rank 1; axes go from -1 to 0 | 1"),
        (
            "x = cumsum(ones(3, 3))",
            "`cumsum` of a tensor of rank 2 needs an axis | cumsum(ones(3, 3)) | for example `axis=0`",
        ),
        ("sum = 3", "`sum` is a reduction and cannot be the name of a tensor | sum"),
        ("x = ones(3).foo", "tensors have no attribute `foo` | foo"),
        ("x = ones(3).sum", "tensors have no attribute `sum` | sum | call it: `.sum()`"),
        ("x = ones(3).shape", "a shape is not a value | ones(3).shape | take one extent of it: `x.shape[0]`"),
        ("x = einsum(\"ij,jk\", ones(2, 2))", "2 subscripts for 1 operands | einsum(\"ij,jk\", ones(2, 2))"),
        ("x = einsum(3, ones(2, 2))", "the subscripts of einsum are text, for example \"ij,jk->ik\" | 3"),
        (
            "x = retile(ones(3), 2)",
            "`retile` takes a tensor and a tiling: `retile(x, tile(500, 500))` | retile(ones(3), 2)",
        ),
        ("x = tile(3)", "a tiling is not a value | tile(3) | use it in `retile(x, tile(..))`"),
        ("x = (1, 2)", "several values where one is expected | (1, 2)"),
        ("x = min()", "`min` needs an argument `x` | min()"),
        ("x = sum(ones(3), 0, true, 4)", "`sum` takes at most 3 arguments, not 4 | 4"),
        ("x = sum(x=ones(3), x=ones(3))", "the argument `x` is given twice | ones(3)"),
        ("x = exp(ones(3), 2)", "`exp` takes 1 argument, not 2 | exp(ones(3), 2)"),
        (
            "y = undefined1 + 1\nz = undefined2 + y\nw = z * 2\nv = undefined3",
            "no value is called `undefined1` | undefined1\nno value is called `undefined2` | undefined2\nno value is called `undefined3` | undefined3",
        ),
    ]);
}

#[test]
fn shapes_and_types() {
    check(&[
        ("x = zeros(-1)", "an extent of -1; extents are not negative | -1"),
        ("x = zeros(2.5)", "an extent of 2.5; extents are whole numbers | 2.5 | `//` divides and rounds down"),
        (
            "x = zeros(sum(ones(2)))",
            "an extent must be known before the program runs | sum(ones(2)) | use numbers and parameters",
        ),
        (
            "x = zeros(1000000000000, 1000000000000)",
            "an array of shape [1000000000000, 1000000000000] has more elements than can be counted | zeros(1000000000000, 1000000000000)",
        ),
        (
            "x = ones(2) + ones(3)",
            "shapes [2] and [3] do not broadcast together | ones(2) + ones(3) | an axis of 2 meets an axis of 3; they must be equal, or one of them 1",
        ),
        (
            "x = ones(2) @ ones(3)",
            "the matrix product of shapes [2] and [3] | ones(2) @ ones(3) | 2 columns on the left meet 3 rows on the right",
        ),
        ("x = ones(3)[5]", "index 5 of axis 0, which has 3 elements | ones(3)[5]"),
        ("x = ones(3)[0, 0]", "2 indices for a tensor of rank 1 and shape [3] | ones(3)[0, 0]"),
        ("x = ones(3)[0.5]", "an index must be a whole number, not 0.5 | 0.5"),
        ("x = ones(3)[ones(3)]", "an index tensor of type f64 | ones(3) | integers choose elements, bools mask them"),
        (
            "x = ones(3)[ones(2) > 0]",
            "a mask of shape [2] for a tensor of shape [3] | ones(3)[ones(2) > 0] | a mask has the shape of the first axes of what it masks",
        ),
        (
            "x = reshape(ones(6), 4, 2)",
            "a tensor of shape [6] does not reshape to [4, 2] | reshape(ones(6), 4, 2) | it has 6 elements, not 8",
        ),
        (
            "x = -(ones(3) > 0)",
            "`-` does not take bool | -(ones(3) > 0) | convert to a number first, as in `-i64(x)`, or take the complement: `not x`, in Python `~x`",
        ),
        ("x = i64(ones(3)) and 1\ny = x + z", "no value is called `z` | z"),
        ("x = 1 // 0", "division by zero | 1 // 0"),
        ("x = 2 ** 64", "the result is too large a number | 2 ** 64"),
    ]);
}

#[test]
fn declarations() {
    check(&[
        (
            "n = 3\nparam n = 4\nparam m = 1\nm = 4",
            "`n` has a value already | n | parameters come first\n`m` is a parameter | m | parameters keep their value; choose another name",
        ),
        ("param n = 1\nparam n = 2", "`n` is a parameter already | n"),
        ("input A: f64[2]\ninput A: f64[3]", "`A` is an input already | A"),
        (
            "input A: f46[2]",
            "no element type is called `f46` | f46 | element types are bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, c64, c128, datetime64[unit], timedelta64[unit]",
        ),
        ("input A = \"nowhere.npy\"", "no file is called \"nowhere.npy\" | \"nowhere.npy\""),
        (
            "input A: f64[3] = \"matrix.npy\"",
            "`A` is declared as f64[3], but its file holds f64[2, 3] | input A: f64[3] = \"matrix.npy\"",
        ),
        ("input A: f64[4, 4] tile(2, 2, 2)", "a tiling of 3 axes for f64[4, 4], which has 2 | tile(2, 2, 2)"),
        ("input A: f64[4] tile((3 2))", "the tiles of axis 0 cover 5 elements, but the axis has 4 | tile((3 2))"),
        ("input A: f64[4] tile(0)", "a tile of length 0 | 0 | -1 is the whole axis"),
        ("x = 1\noutput x\noutput x", "`x` is an output already | x"),
        ("x = 1\nz = 2\noutput x -> \"a.npy\"\noutput z -> \"a.npy\"", "\"a.npy\" is written already | \"a.npy\""),
        ("x = 1", "the program has no output |  | name what you want: `output x`, or `output x -> \"x.npy\"`"),
        ("x: f64[3]\ny = x", "`x` has no value yet | x"),
        ("x: f64[3]\nx = ones(4)", "`x` was declared as f64[3], but this is f64[4] | x = ones(4)"),
        ("x: i64[3]\nx = ones(3)", "f64 does not fit into i64 | x = ones(3) | convert it: `i64(..)`"),
    ]);
}

#[test]
fn index_notation() {
    check(&[
        (
            "x = ones(3)\nx = x[i]",
            "the index `i` is not bound | i | put it on the left: `y[i] = ..`, or reduce over it: `sum[i](..)`",
        ),
        (
            "x = ones(3)\ny[i] = x[i] * x[k]",
            "the index `k` is not bound | k | put it on the left, or say how its values combine: `sum[k](..)`, or `+=` for the whole statement",
        ),
        ("x = ones(3)\ny[i] = x[i] * k", "no value is called `k` | k"),
        ("A = ones(3, 4)\ny[i] = A[i, i]", "the index `i` is used with two different extents: 3 and 4 | i"),
        ("A = ones(3, 4)\ny[i] = A[i]", "`A` has rank 2, but 1 index is given | A[i]"),
        (
            "A = ones(3, 4)\ny[i] = A * i",
            "`A` is f64[3, 4], where one element is expected | A | give it indices, for example `[i, j]`",
        ),
        (
            "A = ones(3, 4)\ny[i] = sum(A[i, k])",
            "this works on whole tensors, but uses the index `i` | sum(A[i, k]) | name the indices that are reduced: `sum[k](..)`",
        ),
        (
            "A = ones(3, 4)\ny[i] = sum(A[k, 0])",
            "the index `k` is not bound | k | put it on the left: `y[k] = ..`, or reduce over it: `sum[k](..)`",
        ),
        (
            "x = ones(3)\ny[i] = x[i+1] + x[i]",
            "index `i + 1` runs from 1 to 3, but axis 0 of `x` has 3 elements | i+1 | bound the index with a range, or choose an edge rule: fill, clamp or wrap",
        ),
        (
            "x = ones(3)\ny[i] = x[i+1] + x[i-1]",
            "it is not clear how far the index `i` goes | i+1 | no access says it alone; write its range: `for i in 1..n-1`",
        ),
        ("y[i] = i", "nothing says how far the index `i` goes | i | write its range: `for i in 0..n`"),
        ("x = ones(3)\ny[i] = x[i] for j in 0..3", "the statement has no index called `j` | j"),
        (
            "x = ones(3)\ny[i / 2] = x[i]",
            "several points of this statement write the same element of `y` | y | say how they combine: `+=`, `*=`, `min=`, `max=`, `and=` or `or=`",
        ),
        (
            "x = ones(3)\ny[i % 2] = sum[k](x[i] * x[k])",
            "several points of this statement write the same element of `y` | y | say how they combine: `+=`, `*=`, `min=`, `max=`, `and=` or `or=`",
        ),
        (
            "x = ones(3)\ny[i] = x[0:2]",
            "slices do not mix with index notation | 0:2 | use an index with a range: `for i in 0..n`",
        ),
        ("x = ones(3)\nx[i:2] = 3", "no value is called `i` | i"),
        (
            "x = ones(3)\ni = 4\ny = sum[i](x[i])",
            "`i` is a value already and cannot be an index | i | choose another name for the index",
        ),
        ("x = ones(3)\ny[i] = sum[i](x[i])", "the index `i` is bound already | i"),
        ("x = ones(3)\ny[i] = x[i / 0]", "an index divided by 0 | 0 | indices are divided by positive numbers"),
        ("x = ones(3)\ny[i] = x[i * 0.5]", "an index must be a whole number, not 0.5 | 0.5"),
        (
            "x = ones(3)\ny[i] /= x[i]",
            "`/=` does not combine several contributions | y[i] /= x[i] | use +=, -=, *=, min=, max=, and= or or=",
        ),
        ("x = ones(3)\ny[i] = (x @ x)[i]", "this has rank 0, but 1 index is given | (x @ x)[i]"),
        (
            "x = ones(3)\ny[i] = x @ x",
            "`x` is f64[3], where one element is expected | x | give it indices, for example `[i]`",
        ),
        ("x = ones(3)\ny[i] = x[clamp(i-1)] + x[bend(i)]", "no function is called `bend` | bend"),
        (
            "x = clamp(3)",
            "`clamp` is an edge rule, for use in index notation | clamp | for example `y[i] = x[clamp(i-1)]`",
        ),
        ("x = ones(3)\nx[5] = 1", "the index on the left runs from 5 to 5, but axis 0 of `x` has 3 elements | x"),
        (
            "x = arange(3)\nx[i] = 0.5 for i in 0..2",
            "f64 does not fit into i64 | x[i] = 0.5 for i in 0..2 | convert it: `i64(..)`",
        ),
        (
            "A = ones(3, 3)\ny[i,j] = A[clamp(i-1), fill(j+1)]",
            "this access mixes edge rules in a way that is not supported | A[clamp(i-1), fill(j+1)] | use one of fill and clamp for all axes that need a rule",
        ),
        (
            "x = ones(3)\nat = arange(3)\ny[at[i]] = x[i]",
            "an assignment to computed positions | y | several points may meet there; say how they combine, for example with `+=` or `max=`",
        ),
        (
            "A = ones(3, 4)\nt = 0\nwhile t < 3 { A[t,j] = 2*j; t += 1 }",
            "an assignment to a position that only the run knows | A | compare an index with it: `A[i,j] = .. where i == ..`",
        ),
        (
            "A = ones(3, 4)\nt = 0\nwhile t < 3 { A[j,t+1] = 2*j; t += 1 }",
            "an assignment to a position that only the run knows | A | compare an index with it: `A[i,j] = .. where j == ..`",
        ),
        (
            "A = ones(3, 4)\nt = 0\nwhile t < 3 { A[t,:] = 2; t += 1 }",
            "a position that only the run knows beside slices on the left | t | compare an index with it: `A[i,j] = .. where i == ..`",
        ),
        (
            "A = ones(3, 4)\nt = 0\nwhile t < 3 { A[..., t] = 2; t += 1 }",
            "a position that only the run knows beside slices on the left | t | write an index for every axis, and compare it after `where`",
        ),
        (
            "A = ones(3, 4)\nat = arange(3)\nA[at,:] = 2",
            "an index tensor beside slices on the left | at | several of its elements may be equal; say how they combine: `y[at[i], j] += x[i, j]`",
        ),
        (
            "A = ones(3, 4)\nA[ones(3) > 0,:] = 2",
            "a mask beside slices on the left | ones(3) > 0 | write an index for every axis, and the condition after `where`",
        ),
        (
            "s = i*i for i in 0..3",
            "the index `i` is not bound | i | put it on the left, or say how its values combine: `sum[i](..)`, or `+=` for the whole statement",
        ),
        (
            "s += sum(ones(i)) for i in 0..3",
            "this works on whole tensors, but uses the index `i` | sum(ones(i)) | name the indices that are reduced: `sum[k](..)`",
        ),
        (
            "x = random.uniform((256,256),(4,4))",
            "`random.uniform` takes one shape | (256,256),(4,4) | choose blocks afterwards: `retile(x, tile(64, 64))`",
        ),
        (
            "x = random((256,256),(4,4))",
            "`random` is a family of functions: uniform, normal, integers | random | call one of them: `random.uniform(..)`",
        ),
        (
            "x = ones(3)\nat = arange(3)\ny[at[i]] += x[i]",
            "the shape of `y` is not clear | y | declare it first: `y: f64[n]`",
        ),
        (
            "x = ones(3)\ny = x where x > 0",
            "`x` is f64[3], where one element is expected | x | give it indices, for example `[i]`",
        ),
    ]);
}

#[test]
fn loops_and_branches() {
    check(&[
        (
            "x = 1\nwhile x > 0 { y = 2 }",
            "this condition never changes, so the loop never ends | x > 0 | the body must assign something the condition reads, and it must have a value before",
        ),
        (
            "x = 1\nwhile x < 5 { x = ones(3) }",
            "`x` is i64[] before the loop, but f64[3] after its body | while x < 5 { x = ones(3) } | what a loop carries keeps its shape",
        ),
        (
            "x = 1\nwhile x < 5 { x = x * 1.5 }",
            "`x` is i64[] before the loop, but f64[] after its body | while x < 5 { x = x * 1.5 } | start with the type it ends with, for example `x = f64(..)`",
        ),
        (
            "x = ones(3)\nwhile x < 5 { x = x * 2 }",
            "a condition must be one value, not bool[3] | x < 5 | reduce it with `any` or `all`",
        ),
        (
            "x = ones(3)\nif sum(x) > 1 { z = 2 }\ny = z",
            "`z` has no value if the branch that assigns it is not taken | z | assign it before the `if`, or in both branches",
        ),
        (
            "x = ones(3)\nif sum(x) > 1 { z = 2 } else { z = x }",
            "`z` is f64[] after one branch and f64[3] after the other | if sum(x) > 1 { z = 2 } else { z = x } | both branches must give it one type",
        ),
        ("if true { output x }", "no value is called `x` | x"),
        (
            "x = 1\nwhile x < 5 { output x; x += 1 }",
            "an output inside a block | output x | outputs are made once: put it after the loop or branch",
        ),
    ]);
}

#[test]
fn names_that_come_later() {
    check(&[("y = x + 1\nx = 2\noutput y", "`x` is read before it is assigned | x")]);
}

#[test]
fn errors_are_collected_but_not_repeated() {
    let text = "y = undefined1 + 1\nz = undefined2 + y\nw = z * 2\nwhile w > 0 { w = undefined3 }\noutput w";
    let expected = ["undefined1", "undefined2"].map(|name| format!("no value is called `{name}` | {name}"));
    assert_eq!(complaint(text), expected.join("\n"));
}

#[test]
fn values_from_outside_must_fit() {
    let check = |name: &str, value: ParamValue| {
        let errors = parse_with("param size = 4\nx = ones(size)\noutput x", &[(name, value)]).unwrap_err();
        errors[0].to_string()
    };
    assert!(
        check("size", ParamValue::Float(2.5)).starts_with("parameter `size` is a whole number, but was set to 2.5")
    );
    assert!(check("sise", ParamValue::Int(2)).ends_with("no parameter called `sise`; did you mean `size`?"));
    assert!(check("size", ParamValue::Int(-2)).contains("an extent of -2"));
}
