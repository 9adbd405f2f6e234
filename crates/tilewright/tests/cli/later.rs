//! Options that come later are refused in a sentence, never ignored.

use crate::tool::Dir;

#[test]
fn later_options_say_so() {
    let dir = Dir::with_program("y = ones(3)\noutput y -> \"y.npy\"\n");
    let message = dir.refused(&["run", "p.tw", "--reproducible"]);
    assert!(message.contains("is not there yet; it comes with"), "{message}");
    dir.ok(&["run", "p.tw", "--scheduler", "auto", "-q"]);
}

#[test]
fn running_on_several_nodes_points_to_their_plan() {
    let dir = Dir::with_program("y = ones(3)\noutput y\n");
    for (option, value) in
        [("--scheduler", "lshs"), ("--nodes", "4"), ("--workers", "2"), ("--machine", "m"), ("--distribution", "d")]
    {
        let message = dir.refused(&["run", "p.tw", option, value]);
        assert!(
            message.contains(&format!("`tw run` runs on this machine alone, so it does not take `{option}`")),
            "{message}"
        );
        assert!(message.contains("`tw explain --nodes K --workers R` shows the plan"), "{message}");
    }
}
