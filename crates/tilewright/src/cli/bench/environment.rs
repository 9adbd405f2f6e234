//! A Python environment with the rivals, created once.
//!
//! Every failure (no Python, no package registry, no network) becomes a message, and the rivals count as missing.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Packages with the versions that documented figures were measured against, and a module of each. A version that a Python does not have gives
/// way to what it has: tables name the version that ran.
const PACKAGES: [(&str, &str, &str); 5] = [
    ("numpy", "2.4.6", "numpy"),
    ("numexpr", "2.14.2", "numexpr"),
    ("dask[array]", "2026.8.0", "dask.array"),
    ("jax[cpu]", "0.10.2", "jax"),
    ("scipy-openblas32", "0.3.34.237.2", "scipy_openblas32"),
];

/// Prints the modules given as arguments that cannot be found.
const MISSING: &str = "
import importlib.util, sys
def found(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False
print(*(module for module in sys.argv[1:] if not found(module)))
";

/// An environment that exists.
pub(super) struct Environment {
    pub(super) python: PathBuf,
}

impl Environment {
    /// Finds the environment, and unless offline makes it or what is missing in it.
    pub(super) fn open(directory: Option<&Path>, offline: bool) -> Result<Environment, String> {
        let directory = directory.map_or_else(default_directory, Path::to_path_buf);
        let python = directory.join("bin").join("python");
        if !python.exists() {
            if offline {
                return Err(format!("there is no environment in {}", directory.display()));
            }
            say(format_args!("making a Python environment in {}", directory.display()));
            step(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&directory), "python3 -m venv")?;
        }
        let environment = Environment { python };
        let missing = environment.missing()?;
        if !offline && !missing.is_empty() {
            environment.install(&missing);
        }
        Ok(environment)
    }

    /// The CBLAS of the environment.
    pub(super) fn blas(&self) -> Result<PathBuf, String> {
        let script =
            "import scipy_openblas32 as b, os; print(os.path.join(b.get_lib_dir(), b.get_library(fullname=True)))";
        let said = step(Command::new(&self.python).args(["-c", script]), "looking for scipy-openblas32")?;
        Ok(PathBuf::from(said.trim()))
    }

    fn missing(&self) -> Result<Vec<&'static str>, String> {
        let modules = PACKAGES.map(|(_, _, module)| module);
        let said = step(Command::new(&self.python).args(["-c", MISSING]).args(modules), "the Python environment")?;
        let is_missing = |module: &&str| said.split_whitespace().any(|word| word == *module);
        Ok(modules.into_iter().filter(is_missing).collect())
    }

    /// One by one, so that what cannot be installed takes nothing else with it. A rival that stays missing says so itself.
    fn install(&self, modules: &[&str]) {
        for (package, version, _) in PACKAGES.iter().filter(|(_, _, module)| modules.contains(module)) {
            say(format_args!("installing {package}"));
            let install = |wanted: &str| {
                let mut pip = Command::new(&self.python);
                pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted]);
                step(&mut pip, "pip install")
            };
            if let Err(why) = install(&format!("{package}=={version}")).or_else(|_| install(package)) {
                say(format_args!("{package}: {why}"));
            }
        }
    }
}

/// Says what takes long, beside the results.
pub(super) fn say(what: std::fmt::Arguments<'_>) {
    // A closed standard error does not matter.
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// Under the build directory this program was built in, or with temporary files.
fn default_directory() -> PathBuf {
    let built_in = std::env::current_exe().ok().and_then(|exe| {
        let target = exe.ancestors().find(|directory| directory.file_name().is_some_and(|name| name == "target"));
        target.map(Path::to_path_buf)
    });
    built_in.unwrap_or_else(std::env::temp_dir).join("tw-bench-env")
}

/// Runs one step and gives what it printed; on failure the last line it said is the reason.
fn step(command: &mut Command, what: &str) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{what} cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let reason = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it gave no reason");
    Err(format!("{what} failed: {}", reason.trim()))
}
