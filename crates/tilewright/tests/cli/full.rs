//! Disks that are full or read-only. A limit on the size of files stands for a full disk: writing beyond it fails in the same places.

use std::process::{Command, Stdio};

use crate::tool::{Dir, Ran};

/// Runs `tw` where files may have so many KiB.
fn limited(dir: &Dir, kib: u64, args: &[&str]) -> Ran {
    // The signal that comes with the limit is ignored, so that writing fails with an error, as it does on a full disk.
    let script = format!("trap '' XFSZ; ulimit -f {}; exec \"$0\" \"$@\"", kib * 2);
    let output = Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_tw")])
        .args(args)
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The error of a run that has to fail there, and to leave no file behind.
fn refused(dir: &Dir, kib: u64, args: &[&str]) -> String {
    let before = dir.files();
    let ran = limited(dir, kib, args);
    assert_eq!(ran.code, 2, "{args:?}\n{}\n{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.starts_with("error: ") && !ran.stderr.contains("panicked"), "{}", ran.stderr);
    assert_eq!(dir.files(), before, "files are left:\n{}", ran.stderr);
    ran.stderr
}

/// Sorting needs all of its operand, 480 KB, so that a budget of 200 KiB makes it spill.
const SPILLING: &str = "x = random.uniform(300, 200, seed=7)\ny = sort(x, axis=0)\nz = y.T @ y\ns = sum(z)\noutput s\n";

const OPTIONS: [&str; 6] = ["run", "p.tw", "--tile", "20", "--memory", "200KiB"];

#[test]
fn a_disk_that_gets_full_while_blocks_are_spilled_is_an_error_and_nothing_is_left() {
    let dir = Dir::with_program(SPILLING);
    std::fs::create_dir(dir.path().join("spill")).unwrap();
    let options = [&OPTIONS[..], &["--spill", "spill"]].concat();
    let error = refused(&dir, 64, &options);
    assert!(error.contains("writing the spill file in spill failed"), "{error}");
    assert!(error.contains("choose another spill directory"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path().join("spill")).unwrap().count(), 0);
    // With room for what is spilled the same run succeeds.
    let ran = limited(&dir, 2000, &options);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
}

#[test]
fn a_disk_that_gets_full_while_results_are_stored_leaves_the_old_file() {
    for (name, program) in [
        ("z.npy", "z = random.uniform(300, 200, seed=7) + 1\noutput z -> \"z.npy\"\n"),
        ("z.zarr", "z = random.uniform(300, 200, seed=7) + 1\noutput z -> \"z.zarr\"\n"),
    ] {
        let dir = Dir::with_program("z = ones(3)\noutput z -> \"NAME\"\n".replace("NAME", name).as_str());
        dir.ok(&["run", "p.tw", "-q"]);
        let before = dir.ok(&["info", name]);
        dir.write("p.tw", program);
        let error = refused(&dir, 100, &["run", "p.tw", "--tile", "150"]);
        assert!(error.contains(name) && error.contains("cannot be written"), "{error}");
        assert_eq!(dir.ok(&["info", name]), before);
    }
}

#[test]
fn a_checkpoint_on_a_full_disk_is_an_error_and_the_run_goes_on_where_there_is_room() {
    let program = "x = random.uniform(300, 200, seed=7)\nk = 0\nwhile k < 5 {\n    x = x * 0.5 + sort(x, axis=0)\n    k = k + 1\n}\noutput x -> \"x.npy\"\n";
    let dir = Dir::with_program(program);
    dir.ok(&["run", "p.tw", "--tile", "50", "-q"]);
    let expected = std::fs::read(dir.path().join("x.npy")).unwrap();
    std::fs::remove_file(dir.path().join("x.npy")).unwrap();
    std::fs::create_dir(dir.path().join("kept")).unwrap();
    let options = ["run", "p.tw", "--tile", "50", "--resume", "kept", "-q"];
    let error = refused(&dir, 600, &options);
    assert!(error.contains("spill file in kept") || error.contains("checkpoint"), "{error}");
    dir.ok(&options);
    assert_eq!(std::fs::read(dir.path().join("x.npy")).unwrap(), expected);
    assert_eq!(std::fs::read_dir(dir.path().join("kept")).unwrap().count(), 0);
}

#[test]
fn a_spill_directory_that_cannot_be_written_is_named() {
    let dir = Dir::with_program(SPILLING);
    dir.write("file", "");
    let mut places = vec!["file/below", "/proc/self"];
    let read_only = dir.path().join("read-only");
    std::fs::create_dir(&read_only).unwrap();
    let mut permissions = std::fs::metadata(&read_only).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&read_only, permissions).unwrap();
    // The superuser may write everywhere.
    if std::fs::write(read_only.join("probe"), "").is_err() {
        places.push("read-only");
    } else {
        std::fs::remove_file(read_only.join("probe")).unwrap();
    }
    for place in places {
        let error = dir.refused_while_running(&[&OPTIONS[..], &["--spill", place]].concat());
        assert!(error.contains("the spill file in") || error.contains("would be spilled to"), "{error}");
        assert!(error.contains(place), "{error}");
        assert!(error.contains("choose another spill directory"), "{error}");
    }
}
