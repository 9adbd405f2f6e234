//! The repository keeps to its own rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use serde_json::Value;
use tw_test::repository::{self, FORMATS, MAX_LINES, PAGES, TEST_CRATE, TEST_EDGES, UNSAFE_CRATE, UNSAFE_FILES};

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

/// Two things of one name are taken for each other, by readers and by whoever imports them.
#[test]
fn public_types_have_names_of_their_own() {
    let root = repository::root();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in fs::read_dir(root.join("crates")).expect("the tree can be read") {
        let sources = package.expect("the tree can be read").path().join("src");
        for file in repository::files_below(&sources, "rs").expect("the tree can be read") {
            let path = file.strip_prefix(&root).expect("a file below the root").display().to_string();
            let text = fs::read_to_string(&file).expect("source is text");
            for name in repository::public_types(&text) {
                found.entry(name.to_string()).or_default().push(path.clone());
            }
        }
    }
    assert!(found.contains_key("Grid") && found.contains_key("Relation"), "no types were found at all");
    found.retain(|_, files| files.len() > 1);
    assert!(found.is_empty(), "public types that share a name: {found:#?}");
}

/// What a target is linked into a program or another language as. Tests, examples and build scripts are not shipped.
const SHIPPED_KINDS: &[&str] = &["lib", "rlib", "dylib", "cdylib", "staticlib", "proc-macro", "bin"];

#[test]
fn unsafe_code_is_forbidden_outside_one_crate() {
    let mut shipped_kinds = BTreeSet::new();
    for package in packages() {
        let name = package["name"].as_str().expect("a name");
        for target in package["targets"].as_array().expect("targets") {
            let kinds = target["kind"].as_array().expect("kinds").iter().filter_map(Value::as_str);
            let shipped: Vec<&str> = kinds.filter(|kind| SHIPPED_KINDS.contains(kind)).collect();
            shipped_kinds.extend(shipped.iter().map(|kind| kind.to_string()));
            if name == UNSAFE_CRATE || shipped.is_empty() {
                continue;
            }
            let source = target["src_path"].as_str().expect("a path");
            let text = fs::read_to_string(source).expect("source is text");
            let has_exception = UNSAFE_FILES.iter().any(|file| file.starts_with(&format!("crates/{name}/")));
            let attribute = if has_exception { "#![deny(unsafe_code)]" } else { "#![forbid(unsafe_code)]" };
            assert!(text.lines().any(|line| line == attribute), "{source} lacks {attribute}");
        }
    }
    for kind in ["lib", "bin", "cdylib"] {
        assert!(shipped_kinds.contains(kind), "no target of kind {kind} was looked at");
    }
}

#[test]
fn exceptions_from_denied_unsafe_code_are_listed() {
    let root = repository::root();
    let unsafe_crate = root.join("crates").join(UNSAFE_CRATE);
    // In two parts, so that this file does not contain it.
    let allowed = ["(unsafe", "_code"].concat();
    let mut found = BTreeSet::new();
    for file in repository::files_below(&root.join("crates"), "rs").expect("the tree can be read") {
        if file.starts_with(&unsafe_crate) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("source is text");
        let exempts = |line: &str| line.contains(&allowed) && !line.contains("forbid") && !line.contains("deny");
        if text.lines().any(exempts) {
            let path = file.strip_prefix(&root).expect("a file below the root");
            found.insert(path.to_str().expect("a path is text").to_string());
        }
    }
    let listed: BTreeSet<String> = UNSAFE_FILES.iter().map(|file| file.to_string()).collect();
    assert_eq!(found, listed, "files that allow unsafe code, and those listed in repository.rs");
}

#[test]
fn formats_of_files_are_known_in_one_place() {
    let root = repository::root();
    let mut namers = BTreeSet::new();
    for file in repository::files_below(&root.join("crates"), "rs").expect("the tree can be read") {
        let path =
            file.strip_prefix(&root).expect("a file below the root").to_str().expect("a path is text").to_string();
        let is_test = path.contains("/tests/") || path.starts_with(&format!("crates/{TEST_CRATE}/"));
        let text = fs::read_to_string(&file).expect("source is text");
        if !is_test && ["npy", "zarr", "csv", "parquet"].iter().any(|format| repository::names_format(&text, format)) {
            namers.insert(path);
        }
    }
    assert!(namers.contains(&format!("{FORMATS}/formats.rs")), "the table of formats names none");
    let elsewhere: Vec<&String> = namers.iter().filter(|path| !path.starts_with(&format!("{FORMATS}/"))).collect();
    assert!(elsewhere.is_empty(), "these know a format of files: {elsewhere:?}; only {FORMATS} may");
}

/// Functions of the system's mathematical library differ between machines in the last bits, and plans must not.
#[test]
fn plans_do_not_depend_on_the_mathematical_library() {
    const CALLS: &[&str] = &[".ln(", ".ln_1p(", ".log2(", ".log10(", ".exp(", ".exp2(", ".exp_m1(", ".powf(", ".cbrt("];
    // Lower bounds are shown beside plans, and decide nothing.
    const SHOWN_ALONE: &str = "crates/tw-place/src/bounds.rs";
    let root = repository::root();
    let mut callers = BTreeSet::new();
    for package in ["tw-build", "tw-plan", "tw-place"] {
        let sources = root.join("crates").join(package).join("src");
        for file in repository::files_below(&sources, "rs").expect("the tree can be read") {
            let text = fs::read_to_string(&file).expect("source is text");
            if CALLS.iter().any(|call| text.contains(call)) {
                let path = file.strip_prefix(&root).expect("a file below the root");
                callers.insert(path.to_str().expect("a path is text").to_string());
            }
        }
    }
    assert!(callers.remove(SHOWN_ALONE), "lower bounds take no logarithms any more");
    assert!(callers.is_empty(), "{callers:?} call the mathematical library: call `Elementary` of tw-ir instead");
}

/// A run must not need what only explain knows: sessions, the control walk and budgets work without it.
#[test]
fn running_does_not_depend_on_explaining() {
    let root = repository::root();
    let sources = root.join("crates/tilewright/src");
    let mut n_looked_at = 0;
    for file in repository::files_below(&sources, "rs").expect("the tree can be read") {
        let path = file.strip_prefix(&sources).expect("a file below it").to_str().expect("a path is text").to_string();
        let may_explain =
            ["explain/", "explain.rs", "cli/", "cli.rs", "lib.rs"].iter().any(|part| path.starts_with(part));
        if !may_explain {
            n_looked_at += 1;
            let text = fs::read_to_string(&file).expect("source is text");
            assert!(!text.contains("explain::"), "{path} uses explain");
        }
    }
    assert!(n_looked_at > 20, "only {n_looked_at} files were looked at");
}
