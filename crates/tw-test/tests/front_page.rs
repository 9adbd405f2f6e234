//! What the front page shows is what happens. (Its Rust examples are documentation tests of this crate.)

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tw_test::repository::{self, Fence};
use tw_test::scratch::Scratch;

/// The command, built if it is not there yet. Crates have other features where the whole workspace is selected than where one package is; the tests are built
/// from the whole workspace, and everything would be compiled again.
fn tw() -> PathBuf {
    let cargo = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO")).args(arguments).current_dir(repository::root()).output();
        let output = output.expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("cargo prints text")
    };
    let messages = cargo(&["build", "--quiet", "--workspace", "--bin", "tw", "--message-format", "json"]);
    let executable = messages.lines().rev().find_map(|message| {
        let message: serde_json::Value = serde_json::from_str(message).ok()?;
        Some(PathBuf::from(message["executable"].as_str()?))
    });
    executable.expect("cargo names the executable")
}

/// Runs `tw` on a program and returns what it prints.
fn printed(arguments: &[&str], program: &str) -> String {
    let directory = Scratch::new().expect("a scratch directory");
    fs::write(directory.path(arguments.last().expect("a file")), program).expect("the program can be written");
    let output = Command::new(tw()).args(arguments).current_dir(directory.directory()).output().expect("tw runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("tw prints text")
}

#[test]
fn sessions_on_the_front_page_print_what_they_show() {
    let page = fs::read_to_string(repository::root().join("README.md")).unwrap();
    let (mut program, mut sessions) = (String::new(), 0);
    for Fence { language, line, text } in repository::fences(&page) {
        match language.as_str() {
            "tw" => program = text,
            "console" => {
                let (command, shown) = text.split_once('\n').expect("a command and what it prints");
                let command = command.strip_prefix("$ tw ").expect("the command is `tw`");
                let printed = printed(&command.split(' ').collect::<Vec<_>>(), &program);
                for expected in shown.lines() {
                    let found = printed.lines().any(|line| line.trim_end() == expected.trim_end());
                    assert!(found, "README.md, line {line}: `{expected}` is not printed any more:\n{printed}");
                }
                sessions += 1;
            }
            // Rust is tested elsewhere, Python in python/tests/test_pages.py; what sets things up has already run when this does.
            "rust" | "python" | "sh" => {}
            other => panic!("README.md, line {line}: nothing tests a block of `{other}`"),
        }
    }
    assert!(sessions > 0, "no session was found");
}
