//! Hostile program text: a clear error with the right blame and place, or a program, but never a panic, a hang or a full memory.

use std::collections::BTreeMap;

use tilewright::{Session, diagnose};
use tw_ir::program::FunctionTable;
use tw_ir::{Blame, Error, Span};
use tw_lang::{NoFiles, ProgramUnit, parse_program};
use tw_test::corpus;

fn read(text: &str) -> Result<ProgramUnit, Vec<Error>> {
    let read = parse_program(text, &BTreeMap::new(), &NoFiles, &FunctionTable::default());
    read.as_ref().err().into_iter().flatten().for_each(|error| check_place(error, text));
    read
}

/// A place must lie inside the text, on whole characters, and can be drawn.
fn check_place(error: &Error, text: &str) {
    if let Span::Text { start, end, .. } = error.span() {
        let slice = text.get(*start as usize..*end as usize);
        assert!(slice.is_some(), "{error:?} is outside the text or inside a character");
    }
    assert_ne!(error.blame(), Blame::Internal, "{error:?}");
    assert!(!diagnose::render(error, text, "hostile.tw").is_empty());
}

/// Reads a program that must be refused, and returns the first error with the text it points at.
fn refused(text: &str) -> (Error, String) {
    let error = match read(text) {
        Ok(_) => panic!("accepted: {}", text.chars().take(200).collect::<String>()),
        Err(errors) => errors.into_iter().next().expect("at least one error"),
    };
    let Span::Text { start, end, .. } = *error.span() else { panic!("{error:?} has no place") };
    let place = text[start as usize..end as usize].to_string();
    (error, place)
}

/// Runs a program that must be refused before it takes much memory.
fn too_large(text: &str) {
    let unit = read(text).unwrap_or_else(|errors| panic!("refused too early: {errors:?}"));
    let session = Session::builder().threads(2).memory(1 << 30).build();
    let error = session.run(&unit.program, &BTreeMap::new()).expect_err("the program should be refused");
    check_place(&error, text);
    assert!(matches!(error.blame(), Blame::Resource | Blame::Plan), "{error:?}");
    assert!(session.memory().1 < 1 << 30, "{} bytes were used before {error:?}", session.memory().1);
}

fn run(text: &str) -> BTreeMap<String, tilewright::Array> {
    let unit = read(text).unwrap_or_else(|errors| panic!("{errors:?}"));
    let session = Session::builder().threads(2).memory(1 << 30).build();
    let results = session.run(&unit.program, &BTreeMap::new()).expect("the program runs");
    results.into_iter().map(|(name, stored)| (name, stored.to_array().expect("a small result"))).collect()
}

#[test]
fn deep_nesting_is_refused_where_it_becomes_too_deep() {
    let n = 100_000;
    let repeated = |open: &str, middle: &str, close: &str| format!("{}{middle}{}", open.repeat(n), close.repeat(n));
    for text in [
        format!("x = {}\noutput x", repeated("(", "1", ")")),
        format!("x = {}\noutput x", repeated("(", "1", "")),
        format!("x = {}\noutput x", repeated("sqrt(", "1.0", ")")),
        format!("x = {}\noutput x", repeated("- ", "1", "")),
        format!("x = {}\noutput x", repeated("not ", "true", "")),
        format!("x = {}\noutput x", repeated("2 ** ", "1", "")),
        format!("x = {}\noutput x", repeated("if true then 1 else ", "2", "")),
        format!("x = zeros(3)\ny = x{}\noutput y", repeated("[", "0", "]")),
        format!("x = zeros(3)\ny = {}\noutput y", repeated("x[", "0", "]")),
        format!("x = zeros(3)\ny = {}\noutput y", repeated("sum[k](", "1", ")")),
        format!("x = 1\n{}\noutput x", repeated("while x < 5 {\n", "x = x + 1", "\n}")),
        format!("x = 1\n{}\noutput x", repeated("if x < 5 {\n", "x = x + 1", "\n}")),
        format!("x = 1\n{}\noutput x", repeated("if x < 5 { x = 2 } else ", "{ x = 3 }", "")),
        format!("x = zeros(3)\ny = x{}\noutput y", ".T".repeat(n)),
        format!("x = zeros(3)\ny = x{}\noutput y", "[:]".repeat(n)),
        format!("x = zeros(3)\ny = x{}\noutput y", ".abs()".repeat(n)),
        repeated("(", "", ""),
        repeated("[", "", ""),
        repeated("{", "", ""),
        repeated(")", "", ""),
    ] {
        let (error, _) = refused(&text);
        assert_eq!(error.blame(), Blame::Source);
    }
}

#[test]
fn long_flat_expressions_are_fine() {
    let n = 20_000;
    let text = format!("x = zeros(3)\ny = {}x\nz = {}0\noutput y\noutput z", "x + ".repeat(n), "1 + ".repeat(n));
    let unit = read(&text).expect("a chain is not deep");
    assert_eq!(unit.program.outputs, ["y", "z"]);
}

#[test]
fn a_million_statements_are_read() {
    let text = format!("x = 0\n{}output x", "x = x + 1\n".repeat(1_000_000));
    assert_eq!(run(&text)["x"].item(), Some(tilewright::Scalar::I64(1_000_000)));
    let errors = read(&"y = x\n".repeat(1_000_000)).expect_err("x has no value");
    assert!(errors.len() < 100, "{} errors help nobody", errors.len());
}

#[test]
fn thousands_of_operations_are_planned_and_run() {
    let text = format!("x = zeros(4)\n{}output x", "x = x * 0.5 + 1\n".repeat(2_000));
    assert_eq!(run(&text)["x"].to_f64_vec(), [2.0; 4]);
}

#[test]
fn odd_characters_are_named() {
    for (text, place) in [
        ("x = 1\0\noutput x", "\0"),
        ("x = 1 \u{202e}+ 2\noutput x", "\u{202e}"),
        ("x\u{2066} = 1\noutput x", "\u{2066}"),
        ("x = 1 \u{200b}\noutput x", "\u{200b}"),
        ("x = \u{feff}1\noutput x", "\u{feff}"),
        ("x = 1 € 2\noutput x", "€"),
        ("x = 'a'\noutput x", "'"),
        ("x = 1 & 2\noutput x", "&"),
    ] {
        let (error, found) = refused(text);
        assert_eq!((error.blame(), found.as_str()), (Blame::Source, place), "{error:?}");
        assert!(!error.message().contains(place) || !place.chars().any(|c| c.is_control()), "shown raw: {error:?}");
    }
}

#[test]
fn numbers_that_do_not_fit_are_named() {
    for (text, place) in [
        ("x = 1e400\noutput x", "1e400"),
        ("x = 99999999999999999999\noutput x", "99999999999999999999"),
        ("x = 9223372036854775807 + 1\noutput x", "9223372036854775807 + 1"),
        ("x = 10 ** 400\noutput x", "10 ** 400"),
        ("x = 1.5e308 * 10\noutput x", "1.5e308 * 10"),
        ("x = 0x10\noutput x", "0x10"),
        ("x = zeros(1.5)\noutput x", "1.5"),
        ("x = zeros(-3)\noutput x", "-3"),
        ("x = zeros(nan)\noutput x", "nan"),
        ("x = zeros(2 ** 62, 2 ** 62)\noutput x", "zeros(2 ** 62, 2 ** 62)"),
        ("x = zeros(2 ** 62) \noutput x", "zeros(2 ** 62)"),
        ("x = arange(0, 1, 0)\noutput x", "arange(0, 1, 0)"),
        ("x = arange(0, inf)\noutput x", "arange(0, inf)"),
        ("x = arange(-9e18, 9e18)\noutput x", "arange(-9e18, 9e18)"),
        ("x = eye(5000000000)\noutput x", "eye(5000000000)"),
        ("input x: f64[4] tile(0)\noutput x", "0"),
        (
            "input x: f64[4] tile((9223372036854775807 9223372036854775807))\noutput x",
            "tile((9223372036854775807 9223372036854775807))",
        ),
    ] {
        let (error, found) = refused(text);
        assert_eq!((error.blame(), found.as_str()), (Blame::Source, place), "{error:?}");
    }
}

#[test]
fn ranks_beyond_the_limit_are_refused() {
    let ones = vec!["1"; 65].join(", ");
    let indices: Vec<String> = (0..65).map(|k| format!("i{k}")).collect();
    let ranges: Vec<String> = indices.iter().map(|index| format!("{index} in 0..1")).collect();
    for text in [
        format!("input x: f64[{ones}]\noutput x"),
        format!("x = zeros({ones})\noutput x"),
        format!("x[{}] = 1 for {}\noutput x", indices.join(", "), ranges.join(", ")),
        format!("x = zeros(1)\ny = reshape(x, {ones})\noutput y"),
        format!("x = zeros(1)\ny = x[{}]\noutput y", vec!["newaxis"; 65].join(", ")),
    ] {
        let (error, _) = refused(&text);
        assert!(["rank", "indices"].iter().any(|word| error.message().contains(word)), "{error:?}");
    }
    // Many indices are no rank: a reduction may run over them.
    let text = format!("x = sum[{}](1)\noutput x", ranges.join(", "));
    if let Err(errors) = read(&text) {
        assert_eq!(errors[0].blame(), Blame::Source);
    }
}

#[test]
fn names_and_indices_that_make_no_sense_are_refused() {
    for (text, place) in [
        ("x = x + 1\noutput x", "x"),
        ("x[i] = x[i] + 1 for i in 0..3\noutput x", "x"),
        ("x += 1\noutput x", "x"),
        ("output x", "x"),
        ("x = zeros(3)\ny = sum[k, k](x[k])\noutput y", "k"),
        ("x = zeros(3, 4)\ny[i] = x[i, i]\noutput y", "i"),
        ("x = zeros(3)\ny = x[i]\noutput y", "i"),
        ("input x: f64[3]\ninput x: f64[3]\noutput x", "x"),
        ("x = zeros(3)\nx.y = 2\noutput x", "."),
        ("x = zeros(3) y = 2\noutput x", "y"),
        ("x = \"text\"\noutput x", "\"text\""),
        ("x = (1, 2)\noutput x", "(1, 2)"),
        ("x = zeros(3)\ny = x(2)\noutput y", "x"),
        ("output", ""),
        ("x = ", ""),
    ] {
        let (error, found) = refused(text);
        assert_eq!((error.blame(), found.trim()), (Blame::Source, place), "{text}: {error:?}");
    }
}

#[test]
fn texts_without_statements_are_refused_politely() {
    for text in ["", "\n\n", "# nothing", ";;;", "\r\n\t \r\n", "# no end of line\r"] {
        let (error, _) = refused(text);
        assert!(error.message().contains("no output"), "{error:?}");
    }
    assert_eq!(run("x = 1\r\ny = x +\r\n\t2\r\noutput y\r\n")["y"].item(), Some(tilewright::Scalar::I64(3)));
}

#[test]
fn zero_extents_run() {
    let results = run("x = zeros(0, 9223372036854775807)\ny = sum(x, axis=1)\nz = sum(x)\noutput y\noutput z");
    assert_eq!(results["y"].shape(), [0]);
    assert_eq!(results["z"].to_f64_vec(), [0.0]);
}

#[test]
fn what_cannot_fit_is_refused_before_it_is_tried() {
    for text in [
        "x = zeros(1000000000000)\noutput x",
        "x = random.normal(100000, 100000)\ny = x @ x\noutput y",
        "x = arange(100000000000)\ny = sort(x)\noutput y",
        "x = zeros(1000000000)\ny = x[newaxis, :] + x[:, newaxis]\noutput y",
        "x = cumsum(ones(1000000000000))\noutput x",
    ] {
        too_large(text);
    }
}

/// A small generator, so that a failing text can be made again from its number.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 += 1;
        (tw_ir::random::integer(0x7465_7874, self.0 as i64, 0, n.max(1) as i64)) as usize
    }
}

/// Damages a text: characters and lines vanish, repeat, move, or are replaced by something that means something.
fn damaged(text: &str, dice: &mut Dice) -> String {
    const PIECES: &[&str] = &[
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "..",
        ",",
        ":",
        "=",
        "+=",
        "**",
        "-",
        "sum[i](",
        " where ",
        " for ",
        "1e9",
        "0",
        "-1",
        "9223372036854775807",
        "nan",
        "\"",
        "\n",
        "input ",
        "while ",
        "if ",
        "tile(",
        "é",
        "\u{202e}",
        "\0",
        ".T",
        "shape",
        "clamp(",
        "i64(",
        "block ",
        "->",
        "_",
    ];
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..1 + dice.below(4) {
        let at = dice.below(characters.len());
        let length = dice.below(12).min(characters.len() - at);
        match dice.below(4) {
            0 => drop(characters.drain(at..at + length)),
            1 => {
                let copy: Vec<char> = characters[at..at + length].to_vec();
                let to = dice.below(characters.len());
                characters.splice(to..to, copy);
            }
            2 => characters.truncate(at),
            _ => drop(characters.splice(at..at, PIECES[dice.below(PIECES.len())].chars())),
        }
        if characters.is_empty() {
            break;
        }
    }
    characters.into_iter().collect()
}

#[test]
fn damaged_programs_are_read_or_refused() {
    let files = corpus::files().expect("the corpus can be read");
    let texts: Vec<String> = files.iter().map(|file| std::fs::read_to_string(file).expect("text")).collect();
    let rounds = if std::env::var_os("TW_FULL").is_some() { 1_000 } else { 40 };
    let mut dice = Dice(0);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..rounds {
        for text in &texts {
            match read(&damaged(text, &mut dice)) {
                Ok(_) => accepted += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(accepted > 0 && refused > 0, "{accepted} accepted, {refused} refused: the damage is not what it should be");
}
