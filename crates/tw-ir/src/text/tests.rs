//! Samples of every operator and kernel, read and written back, and what must be refused.

use std::sync::Arc;

use super::*;
use crate::array::{Array, ArrayView, Buffer};
use crate::dtype::{DType, Scalar};
use crate::error::{Blame, Result};
use crate::program::{
    BlockFunction, FunctionTable, Op, Program, Routine, RoutineLibrary, RoutineLibraryRef, SourceOp, TensorType,
    ValueId,
};
use crate::random;
use crate::span::{FileId, HostCall, Name, Span};

const PROGRAM: &str = include_str!("tests/program.txt");
const LOOPS: &str = include_str!("tests/loops.txt");
const PLAN: &str = include_str!("tests/plan.txt");
const WORKFLOW: &str = include_str!("tests/workflow.txt");
const SCHEDULE: &str = include_str!("tests/schedule.txt");

struct Halve;

impl BlockFunction for Halve {
    fn name(&self) -> &str {
        "halve \"it\""
    }
    fn apply(&self, _operands: &[ArrayView<'_>], _results: &mut [Array]) -> Result<()> {
        Ok(())
    }
}

/// Every routine gives its first operand back.
struct Copies;

impl RoutineLibrary for Copies {
    fn append(&self, _routine: Routine, program: &mut Program, operands: &[ValueId]) -> Result<()> {
        program.output("0", operands[0]);
        Ok(())
    }
}

fn functions() -> FunctionTable {
    let mut functions = FunctionTable::default();
    functions.register(Halve);
    functions.set_routines(RoutineLibraryRef(Arc::new(Copies)));
    functions
}

/// Reads and writes a sample at the level its first word names.
fn round_trip(sample: &str) -> Result<String> {
    let functions = &functions();
    match sample.trim_start().split([' ', '{']).next() {
        Some("program") => parse_program(sample, functions).map(|level| print_program(&level)),
        Some("plan") => parse_plan(sample, functions).map(|level| print_plan(&level)),
        Some("workflow") => parse_workflow(sample, functions).map(|level| print_workflow(&level)),
        _ => parse_schedule(sample, functions).map(|level| {
            let printed = print_schedule(&level);
            // The first line is a comment with the hash, which differs between versions of Rust.
            printed.split_once('\n').map_or(String::new(), |(_, rest)| rest.to_string())
        }),
    }
}

#[test]
fn samples_come_back_unchanged() {
    for sample in [PROGRAM, LOOPS, PLAN, WORKFLOW, SCHEDULE] {
        let printed = round_trip(sample).unwrap();
        assert_eq!(printed, sample, "printed:\n{printed}");
    }
}

#[test]
fn samples_have_every_operator_and_kernel() {
    let ops = "source index scan gather scatter compact expand sort reshape retile concat block_fn routine resolve while if store";
    for op in ops.split(' ') {
        let used =
            [PROGRAM, LOOPS].iter().any(|text| text.contains(&format!("{op}(")) || text.contains(&format!("= {op} ")));
        assert!(used, "no sample has {op}");
    }
    let kernels = "load statement fill combine finish place scan_total scan_carry scan_block gather scatter compact expand sort_run \
                   sort_merge call store";
    for kernel in kernels.split_whitespace() {
        assert!(WORKFLOW.contains(&format!(" = {kernel}")), "no sample has {kernel}");
    }
    let steps = "load join finish retile concat scan gather scatter compact expand sort block_fn store";
    for step in steps.split(' ') {
        assert!(PLAN.contains(&format!(" = {step}(")), "no sample has {step}");
    }
}

#[test]
fn spans_names_and_bits_survive() {
    let mut program = Program::new();
    let floats =
        vec![f64::NAN, f64::from_bits(0xfff0_0000_0000_0001), -0.0, f64::MIN_POSITIVE / 3.0, 0.1, f64::INFINITY];
    let singles = vec![f32::NAN, f32::from_bits(0xffc0_0001), -0.0, 1.0e-45, 0.1, f32::NEG_INFINITY];
    let arrays = [
        Array::new(vec![2, 3], Buffer::F64(floats)).unwrap(),
        Array::new(vec![6], Buffer::F32(singles)).unwrap(),
        Array::new(vec![2], Buffer::Bool(vec![true, false])).unwrap(),
        Array::from_i64(&[i64::MIN, i64::MAX]),
        Array::zeros(&[3, 0, 2], DType::F64).unwrap(),
        Array::from_f64(&(0..100).map(|k| k as f64 / 7.0).collect::<Vec<_>>()),
    ];
    for array in arrays {
        let call = HostCall { position: 3, operation: Name::new("mean \"of\" it") };
        let span = Span::Host { file: FileId::named("a \"b\"\n.py"), line: 7, call: Some(call) };
        let value = program.push1(Op::Source(SourceOp::Constant(Arc::new(array))), &[], &span).unwrap();
        program.name(value, "an \\ odd\tname \u{1}");
        program.output("out\r", value);
    }
    let file = FileId::named("a \"b\".tw").span(3, 9);
    program.push1(Op::Source(SourceOp::Constant(Arc::new(Array::from_i64(&[1])))), &[], &file).unwrap();
    let unmade =
        program.new_value(TensorType::known(DType::F32, &[2]).with_fill(Scalar::F32(f32::from_bits(0x7f80_0001))));
    program.name(unmade, "");
    let text = print_program(&program);
    let back = parse_program(&text, &FunctionTable::default()).unwrap();
    assert_eq!(back, program);
    assert!(back.body.nodes.iter().zip(&program.body.nodes).all(|(a, b)| a.span == b.span));
    assert!(back.values.iter().zip(program.values.values()).all(|((_, a), b)| a.name == b.name));
    assert_eq!(print_program(&back), text);
}

#[test]
fn schedules_keep_their_hash() {
    let functions = functions();
    let schedule = parse_schedule(SCHEDULE, &functions).unwrap();
    let workflow = parse_workflow(&print_workflow(schedule.workflow()), &functions).unwrap();
    assert_eq!(&workflow, schedule.workflow());
    let again = parse_schedule(&print_schedule(&schedule), &functions).unwrap();
    assert_eq!((again.hash(), again.peak_bytes()), (schedule.hash(), schedule.peak_bytes()));
}

#[test]
fn refusals_name_the_place() {
    let refusals = [
        ("program {\n    extent #1 = %0\n}", "line 2, column 12", "#0 comes next"),
        ("program { extent #0 = %7 }", "", "%7 cannot tell the extent #0"),
        (
            "program { extent #0 = %0 extent #1 = %0 %0: i64[] = source input \"n\" }",
            "",
            "%0 cannot tell the extent #1",
        ),
        ("program { %0: f64[#0] = source input \"n\" }", "", "the extent #0 is not resolved"),
        (
            "program { extent #0 = %1 %0: f64[#0] = source input \"x\" %1: i64[] = source input \"n\" }",
            "",
            "#0 is not resolved",
        ),
        ("program {\n    %0: f65[3] = source input \"A\"\n}", "line 2, column 9", "`f65`"),
        ("program {\n    %0: f64[3] = source output \"A\"\n}", "line 2, column 25", "`input`"),
        ("program { %0: f64[1] = frobnicate(%0) }", "line 1, column 24", "`frobnicate`"),
        ("program { %0: f64[2] = source constant f64[2] { 1.0 } }", "column 40", "needs 2 elements"),
        ("program { %0: f64[2] = source constant f64[2] { 1.0 x } }", "column 53", "`x`"),
        ("program { %0: f64[2] = source input \"A }", "column 37", "does not end"),
        ("program { %0: f64[99999999999999999999] = source input \"A\" }", "column 19", "out of range"),
        ("program { %1: f64[] = source input \"A\" }", "line 1", "%0 is never declared"),
        ("workflow { blocks set0 s0 \"A\" f64[1] grid(1) from b0 }", "column 24", "no such statement"),
        (
            "workflow { statement s0 \"x\" blocks set0 s0 \"A\" f64[4000000000] grid(1) from b0 }",
            "column 36",
            "more blocks",
        ),
        ("plan { statement s1 \"x\" }", "column 18", "`s0`"),
        ("schedule \"gemm\" { workflow { } order (t0) } x", "column 45", "end of the text"),
    ];
    for (text, place, what) in refusals {
        let error = round_trip(text).unwrap_err();
        assert_eq!(error.blame(), Blame::Source, "{error:?}");
        assert!(error.message().contains(place) && error.message().contains(what), "{error:?}");
        assert!(matches!(error.span(), Span::Text { .. }), "{error:?}");
    }
}

#[test]
fn what_is_read_is_verified() {
    let refusals = [
        ("program { %0: f64[3] = sort(%0) axis 0 }", "read before"),
        ("program { %0: f64[3] = source input \"A\" as f64[4] }", "should be"),
        ("program { %0: f64[3] tile(2 of 4) = source input \"A\" }", "cover 4 elements"),
        ("program { output \"A\" = %7 }", "read before"),
        ("workflow { output \"A\" = set3 f64 }", "not there"),
        ("workflow { statement s0 \"x\" kernel k0 s0 = load 0 }", "not there"),
        ("plan { output \"A\" = r3 }", "never made"),
        ("schedule \"gemm\" { workflow { } order (t0) }", "does not exist"),
    ];
    for (text, what) in refusals {
        let error = round_trip(text).unwrap_err();
        assert_eq!(error.blame(), Blame::Source, "{error:?}");
        assert!(error.message().contains(what), "{error:?}");
    }
}

/// Damages a sample: bytes are dropped, doubled, swapped with others, or numbers are made extreme.
fn mutate(sample: &str, seed: u64) -> String {
    let draw = |k: i64, n: usize| random::integer(seed, k, 0, n.max(1) as i64) as usize;
    let mut text: Vec<char> = sample.chars().collect();
    for step in 0..1 + draw(0, 3) as i64 {
        let at = draw(10 * step + 1, text.len());
        let end = (at + draw(10 * step + 2, 8)).min(text.len());
        let other = draw(10 * step + 3, text.len());
        match draw(10 * step + 4, 6) {
            0 => drop(text.drain(at..end)),
            1 => {
                let part: Vec<char> = text[at..end].to_vec();
                text.splice(other..other, part);
            }
            2 => text.swap(at, other),
            3 => text.truncate(at),
            4 => drop(text.splice(at..at, "9223372036854775807".chars())),
            _ => {
                let replacements = ['0', '9', '-', '%', '(', '}', 's', ' ', '*', 'é'];
                text[at] = replacements[draw(10 * step + 5, replacements.len())];
            }
        }
        if text.is_empty() {
            break;
        }
    }
    text.into_iter().collect()
}

#[test]
fn damaged_text_never_panics() {
    for sample in [PROGRAM, LOOPS, PLAN, WORKFLOW, SCHEDULE] {
        let mut read = 0;
        for seed in 0..1500 {
            let text = mutate(sample, seed);
            if let Ok(printed) = round_trip(&text) {
                read += 1;
                assert_eq!(round_trip(&printed).unwrap(), printed, "from {text}");
            }
        }
        assert!(read < 1000, "mutations are too weak: {read} of 1500 were read");
    }
}

#[test]
fn nesting_is_limited() {
    let idx = format!("read %0[{}", "(".repeat(100_000));
    let text = format!("program {{ %0: f64[1] = source input \"A\" %1: f64[1] = index(%0) {{ for i: 1 {idx}");
    assert!(round_trip(&text).unwrap_err().message().contains("nested"));
    let text = format!("program {{ {}", "if { then () { ".repeat(100_000));
    assert!(round_trip(&text).unwrap_err().message().contains("nested"));
}
