//! Plan files: what the planner makes of programs, and that every rewrite matters to one of them.

use std::path::PathBuf;

use tw_test::plans::{self, PlanCase, difference, render};
use tw_test::repository::{files_below, root};

/// All files, or those whose path contains a word.
fn files(wanted: &str) -> Vec<PlanCase> {
    let paths = plans::files().expect("the plan files can be read");
    let chosen: Vec<PathBuf> = paths.into_iter().filter(|path| path.to_string_lossy().contains(wanted)).collect();
    assert!(!chosen.is_empty(), "no plan file was found");
    let read = plans::in_parallel(&chosen, |path| PlanCase::read(path));
    let problems: Vec<&str> = read.iter().filter_map(|file| file.as_ref().err().map(String::as_str)).collect();
    assert!(problems.is_empty(), "{} files are wrong\n\n{}", problems.len(), problems.join("\n\n"));
    read.into_iter().flatten().collect()
}

/// What is wrong with the plan of a file.
fn check(file: &PlanCase) -> Result<(), String> {
    let found = render(file, &[]);
    if found.contains("not planned:") != file.is_unplanned {
        return Err(format!("`#! unplanned` and what happens differ\n{found}"));
    }
    if std::env::var("TW_UPDATE").is_ok_and(|value| value == "1") {
        return update(file, &found);
    }
    match &file.expected {
        None => Err("nothing is expected: a line `----` and the plan after it are missing".into()),
        Some(expected) => difference(expected, &found).map_or(Ok(()), Err),
    }
}

/// Writes a file anew if its plan is another. Another test may be reading it, so it appears at once.
fn update(file: &PlanCase, found: &str) -> Result<(), String> {
    if file.expected.as_deref() == Some(found) {
        return Ok(());
    }
    let beside = file.path.with_extension("new");
    let written = std::fs::write(&beside, file.with_expected(found));
    written.and_then(|()| std::fs::rename(&beside, &file.path)).map_err(|error| error.to_string())
}

#[test]
fn plans_are_what_their_files_say() {
    let files = files(&std::env::var("TW_PLANS").unwrap_or_default());
    let results = plans::in_parallel(&files, check);
    let failures: Vec<String> = files
        .iter()
        .zip(results)
        .filter_map(|(file, result)| Some(format!("{}\n{}", file.name(), result.err()?)))
        .collect();
    assert!(
        failures.is_empty(),
        "{}\n\n{} of {} plans are others (`-` expected, `+` found). If that is right, update the files and read their changes:\n    \
         TW_UPDATE=1 cargo test -p tw-test --test plans",
        failures.join("\n"),
        failures.len(),
        files.len()
    );
}

#[test]
fn every_rewrite_matters_to_a_plan() {
    let changes = plans::changes_without(&files(""));
    println!("{:<32} files with another plan without it", "rewrite");
    for (pass, n) in &changes {
        println!("{pass:<32} {n}");
    }
    for (pass, n) in changes {
        assert!(n > 0, "no plan file changes without `{pass}`: write one below corpus/plans that needs it");
    }
}

/// Sources of the planner by the directory of their cases.
#[test]
fn every_part_of_the_planner_has_plans() {
    let source = root().join("crates/tw-plan/src");
    for stage in ["rewrite", "lower", "partial"] {
        for file in files_below(&source.join(stage), "rs").expect("the sources can be read") {
            let subject = file.file_stem().map(|stem| plans::directory().join(stage).join(stem));
            let n = subject.and_then(|subject| files_below(&subject, "plan").ok()).map_or(0, |files| files.len());
            assert!(n > 0, "{} has no plan files of its own in corpus/plans/{stage}", file.display());
        }
    }
}
