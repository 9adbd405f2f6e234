//! Who multiplies and factors matrices of floats: the code here, or a BLAS with its LAPACK found when the program runs.
//!
//! Schedules record the name of the provider, because it shows in the last bits. The choice is the same on every run on a machine: the library that
//! `TILEWRIGHT_BLAS` names (or none, if it says `none`), else the first in the directories that the host program [named](Provider::look_in), else the
//! first of [`LIBRARIES`], else the kernel here. A library that cannot be used, for whatever reason, is passed over with a note.

use std::ffi::OsStr;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tw_ir::dense::DenseLibrary;
use tw_ir::dtype::{C64, C128};
use tw_ir::{Error, Result};

use super::known::{Known, Multiply, Task};
use super::library::Blas;
use crate::blas::Unusable;

/// The name of the kernel here. It changes when its bits do.
const RUST: &str = "rust-1";

/// The provider named by a schedule that promises no particular bits.
const NO_PROMISE: &str = "none";

/// The variable that names a library.
const VARIABLE: &str = "TILEWRIGHT_BLAS";

/// System libraries, in the order in which they are tried.
#[cfg(target_os = "macos")]
const LIBRARIES: [&str; 2] = ["libopenblas.dylib", "libblis.dylib"];
#[cfg(not(target_os = "macos"))]
const LIBRARIES: [&str; 4] = ["libopenblas.so.0", "libmkl_rt.so.2", "libblis.so.4", "libblis.so.3"];

/// How files begin that are looked for in directories, in the order in which they are tried. Packages for Python add digits to the names.
const FILES: [&str; 4] = ["libscipy_openblas", "libopenblas", "libmkl_rt", "libblis"];

/// Directories in which libraries are looked for first.
static DIRECTORIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Multiplies matrices of floats.
pub(crate) trait Products: Debug + Send + Sync {
    /// Its name, with whatever tells apart versions that differ in their bits.
    fn name(&self) -> &str;
    /// Sums of products of singles.
    fn multiply_f32(&self, task: Task<'_, f32>);
    /// Sums of products of doubles.
    fn multiply_f64(&self, task: Task<'_, f64>);
    /// Sums of products of complex singles.
    fn multiply_c64(&self, task: Task<'_, C64>) {
        C64::multiply(Known::SumProduct, C64::default(), task);
    }
    /// Sums of products of complex doubles.
    fn multiply_c128(&self, task: Task<'_, C128>) {
        C128::multiply(Known::SumProduct, C128::default(), task);
    }
    /// Factorisations, if it has them.
    fn dense(&self) -> Option<&dyn DenseLibrary> {
        None
    }
}

/// The kernel here.
#[derive(Debug)]
struct Rust;

impl Products for Rust {
    fn name(&self) -> &str {
        RUST
    }
    fn multiply_f32(&self, task: Task<'_, f32>) {
        f32::multiply(Known::SumProduct, 0.0, task);
    }
    fn multiply_f64(&self, task: Task<'_, f64>) {
        f64::multiply(Known::SumProduct, 0.0, task);
    }
}

/// Who multiplies matrices of floats. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Provider(Arc<dyn Products>);

struct Choice {
    provider: Provider,
    note: Option<String>,
}

impl Provider {
    /// The kernel of this crate.
    pub fn rust() -> Provider {
        Provider(Arc::new(Rust))
    }

    /// Says where to look for libraries first, before one is chosen: a host program that has its own knows where they are. They are not loaded here.
    pub fn look_in(directories: Vec<PathBuf>) {
        *DIRECTORIES.lock().unwrap_or_else(PoisonError::into_inner) = directories;
    }

    /// The provider that this process uses. The first call loads a library.
    pub fn chosen() -> Provider {
        choice().provider.clone()
    }

    /// The provider that a schedule asks for.
    pub fn named(name: &str) -> Result<Provider> {
        if name == RUST || name == NO_PROMISE {
            return Ok(Provider::rust());
        }
        let chosen = &choice().provider;
        if name == chosen.name() {
            return Ok(chosen.clone());
        }
        let here = format!("this process has `{}` and `{RUST}`; {VARIABLE} names a library", chosen.name());
        let error =
            Error::resource(format!("the schedule promises the bits of `{name}`, which is not here")).note(here);
        Err(Provider::note().into_iter().fold(error, |error, note| error.note(note)))
    }

    /// Its name, with whatever tells apart versions that differ in their bits.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Why a library that was named or found is not used, if there is such a library.
    pub fn note() -> Option<&'static str> {
        choice().note.as_deref()
    }

    pub(crate) fn products(&self) -> &dyn Products {
        &*self.0
    }

    /// Factorisations, if the provider has them.
    pub(crate) fn dense(&self) -> Option<&dyn DenseLibrary> {
        self.0.dense()
    }
}

/// Names the provider that this process uses; schedules record it.
pub fn provider() -> &'static str {
    choice().provider.name()
}

fn choice() -> &'static Choice {
    static CHOICE: OnceLock<Choice> = OnceLock::new();
    CHOICE.get_or_init(|| choose(std::env::var_os(VARIABLE).as_deref()))
}

/// Chooses a provider by the value of the environment variable.
fn choose(variable: Option<&OsStr>) -> Choice {
    let rust = |note| Choice { provider: Provider::rust(), note };
    let found = |library| Provider(Arc::new(library) as Arc<dyn Products>);
    match variable {
        Some(value) if value.is_empty() || value == "none" => rust(None),
        Some(path) => match Blas::open(path) {
            Ok(library) => Choice { provider: found(library), note: None },
            Err(error) => rust(Some(format!("{VARIABLE}={} is not used: {error}", path.display()))),
        },
        None => {
            let mut note = None;
            let directories = DIRECTORIES.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let files = directories.iter().flat_map(|directory| files_in(directory));
            for path in files.chain(LIBRARIES.iter().map(PathBuf::from)) {
                match Blas::open(path.as_os_str()) {
                    Ok(library) => return Choice { provider: found(library), note },
                    // A file that is there should load; a system library may be absent.
                    Err(Unusable::Absent(_)) if path.is_relative() => {}
                    Err(error) => note = Some(format!("{} is not used: {error}", path.display())),
                }
            }
            rust(note)
        }
    }
}

/// Libraries in a directory, in the order in which they are tried.
fn files_in(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let rank = |name: &str| FILES.iter().position(|start| name.starts_with(start));
    let is_library = |name: &str| name.contains(".so") || name.ends_with(".dylib");
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut found: Vec<(usize, String)> =
        names.filter(|name| is_library(name)).filter_map(|name| Some((rank(&name)?, name))).collect();
    // Names decide, not the order in which the system lists them.
    found.sort();
    found.into_iter().map(|(_, name)| directory.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_libraries_are_passed_over_with_a_note() {
        for path in ["/nowhere/libblas.so", "/proc/self/exe", "/dev/null"] {
            let choice = choose(Some(path.as_ref()));
            assert_eq!(choice.provider.name(), RUST);
            assert!(choice.note.is_some_and(|note| note.contains(path) && note.contains(VARIABLE)));
        }
        let choice = choose(Some("none".as_ref()));
        assert_eq!((choice.provider.name(), choice.note), (RUST, None));
    }

    #[test]
    fn schedules_name_what_must_be_there() {
        assert_eq!(Provider::named(provider()).unwrap().name(), provider());
        assert_eq!(Provider::named(RUST).unwrap().name(), RUST);
        let error = Provider::named("OpenBLAS 0.0.1").unwrap_err();
        assert_eq!(error.blame(), tw_ir::Blame::Resource);
        assert!(error.to_string().contains("OpenBLAS 0.0.1"));
    }
}
