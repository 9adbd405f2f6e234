//! Options that come later are refused in a sentence, never ignored.

use crate::tool::Dir;

#[test]
fn later_options_say_so() {
    let dir = Dir::with_program("y = ones(3)\noutput y -> \"y.npy\"\n");
    for options in [
        &["run", "p.tw", "--engine", "mpi"][..],
        &["run", "p.tw", "--spill", "d"],
        &["run", "p.tw", "--resume", "d"],
        &["run", "p.tw", "--schedule", "s"],
        &["run", "p.tw", "--scheduler", "lshs"],
        &["run", "p.tw", "--reproducible"],
        &["run", "p.tw", "--nodes", "4"],
    ] {
        let message = dir.refused(options);
        assert!(message.contains("is not there yet; it comes with"), "{options:?}: {message}");
    }
    dir.ok(&["run", "p.tw", "--scheduler", "auto", "-q"]);
}
