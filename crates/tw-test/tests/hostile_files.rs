//! Hostile files: truncated, lying, changing under the reader, and outputs that cannot be written. Sources that fail.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::sync::{Arc, Mutex};

use tilewright::{Array, Inputs, Session, in_memory};
use tw_block::{Block, Meter, Source, SourceAccess};
use tw_ir::program::FunctionTable;
use tw_ir::schedule::Digest;
use tw_ir::{Blame, BoxRegion, Error, Op, Span, TensorType};
use tw_lang::{ProgramUnit, parse_program};
use tw_test::scratch::Scratch;

fn scratch() -> Scratch {
    Scratch::new().expect("a scratch directory")
}

/// The bytes of a file with this header text and so many bytes of data.
fn file_bytes(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + data, 7);
    bytes
}

/// Reads a file in every way there is. All ways must agree on whether it can be read.
fn read(path: &Path) -> Result<Array, Error> {
    let (opened, read) = (tw_files::open(path), tw_files::read_array(path));
    assert_eq!(read.is_ok(), opened.is_ok());
    read
}

fn refused(path: &Path, bytes: &[u8]) -> Error {
    fs::write(path, bytes).expect("the file can be written");
    let error = read(path).expect_err("the file should be refused");
    assert_eq!(error.blame(), Blame::Io, "{error:?}");
    assert!(error.message().contains("a.npy"), "the file is not named: {error:?}");
    error
}

#[test]
fn headers_that_lie_are_refused() {
    let directory = scratch();
    let path = directory.path("a.npy");
    let header = |shape: &str| format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
    fs::write(&path, file_bytes(&header("(2, 3)"), 48)).unwrap();
    assert_eq!(read(&path).expect("this one is right").shape(), [2, 3]);
    for (shape, data) in [
        ("(2, 3)", 47),
        ("(2, 3)", 49),
        ("(2, 3)", 0),
        ("(1000000000000,)", 8),
        ("(4294967296, 4294967296)", 0),
        ("(18446744073709551615,)", 8),
        ("(18446744073709551616,)", 8),
        ("(9999999999999999999999999999,)", 8),
        ("(-1,)", 8),
        ("(2.5,)", 8),
        ("(,)", 8),
        ("(1", 8),
        ("1", 8),
        ("[1]", 8),
        ("(0x1,)", 8),
        ("(True,)", 8),
    ] {
        refused(&path, &file_bytes(&header(shape), data));
    }
    let deep = format!("({})", "1, ".repeat(5_000));
    refused(&path, &file_bytes(&header(&deep), 8));
}

#[test]
fn headers_that_are_not_headers_are_refused() {
    let directory = scratch();
    let path = directory.path("a.npy");
    for header in [
        "",
        "{",
        "{}",
        "{'descr': '<f8'}",
        "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)} and more",
        "{'descr': '<f8', 'fortran_order': Maybe, 'shape': (1,)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '>f16', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<V8', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '\u{202e}8f<', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f8, 'fortran_order': False, 'shape': (1,)}",
        "\0\0\0\0\0\0\0\0",
    ] {
        refused(&path, &file_bytes(header, 8));
    }
    for bytes in [
        &b""[..],
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00\xff\xff",
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
        b"PK\x03\x04 not numpy",
    ] {
        refused(&path, bytes);
    }
    let mut future = file_bytes("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", 8);
    future[6] = 9;
    assert!(refused(&path, &future).message().contains("version 9"));
    let mut not_text = file_bytes("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", 8);
    not_text[15] = 0xff;
    refused(&path, &not_text);
}

#[test]
fn every_damaged_byte_is_read_or_refused() {
    let directory = scratch();
    let path = directory.path("a.npy");
    tw_files::write_array(&path, &Array::from_i64(&[1, 2, 3])).unwrap();
    let bytes = fs::read(&path).unwrap();
    for length in 0..bytes.len() {
        refused(&path, &bytes[..length]);
    }
    let header = bytes.len() - 24;
    for at in 0..header {
        for flip in [0x01, 0x20, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            fs::write(&path, &damaged).unwrap();
            // A damaged blank may be harmless; everything else must be found.
            if let Err(error) = read(&path) {
                assert_eq!(error.blame(), Blame::Io, "byte {at}: {error:?}");
            }
        }
    }
}

#[test]
fn what_is_not_a_file_is_refused() {
    let directory = scratch();
    for name in ["missing.npy", "", "missing/a.npy", "a\0.npy"] {
        let error = read(&directory.path(name)).expect_err("there is no such file");
        assert_eq!(error.blame(), Blame::Io, "{error:?}");
    }
}

/// Reads a program whose files lie in the directory.
fn unit(text: &str, directory: &Scratch) -> ProgramUnit {
    let unit = parse_program(text, &BTreeMap::new(), directory, &FunctionTable::default());
    unit.unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Puts the files a program writes into the directory.
fn redirect(unit: &mut ProgramUnit, directory: &Scratch) {
    for node in &mut unit.program.body.nodes {
        if let Op::Store { path } = &mut node.op {
            *path = directory.path(path).to_string_lossy().into_owned();
        }
    }
}

fn bind(unit: &ProgramUnit, directory: &Scratch) -> Inputs {
    let open = |path: &String| tw_files::open(directory.path(path)).expect("the file can be opened");
    let files = unit.inputs.iter().filter_map(|input| Some((input.name.clone(), open(input.path.as_ref()?))));
    files.collect()
}

fn place<'t>(error: &Error, text: &'t str) -> &'t str {
    match error.span() {
        Span::Text { start, end, .. } => &text[*start as usize..*end as usize],
        other => panic!("{error:?} is at {other:?}"),
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_open_is_an_error_of_the_file() {
    let directory = scratch();
    let values: Vec<f64> = (0..1000).map(f64::from).collect();
    for (length, threads) in [(200, 1), (0, 1), (4000, 2), (8000, 4)] {
        tw_files::write_array(directory.path("x.npy"), &Array::from_f64(&values)).unwrap();
        let text = "input x = \"x.npy\" tile(100)\ny = x * 2\ntotal = sum(y)\noutput total";
        let unit = unit(text, &directory);
        let inputs = bind(&unit, &directory);
        File::options().write(true).open(directory.path("x.npy")).unwrap().set_len(length).unwrap();
        let session = Session::builder().threads(threads).build();
        let error = session.run(&unit.program, &inputs).expect_err("the data is gone");
        assert_eq!(error.blame(), Blame::Io, "{error:?}");
        assert!(error.message().contains("x.npy") && error.message().contains("byte"), "{error:?}");
        assert_eq!(place(&error, text), "input x = \"x.npy\" tile(100)");
        // The session is none the worse.
        drop(inputs);
        tw_files::write_array(directory.path("x.npy"), &Array::from_f64(&values)).unwrap();
        let results = session.run(&unit.program, &bind(&unit, &directory)).expect("the file is whole again");
        assert_eq!(results["total"].item().unwrap().as_f64(), 999_000.0);
    }
}

#[test]
fn a_file_that_is_replaced_after_reading_the_program_is_checked_again() {
    let directory = scratch();
    tw_files::write_array(directory.path("x.npy"), &Array::from_f64(&[1.0, 2.0, 3.0])).unwrap();
    let unit = unit("input x = \"x.npy\"\ny = x + 1\noutput y", &directory);
    for replacement in [Array::from_f64(&[1.0]), Array::from_i64(&[1, 2, 3])] {
        tw_files::write_array(directory.path("x.npy"), &replacement).unwrap();
        let error = Session::new().run(&unit.program, &bind(&unit, &directory)).expect_err("another type");
        assert_eq!(error.blame(), Blame::Source, "{error:?}");
        assert!(error.message().contains('x'), "{error:?}");
    }
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let directory = scratch();
    let text = "input x: f64[3]\ny = x + 1\noutput y";
    let unit = unit(text, &directory);
    let bound = |array: Array| BTreeMap::from([("x".to_string(), in_memory(array))]);
    let missing = Session::new().run(&unit.program, &BTreeMap::new()).expect_err("nothing is bound");
    assert_eq!((missing.blame(), place(&missing, text)), (Blame::Source, "input x: f64[3]"));
    for array in [Array::from_f64(&[1.0]), Array::from_i64(&[1, 2, 3]), Array::scalar(1.0.into())] {
        let error = Session::new().run(&unit.program, &bound(array)).expect_err("another type");
        assert_eq!((error.blame(), place(&error, text)), (Blame::Source, "input x: f64[3]"), "{error:?}");
    }
}

#[test]
fn outputs_that_cannot_be_written_leave_nothing_behind() {
    let directory = scratch();
    fs::create_dir(directory.path("taken.npy")).unwrap();
    for target in ["missing/y.npy", "taken.npy", ""] {
        let text = format!("x = ones(5)\noutput x -> \"x.npy\"\ny = x * 2\noutput y -> \"{target}\"");
        let mut unit = unit(&text, &directory);
        redirect(&mut unit, &directory);
        let error = Session::new().run(&unit.program, &BTreeMap::new()).expect_err("it cannot be written");
        assert_eq!(error.blame(), Blame::Io, "{error:?}");
        let left: Vec<String> = fs::read_dir(directory.directory())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name != "taken.npy" && name != "x.npy")
            .collect();
        assert!(left.is_empty(), "{target}: left behind: {left:?}");
    }
}

#[test]
fn a_failing_program_leaves_no_files() {
    let directory = scratch();
    let text = "x = arange(5)\noutput x -> \"x.npy\"\ny = x[x + 3]\noutput y -> \"y.npy\"";
    let mut unit = unit(text, &directory);
    redirect(&mut unit, &directory);
    let error = Session::new().run(&unit.program, &BTreeMap::new()).expect_err("an index is outside");
    assert_eq!((error.blame(), place(&error, text)), (Blame::Data, "x[x + 3]"));
    assert_eq!(fs::read_dir(directory.directory()).unwrap().count(), 0, "files of a program that failed");
}

#[test]
fn regions_outside_a_file_are_refused() {
    let directory = scratch();
    tw_files::write_array(directory.path("x.npy"), &Array::from_f64(&[1.0, 2.0])).unwrap();
    let source = tw_files::open(directory.path("x.npy")).unwrap();
    assert!(source.read(&BoxRegion { lo: vec![1], hi: vec![3] }, &Meter::new()).is_err());
    assert!(source.read(&BoxRegion { lo: vec![], hi: vec![] }, &Meter::new()).is_err());
}

/// A source that does something before every read.
struct Watched<F> {
    usual: Arc<dyn Source>,
    before: F,
}

impl<F> std::fmt::Debug for Watched<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Watched({:?})", self.usual)
    }
}

impl<F: Fn(&BoxRegion) -> Result<(), Error> + Send + Sync> Source for Watched<F> {
    fn ty(&self) -> TensorType {
        self.usual.ty()
    }
    fn fingerprint(&self) -> Option<Digest> {
        self.usual.fingerprint()
    }
    fn access(&self) -> SourceAccess {
        SourceAccess::Foreign
    }
    fn layout(&self) -> String {
        self.usual.layout()
    }
    fn scratch(&self, region: &BoxRegion) -> u64 {
        self.usual.scratch(region)
    }
    fn read(&self, region: &BoxRegion, meter: &Arc<Meter>) -> Result<Arc<Block>, Error> {
        (self.before)(region)?;
        self.usual.read(region, meter)
    }
}

fn watched(array: Array, before: impl Fn(&BoxRegion) -> Result<(), Error> + Send + Sync + 'static) -> Arc<dyn Source> {
    Arc::new(Watched { usual: in_memory(array), before })
}

fn names_in(directory: &Scratch) -> Vec<String> {
    let entries = fs::read_dir(directory.directory()).expect("the directory is there");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A program that writes `x * 2` to a file in its first segment; the second reads `late`.
fn two_segments(inputs: &str, file: &str, late: &str) -> String {
    format!(
        "{inputs}\ny = x * 2\noutput y -> \"{file}\"\nk = 0\nwhile k < 3 {{\n    k += 1\n}}\ntotal = sum({late}) + k\noutput total"
    )
}

/// The same with two inputs.
fn two_inputs() -> String {
    two_segments("input x: f64[1000] tile(100)\ninput late: f64[1000] tile(100)", "y.npy", "late")
}

fn thousand() -> Array {
    Array::from_f64(&(0..1000).map(f64::from).collect::<Vec<_>>())
}

#[test]
fn a_source_that_fails_is_named_and_leaves_nothing() {
    for (builder, broken) in [
        (Session::builder().serial(), "x"),
        (Session::builder().threads(1), "late"),
        (Session::builder().threads(4), "x"),
        (Session::builder().threads(4).chaos(3), "late"),
    ] {
        let directory = scratch();
        let mut unit = unit(&two_inputs(), &directory);
        redirect(&mut unit, &directory);
        let session = builder.build();
        let failing = watched(thousand(), |region| match region.lo[0] {
            700 => Err(Error::io("tape 9 is torn")),
            _ => Ok(()),
        });
        let whole = |name: &str| (name.to_string(), in_memory(thousand()));
        let mut inputs = Inputs::from([whole("x"), whole("late")]);
        inputs.insert(broken.to_string(), failing);
        let error = session.run(&unit.program, &inputs).expect_err("a source is broken");
        assert_eq!((error.blame(), error.message()), (Blame::Io, "tape 9 is torn"));
        assert_eq!(place(&error, &two_inputs()), format!("input {broken}: f64[1000] tile(100)"));
        assert_eq!(names_in(&directory), [""; 0], "files of a program that failed");
        assert_eq!(session.memory().0, 0, "blocks are left");
        // The session is none the worse.
        let results = session.run(&unit.program, &Inputs::from([whole("x"), whole("late")])).expect("it runs");
        assert_eq!(results["total"].item().unwrap().as_f64(), 499_503.0);
        assert_eq!(names_in(&directory), ["y.npy"]);
    }
}

#[test]
fn files_are_committed_after_the_whole_program() {
    let directory = scratch();
    let mut unit = unit(&two_inputs(), &directory);
    redirect(&mut unit, &directory);
    let path = directory.path("y.npy");
    tw_files::write_array(&path, &Array::from_f64(&[7.0])).unwrap();
    // When the second segment reads, all of the file is written, and nobody can see it.
    let seen = Arc::new(Mutex::new(Vec::new()));
    let look = {
        let (seen, path) = (seen.clone(), path.clone());
        move |_: &BoxRegion| {
            let others = fs::read_dir(path.parent().expect("a directory")).expect("it can be read").count() - 1;
            seen.lock().unwrap().push((tw_files::read_array(&path)?.shape().to_vec(), others));
            Ok(())
        }
    };
    let inputs =
        Inputs::from([("x".to_string(), in_memory(thousand())), ("late".to_string(), watched(thousand(), look))]);
    Session::builder().threads(2).build().run(&unit.program, &inputs).expect("it runs");
    assert_eq!(*seen.lock().unwrap(), vec![(vec![1], 1); 10], "the old file, and one under another name");
    assert_eq!(names_in(&directory), ["y.npy"]);
    assert_eq!(tw_files::read_array(&path).unwrap().get(&[999]).as_f64(), 1998.0);
}

#[test]
fn a_file_may_be_replaced_by_what_is_computed_from_it() {
    let text = two_segments("input x = \"x.npy\" tile(100)", "x.npy", "x");
    for threads in [1, 4] {
        let directory = scratch();
        let path = directory.path("x.npy");
        tw_files::write_array(&path, &thousand()).unwrap();
        let mut unit = unit(&text, &directory);
        redirect(&mut unit, &directory);
        let session = Session::builder().threads(threads).build();
        // What is open stays what it was, also for a second run.
        let inputs = bind(&unit, &directory);
        for _ in 0..2 {
            let results = session.run(&unit.program, &inputs).expect("it runs");
            assert_eq!(results["total"].item().unwrap().as_f64(), 499_503.0);
            assert_eq!(tw_files::read_array(&path).unwrap().get(&[999]).as_f64(), 1998.0);
        }
        let results = session.run(&unit.program, &bind(&unit, &directory)).expect("it runs");
        assert_eq!(results["total"].item().unwrap().as_f64(), 2.0 * 499_500.0 + 3.0);
        assert_eq!(names_in(&directory), ["x.npy"]);
    }
}

#[test]
fn fingerprints_tell_versions_apart() {
    let directory = scratch();
    let path = directory.path("x.npy");
    tw_files::write_array(&path, &Array::from_f64(&[1.0, 2.0])).unwrap();
    let before = tw_files::open(&path).unwrap();
    assert!(before.fingerprint().is_some());
    assert_eq!(before.fingerprint(), tw_files::open(&path).unwrap().fingerprint());
    tw_files::write_array(&path, &Array::from_f64(&[1.0, 3.0])).unwrap();
    assert_ne!(before.fingerprint(), tw_files::open(&path).unwrap().fingerprint());
    let of = |array: Array| in_memory(array).fingerprint();
    assert_eq!(of(Array::from_f64(&[1.0, 2.0])), of(Array::from_f64(&[1.0, 2.0])));
    assert_ne!(of(Array::from_f64(&[1.0, 2.0])), of(Array::from_f64(&[1.0, 3.0])));
    assert_ne!(of(Array::from_f64(&[0.0])), of(Array::from_i64(&[0])));
    assert_ne!(of(Array::from_f64(&[0.0])), of(Array::from_f64(&[0.0]).reshaped(&[1, 1]).unwrap()));
}
