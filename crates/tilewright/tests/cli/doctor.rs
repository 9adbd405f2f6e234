//! `tw doctor`.

use crate::tool::Dir;

#[test]
fn the_machine_is_described() {
    let dir = Dir::new();
    let text = dir.ok(&["doctor", "--spill", ".", "--disk-sample", "1MiB"]);
    for part in [
        "cores ",
        "vectors ",
        "matrix products ",
        "memory ",
        "memory budget ",
        "spill directory ",
        "disk ",
        "per second",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(dir.files(), [""; 0]);
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let dir = Dir::new();
    let ran = dir.tw(&["doctor", "--spill", "nowhere/at/all", "--disk-sample", "1MiB"]);
    assert_ne!(ran.code, 0);
    assert!(ran.stderr.contains("nowhere/at/all") && ran.stderr.contains("TILEWRIGHT_SPILL"), "{}", ran.stderr);
}
