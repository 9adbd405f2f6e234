//! Options about several ranks, where one process runs alone.

use crate::tool::Dir;

#[test]
fn results_on_threads_are_reproducible_anyway() {
    let dir = Dir::with_program("y = ones(3)\noutput y -> \"y.npy\"\n");
    dir.ok(&["run", "p.tw", "--reproducible", "-q"]);
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
