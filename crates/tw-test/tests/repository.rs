//! The repository keeps to its own rules.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;
use tw_test::repository::{self, MAX_LINES, PAGES, TEST_CRATE, TEST_EDGES, UNSAFE_CRATE};

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(repository::root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

fn page(name: &str) -> String {
    fs::read_to_string(repository::root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn crates_depend_only_on_what_is_allowed() {
    let packages = packages();
    let names: BTreeSet<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let allowed = repository::allowed_edges();
    let mut known: BTreeSet<&str> = allowed.keys().map(String::as_str).collect();
    known.insert(TEST_CRATE);
    assert_eq!(names, known, "the crates of the workspace and the table in repository.rs differ");
    for package in &packages {
        let name = package["name"].as_str().expect("a name");
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let used = dependency["name"].as_str().expect("a name");
            let only_tested = dependency["kind"] == "dev" && TEST_EDGES.contains(&(name, used));
            let fine = !names.contains(used) || name == TEST_CRATE || allowed[name].contains(used) || only_tested;
            assert!(fine, "{name} must not depend on {used} (kind: {})", dependency["kind"]);
        }
    }
}

#[test]
fn the_allowed_edges_are_those_of_the_architecture() {
    assert_eq!(repository::documented_edges(&page("ARCHITECTURE.md")), repository::allowed_edges());
}

#[test]
fn paths_in_the_pages_exist() {
    for name in PAGES {
        let paths = repository::mentioned_paths(&page(name));
        for path in &paths {
            assert!(repository::root().join(path).exists(), "{name} mentions {path}, which does not exist");
        }
    }
    assert!(!repository::mentioned_paths(&page("ARCHITECTURE.md")).is_empty(), "no paths were found at all");
}

#[test]
fn source_files_are_short() {
    for file in repository::files_below(&repository::root(), "rs").expect("the tree can be read") {
        let lines = fs::read_to_string(&file).expect("source is text").lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines; the limit is {MAX_LINES}", file.display());
    }
}

#[test]
fn unsafe_code_is_forbidden_outside_one_crate() {
    for package in packages() {
        let name = package["name"].as_str().expect("a name");
        for target in package["targets"].as_array().expect("targets") {
            // Tests and examples are not shipped; the library and the command are.
            let shipped = target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|k| k == "lib" || k == "bin"));
            if name == UNSAFE_CRATE || !shipped {
                continue;
            }
            let source = target["src_path"].as_str().expect("a path");
            let text = fs::read_to_string(source).expect("source is text");
            assert!(text.contains("#![forbid(unsafe_code)]"), "{source} does not forbid unsafe code");
        }
    }
}
