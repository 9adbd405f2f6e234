//! Rules of the repository that a machine can check.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Which crates of the workspace each crate may depend on. `tw-test` may see all of them.
///
/// This is the list in ARCHITECTURE.md, closed under reachability; a test compares the two.
pub const ALLOWED_EDGES: &[(&str, &[&str])] = &[
    ("tw-ir", &[]),
    ("tw-build", &["tw-ir"]),
    ("tw-lang", &["tw-ir", "tw-build"]),
    ("tw-sparse", &["tw-ir"]),
    ("tw-jit", &["tw-ir", "tw-sparse"]),
    ("tw-plan", &["tw-ir", "tw-build"]),
    ("tw-place", &["tw-ir", "tw-build", "tw-plan"]),
    ("tw-block", &["tw-ir"]),
    ("tw-files", &["tw-ir", "tw-block"]),
    ("tw-functions", &["tw-ir"]),
    ("tw-run", &["tw-ir", "tw-block", "tw-wire"]),
    ("tw-wire", &["tw-ir"]),
    ("tw-mpi", &["tw-ir", "tw-wire"]),
    ("tilewright", BELOW_TILEWRIGHT),
    (
        "tw-py",
        &[
            "tw-ir",
            "tw-build",
            "tw-lang",
            "tw-plan",
            "tw-place",
            "tw-block",
            "tw-files",
            "tw-functions",
            "tw-run",
            "tw-wire",
            "tw-mpi",
            "tilewright",
        ],
    ),
];

const BELOW_TILEWRIGHT: &[&str] = &[
    "tw-ir",
    "tw-build",
    "tw-lang",
    "tw-plan",
    "tw-place",
    "tw-block",
    "tw-files",
    "tw-functions",
    "tw-run",
    "tw-wire",
    "tw-mpi",
];

/// Further edges that only tests may have: they are written in program text, or store to real files.
pub const TEST_EDGES: &[(&str, &str)] = &[("tw-plan", "tw-lang"), ("tw-place", "tw-lang"), ("tw-run", "tw-files")];

/// The crate that sees all others and is not published.
pub const TEST_CRATE: &str = "tw-test";

/// The only crate that may contain `unsafe` anywhere.
pub const UNSAFE_CRATE: &str = "tw-block";

/// Files of other crates that may contain `unsafe`, each for a reason given in it. Their crates deny it everywhere else.
pub const UNSAFE_FILES: &[&str] = &[
    "crates/tw-mpi/src/library.rs",
    "crates/tw-mpi/src/tests.rs",
    "crates/tw-mpi/src/transport.rs",
    "crates/tw-mpi/src/wire.rs",
    "crates/tw-jit/src/code.rs",
    "crates/tw-jit/src/micro.rs",
    "crates/tw-jit/src/runtime.rs",
    "crates/tw-py/src/cfunction.rs",
];

/// The only crate that knows formats of files.
pub const FORMATS: &str = "crates/tw-files/src";

/// A source file with more lines than this wants to be two.
pub const MAX_LINES: usize = 800;

/// Pages whose paths must exist.
pub const PAGES: &[&str] = &["ARCHITECTURE.md", "README.md", "CONTRIBUTING.md"];

/// Directories whose mention in a page is a path of this repository.
const ROOTS: &[&str] = &["crates/", "docs/", "corpus/", "python/", ".ci/"];

/// The top directory of the repository.
pub fn root() -> PathBuf {
    // Two levels above this crate.
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// From crate to the crates it may use, directly or through others.
pub type Edges = BTreeMap<String, BTreeSet<String>>;

/// [`ALLOWED_EDGES`] as a map.
pub fn allowed_edges() -> Edges {
    ALLOWED_EDGES.iter().map(|(name, uses)| (name.to_string(), uses.iter().map(|u| u.to_string()).collect())).collect()
}

/// Reads chains such as `` `a, b <- c <- d` `` between backquotes and closes them: here d may use a, b and c.
pub fn documented_edges(page: &str) -> Edges {
    let mut edges = Edges::new();
    for chain in page.split('`').skip(1).step_by(2).filter(|code| code.contains(" <- ")) {
        let links: Vec<Vec<&str>> = chain.split(" <- ").map(|link| link.split(", ").collect()).collect();
        for pair in links.windows(2) {
            for user in &pair[1] {
                let used = edges.entry(user.to_string()).or_default();
                used.extend(pair[0].iter().map(|name| name.to_string()));
            }
        }
    }
    let names: BTreeSet<String> = edges.values().flatten().cloned().collect();
    for name in names {
        edges.entry(name).or_default();
    }
    close(edges)
}

/// Adds what the used crates use, until nothing is new.
fn close(mut edges: Edges) -> Edges {
    loop {
        let mut grown = edges.clone();
        for used in grown.values_mut() {
            let further: Vec<String> = used.iter().filter_map(|name| edges.get(name)).flatten().cloned().collect();
            used.extend(further);
        }
        if grown == edges {
            return edges;
        }
        edges = grown;
    }
}

/// The paths of this repository that a page mentions.
pub fn mentioned_paths(page: &str) -> BTreeSet<String> {
    page.split(|c: char| !(c.is_ascii_alphanumeric() || "_-./".contains(c)))
        .map(|word| word.trim_start_matches("./").trim_end_matches(['.', '/']))
        .filter(|word| ROOTS.iter().any(|root| word.starts_with(root)))
        .map(str::to_string)
        .collect()
}

/// Every file below a directory with the given extension, sorted. Build output and hidden directories are left out.
pub fn files_below(directory: &Path, extension: &str) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(&directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if entry.file_type()?.is_dir() {
                if !name.starts_with('.') && !name.starts_with("target") {
                    waiting.push(entry.path());
                }
            } else if entry.path().extension().is_some_and(|found| found == extension) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The types and traits that a source makes public by name. Those that macros make are not seen.
pub fn public_types(source: &str) -> impl Iterator<Item = &str> {
    source.lines().filter_map(|line| {
        let mut words = line.trim_start().split(|c: char| !(c.is_alphanumeric() || "_$(".contains(c)));
        let is_public = words.next() == Some("pub");
        let is_type = ["struct", "enum", "union", "type", "trait"].contains(&words.next()?);
        let name = words.next()?.split('(').next()?;
        (is_public && is_type && !name.starts_with('$')).then_some(name)
    })
}

/// True if code names a format of files as a module or in a type. Comments, strings and the tests at the end of a file do not count.
pub fn names_format(source: &str, format: &str) -> bool {
    let code = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut capital = format.to_string();
    capital[..1].make_ascii_uppercase();
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).any(|line| {
        // Every other piece is inside a string.
        line.replace("\\\"", "").split('"').step_by(2).any(|piece| {
            let mut words = piece.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            words.any(|word| word == format || word.starts_with(&capital))
        })
    })
}

/// A fenced block of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The word after the fence.
    pub language: String,
    /// The line of the fence, counted from one.
    pub line: usize,
    /// What stands between the fences.
    pub text: String,
}

/// The fenced blocks of a page, in order.
pub fn fences(page: &str) -> Vec<Fence> {
    let mut fences = Vec::new();
    let mut open: Option<Fence> = None;
    for (k, line) in page.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                open = Some(Fence { language: language.trim().to_string(), line: k + 1, text: String::new() });
            }
            (Some(_), Some(_)) => fences.extend(open.take()),
            (None, Some(fence)) => {
                fence.text.push_str(line);
                fence.text.push('\n');
            }
            (None, None) => {}
        }
    }
    fences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_closed() {
        let edges = documented_edges("Allowed: `a <- b`, `b, c <- d`; not this: `x`.");
        let of = |name: &str| edges[name].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(of("a"), [""; 0]);
        assert_eq!(of("b"), ["a"]);
        assert_eq!(of("d"), ["a", "b", "c"]);
    }

    #[test]
    fn paths_are_found_in_prose_and_code() {
        let page = "See `crates/tw-ir/src/lib.rs`, and docs/language.md. Not crates or target/x, but ./corpus/a.tw!";
        let paths: Vec<String> = mentioned_paths(page).into_iter().collect();
        assert_eq!(paths, ["corpus/a.tw", "crates/tw-ir/src/lib.rs", "docs/language.md"]);
    }

    #[test]
    fn only_public_types_are_listed() {
        let source =
            "pub struct A(u32);\n  pub enum B<T> {\npub(crate) struct C;\nstruct D;\npub fn e() {}\npub struct $f;";
        assert_eq!(public_types(source).collect::<Vec<_>>(), ["A", "B"]);
    }

    #[test]
    fn formats_are_found_in_code_only() {
        for code in ["mod npy;", "use x::npy::open;", "let reader: NpyReader;", "f(\"a\", npy::X)"] {
            assert!(names_format(code, "npy"), "{code}");
        }
        for code in [
            "// npy::open",
            "/// [`NpyReader`]",
            "help(\"a .npy file\")",
            "fn open_npy()",
            r#"help("for example \"a.npy\"")"#,
            "#[cfg(test)]\nmod tests {\nuse npy;",
        ] {
            assert!(!names_format(code, "npy"), "{code}");
        }
    }

    #[test]
    fn fences_know_their_language() {
        let found = fences("a\n```tw\nx = 1\n```\nb\n```\ny\n```\n");
        assert_eq!(found[0], Fence { language: "tw".into(), line: 2, text: "x = 1\n".into() });
        assert_eq!(found[1].text, "y\n");
    }
}
