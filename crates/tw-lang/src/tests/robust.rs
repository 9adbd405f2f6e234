//! No text may panic, overflow the stack, or take more than linear time.

use std::fmt::Write;
use std::time::Instant;

use tw_ir::random::integer;

use super::{complaint, parse};

/// Pieces of programs, from which soup is made.
const PIECES: &[&str] = &[
    "param",
    "input",
    "output",
    "while",
    "if",
    "else",
    "then",
    "for",
    "in",
    "where",
    "and",
    "or",
    "not",
    "true",
    "block",
    "tile",
    "x",
    "y",
    "A",
    "n",
    "i",
    "j",
    "k",
    "sum",
    "max",
    "argmin",
    "mean",
    "random",
    "normal",
    "zeros",
    "arange",
    "exp",
    "reshape",
    "clamp",
    "wrap",
    "shape",
    "T",
    "seed",
    "axis",
    "f64",
    "i64",
    "bool",
    "0",
    "1",
    "2",
    "3",
    "0.5",
    "1e3",
    "\"m.npy\"",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "@",
    "**",
    "<",
    "==",
    "=",
    "+=",
    "->",
    ":",
    ",",
    ".",
    "..",
    "...",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\n",
    ";",
    "[i]",
    "[i,j]",
    "(x)",
    "= x",
    "\ny[i] =",
    "sum[k](",
    "A[i,k]",
    "x[k]",
    "\nx = arange(3)\n",
    "\nA = zeros(2, 3)\n",
    "for i in 0..2",
    "\noutput y",
    "x[i]",
    "\nparam n = 3\n",
];

fn soup(seed: u64, pieces: &[&str], n: i64) -> String {
    let mut text = String::from("x = arange(3)\nA = ones(2, 3)\nparam n = 4\n");
    for k in 0..n {
        text.push_str(pieces[integer(seed, k, 0, pieces.len() as i64) as usize]);
        text.push(' ');
    }
    text
}

#[test]
fn token_soup_does_not_panic() {
    for seed in 0..3000 {
        drop(parse(&soup(seed, PIECES, 5 + seed as i64 % 25)));
    }
}

/// Statements that are almost right, so that lowering and not only parsing is reached.
#[test]
fn statement_soup_does_not_panic() {
    let pieces = [
        "y[i] = x[i]",
        "y[i,j] = A[i,j]",
        "+ x[i]",
        "* A[i,k]",
        "- sum[k](A[i,k])",
        "y[i / 2] += x[i]",
        "for i in 0..2",
        "where i > 0",
        "\n",
        "\n",
        "\n",
        "y = x",
        "y = A @ x",
        "+ 1.5",
        "y[x[i]] += 1",
        "y: f64[3]",
        "y[i] = x[clamp(i-1)]",
        "* n",
        "if sum(x) > 1 { y = 2 }",
        "x = x[x > 1]",
        "x = sort(x)",
        "while n < 3 { x = x }",
        "k0 = 0\nwhile k0 < 3 { k0 += 1; x = x * 2 }",
        "x = concat(x, x)",
        "A = A.T",
        "y = A[0, ::-1]",
        "x[1:2] = 7",
        "x[x > 1] = 0",
        "y = max[k](x[k] * x[n-k])",
        "\ny = [1, 2]",
        "i = 2",
        "x = x.sum()",
        "[0]",
    ];
    for seed in 0..3000 {
        let text = soup(seed, &pieces, 3 + seed as i64 % 12);
        if let Ok(unit) = parse(&format!("{text}\noutput x")) {
            tw_ir::program::verify(&unit.program).unwrap();
            drop(tw_ir::oracle::evaluate_with_limit(&unit.program, &Default::default(), 200));
        }
    }
}

/// Numbers at the ends of their range, wherever a number may stand.
#[test]
fn extreme_numbers_do_not_overflow() {
    let numbers = [
        "9223372036854775807",
        "-9223372036854775807",
        "(-9223372036854775807 - 1)",
        "4611686018427387904",
        "0",
        "1",
        "-1",
        "3",
        "1e308",
    ];
    let texts = [
        "y[i] = x[@ * i + @] for i in @..@",
        "y[@ * i + @] = x[i]",
        "y[@ * i + @] += x[i] for i in @..@",
        "y[(@ * i + @) / @] += 1 for i in 0..3",
        "y: i64[3]\ny[fill(@ * i + @)] = x[i]",
        "y: i64[3]\ny[wrap(@ * i + @)] += x[i]",
        "y: i64[3]\ny[clamp(@ * i + @ * j + @)] max= x[i] for j in 0..@",
        "y = sum[k in @..@](k)",
        "y = argmax[k in @..@, l in 0..@](x[clamp(k * @)])",
        "y[i] = x[wrap(i * @ + @)]",
        "y[i] = x[fill(i * @ - @)]",
        "y[i] = x[clamp(i + @) ] * @",
        "y = x[@:@:@]",
        "x[@:@:@] = @",
        "y = x[@]",
        "x[@] = @",
        "y = zeros(@, @)",
        "y = arange(@, @, @)",
        "y = linspace(@, @, @)",
        "y = eye(@, @, k=@)",
        "y = roll(x, @)",
        "y = pad(x, (@, @))",
        "y = pad(x, @, edge=wrap)",
        "y = reshape(x, @, @)",
        "y = diagonal(ones(2, 3), offset=@)",
        "y = tril(ones(2, 2), k=@)",
        "y = random.integers(@, @, 2, seed=@)",
        "y = sum(x, axis=@)",
        "y = @ ** @ + @ * @ - @ // @ % @",
        "y = abs(@) + sqrt(@) + floor(@)",
        "input A: f64[@, @] tile(@, (@ @))",
        "y: f64[@]\ny[i] = i",
        "y = take(x, x + @)",
        "y = x * @ + @ // x - x % @",
        "y[x[i] + @] += 1",
        "y: i64[4]\ny[x[i] * @ + @] += 1",
        "y = broadcast_to(x, @, 3)",
        "y[i] = x[(i + @) % @ / @]",
    ];
    for (k, text) in texts.iter().enumerate() {
        for seed in 0..60 {
            let mut filled = String::from("x = arange(3)\n");
            for (place, part) in text.split('@').enumerate() {
                if place > 0 {
                    filled.push_str(numbers[integer(seed, (k * 100 + place) as i64, 0, numbers.len() as i64) as usize]);
                }
                filled.push_str(part);
            }
            drop(parse(&format!("{filled}\noutput x")));
        }
    }
}

#[test]
fn random_text_does_not_panic() {
    for seed in 0..3000 {
        let text: String = (0..40)
            .filter_map(|k| match integer(seed, k, 0, 4) {
                0 => char::from_u32(integer(seed, 1000 + k, 0, 0x11_0000) as u32),
                _ => char::from_u32(integer(seed, 1000 + k, 9, 127) as u32),
            })
            .collect();
        drop(parse(&text));
    }
}

#[test]
fn deep_nesting_is_an_error() {
    let n = 100_000;
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("-", ""),
        ("not ", ""),
        ("2 ** ", ""),
        ("exp(", ")"),
        ("1 + (", ")"),
        ("if 1 then 2 else ", ""),
    ] {
        let text = format!("x = {}1{}", open.repeat(n), close.repeat(n));
        assert!(complaint(&text).starts_with("this is nested more than"), "{open}");
    }
    for statement in ["if true { ", "while true { ", "if true { } else "] {
        assert!(complaint(&statement.repeat(n)).starts_with("this is nested more than"), "{statement}");
    }
    let text = format!("x = ones(2, 2){}", ".T".repeat(n));
    assert!(complaint(&text).starts_with("this is nested more than"));
    let text = format!("x = {}1{}", format!("ones(2){}+(", "[:]".repeat(100)).repeat(100), ")".repeat(100));
    assert!(complaint(&text).starts_with("this is nested more than"));
}

/// What is allowed must also fit into a small stack: callers may run on threads of their own.
#[test]
fn allowed_nesting_fits_a_small_stack() {
    let text = |n: usize| {
        let nested = format!("{}x[i]{}", "exp(x[i] + (".repeat(n), "))".repeat(n));
        format!("x = ones(3)\ny[i] = {nested}\nz = {}x{}\noutput y\noutput z", "exp(x * (".repeat(n), "))".repeat(n))
    };
    let deepest = (1..64).take_while(|&n| parse(&text(n)).is_ok()).last().unwrap();
    assert!(deepest >= 20, "{deepest}");
    let run = move || parse(&text(deepest)).is_ok();
    let small = std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap();
    assert!(small.join().unwrap());
}

/// Seconds to read a program.
fn seconds(text: &str) -> f64 {
    let start = Instant::now();
    parse(text).unwrap_or_else(|errors| panic!("{:?}", errors[0]));
    start.elapsed().as_secs_f64()
}

#[test]
fn long_programs_take_linear_time() {
    let chain = |n: usize| format!("a = ones(3)\ny = a{}\noutput y", " + a".repeat(n));
    let indexed = |n: usize| format!("a = ones(3)\ny[i] = a[i]{}\noutput y", " + a[i]".repeat(n));
    let statements = |n: usize| {
        let mut text = "x = ones(3)\n".to_string();
        (0..n).for_each(|k| writeln!(text, "x = x + {k}").unwrap());
        text + "output x"
    };
    let names = |n: usize| {
        let mut text = String::new();
        (0..n).for_each(|k| writeln!(text, "x{k} = {k}").unwrap());
        text + "output x0"
    };
    for (what, program) in [
        ("chain", &chain as &dyn Fn(usize) -> String),
        ("indexed", &indexed),
        ("statements", &statements),
        ("names", &names),
    ] {
        // The best of several, of programs that need little memory: fresh pages may cost any time.
        let best = |n: usize| (0..3).map(|_| seconds(&program(n))).fold(f64::INFINITY, f64::min);
        let (short, long) = (best(2_000), best(20_000));
        assert!(long < 40.0 * short.max(0.01), "{what}: {short} s for two thousand, {long} s for ten times as many");
    }
}

#[test]
fn many_errors_stop_early() {
    let mut text = String::new();
    (0..50_000).for_each(|k| writeln!(text, "x{k} = unknown{k}").unwrap());
    assert_eq!(parse(&text).unwrap_err().len(), super::super::diagnose::MAX_ERRORS);
}
