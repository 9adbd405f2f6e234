//! Which files may be the MPI library to use, best first.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::launcher::{Launcher, MpiFamily};

/// The variable that names a library, or the directory or prefix that contains one.
pub const LIBRARY_VARIABLE: &str = "TILEWRIGHT_MPI";

/// A library to try, and why it is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MpiCandidate {
    /// A file, or a name that the system's loader knows.
    pub file: PathBuf,
    /// Where it comes from, for messages.
    pub origin: String,
}

/// Names of libraries, in the order in which those of one directory are tried. The interface that is older is the better tested one.
#[cfg(not(target_os = "macos"))]
const NAMES: &[&str] =
    &["libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi.so"];
#[cfg(target_os = "macos")]
const NAMES: &[&str] =
    &["libmpi.40.dylib", "libmpi.12.dylib", "libmpich.12.dylib", "libmpi_abi.1.dylib", "libmpi.dylib"];

/// Candidates, best first. `prefixes` are directories with a `lib` inside, such as that of a Python environment, whose wheels put
/// libraries there.
pub(crate) fn candidates(launcher: &Launcher, prefixes: &[PathBuf]) -> Vec<MpiCandidate> {
    let mut found = Vec::new();
    if let Some(named) = std::env::var_os(LIBRARY_VARIABLE).filter(|named| !named.is_empty()) {
        // Nobody wants another library than the one they named.
        return named_by_user(&named);
    }
    found.extend(already_loaded().map(|file| MpiCandidate { file, origin: "loaded by this process before".into() }));
    if let Some(prefix) = &launcher.prefix {
        add_prefix(&mut found, prefix, launcher.family, "that of the launcher");
    }
    let environment = std::env::var_os("VIRTUAL_ENV").or_else(|| std::env::var_os("CONDA_PREFIX")).map(PathBuf::from);
    let own = std::env::current_exe().ok().and_then(|file| Some(file.parent()?.parent()?.to_path_buf()));
    for prefix in prefixes.iter().chain(&environment).chain(&own) {
        add_prefix(&mut found, prefix, launcher.family, "of the Python environment");
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    for directory in std::env::split_paths(&path).filter(|directory| directory.join("mpirun").is_file()) {
        if let Some(prefix) = directory.parent() {
            add_prefix(&mut found, prefix, launcher.family, "beside mpirun in PATH");
        }
    }
    let known = NAMES.iter().filter(|name| agrees(Path::new(name), launcher.family));
    found.extend(known.map(|name| MpiCandidate { file: name.into(), origin: "of the system".into() }));
    let mut seen = Vec::new();
    found.retain(|candidate| {
        let file = std::fs::canonicalize(&candidate.file).unwrap_or_else(|_| candidate.file.clone());
        let is_new = !seen.contains(&file);
        seen.push(file);
        is_new
    });
    found
}

fn named_by_user(named: &OsString) -> Vec<MpiCandidate> {
    let path = PathBuf::from(named);
    let origin = format!("named by {LIBRARY_VARIABLE}");
    let mut found = Vec::new();
    if path.is_dir() {
        add_prefix(&mut found, &path, None, &origin);
        let files = NAMES.iter().map(|name| path.join(name)).filter(|file| file.is_file());
        found.extend(files.map(|file| MpiCandidate { file, origin: origin.clone() }));
        return found;
    }
    vec![MpiCandidate { file: path, origin }]
}

/// The libraries of a prefix that the launcher may understand.
fn add_prefix(found: &mut Vec<MpiCandidate>, prefix: &Path, family: Option<MpiFamily>, origin: &str) {
    // Debian keeps libraries in a directory for each architecture.
    let debian = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
    for directory in ["lib", "lib64", "lib/release", debian.as_str()].map(|directory| prefix.join(directory)) {
        for file in NAMES.iter().map(|name| directory.join(name)).filter(|file| file.is_file() && agrees(file, family))
        {
            found.push(MpiCandidate { file, origin: origin.to_string() });
        }
    }
}

/// False if the name of a library shows that it belongs to another family than the launcher.
fn agrees(file: &Path, family: Option<MpiFamily>) -> bool {
    // The plain name may be a link whose target says more.
    let target = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_open = name.contains(".so.40") || name.contains(".40.dylib");
    let is_mpich =
        name.contains(".so.12") || name.contains(".12.dylib") || name.contains("mpich") || name.contains("_abi");
    match family {
        Some(MpiFamily::OpenMpi) => !is_mpich,
        Some(MpiFamily::Mpich) => !is_open,
        None => true,
    }
}

/// The MPI library that this process has loaded, as `mpi4py` does. Two of them in one process do not work.
fn already_loaded() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let files = maps.lines().filter_map(|line| line.get(line.find('/')?..)).map(PathBuf::from);
    let is_mpi = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        ["libmpi.so", "libmpich.so", "libmpi_abi.so"].iter().any(|start| name.starts_with(start))
    };
    files.into_iter().find(is_mpi)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn names_show_families() {
        let open = Some(MpiFamily::OpenMpi);
        let mpich = Some(MpiFamily::Mpich);
        for (name, of_open, of_mpich) in [
            ("libmpi.so.40", true, false),
            ("libmpi.so.12", false, true),
            ("libmpich.so.12", false, true),
            ("libmpi_abi.so.1", false, true),
            ("libmpi.so", true, true),
        ] {
            let file = Path::new("/nowhere").join(name);
            assert_eq!(
                (agrees(&file, open), agrees(&file, mpich), agrees(&file, None)),
                (of_open, of_mpich, true),
                "{name}"
            );
        }
    }

    #[test]
    fn a_prefix_gives_its_libraries_in_order() {
        let prefix = std::env::temp_dir().join(format!("tw-mpi-search-{}", std::process::id()));
        std::fs::create_dir_all(prefix.join("lib")).unwrap();
        for name in ["libmpi.so.12", "libmpi_abi.so.1", "libmpi.so.40", "libother.so"] {
            std::fs::write(prefix.join("lib").join(name), "").unwrap();
        }
        let names = |family| {
            let mut found = Vec::new();
            add_prefix(&mut found, &prefix, family, "test");
            found
                .iter()
                .map(|candidate| candidate.file.file_name().unwrap().to_string_lossy().into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(None), ["libmpi.so.40", "libmpi.so.12", "libmpi_abi.so.1"]);
        assert_eq!(names(Some(MpiFamily::OpenMpi)), ["libmpi.so.40"]);
        let named: Vec<_> =
            named_by_user(&prefix.join("lib").into()).into_iter().map(|candidate| candidate.file).collect();
        assert_eq!(named[0], prefix.join("lib/libmpi.so.40"));
        std::fs::remove_dir_all(&prefix).unwrap();
    }
}
