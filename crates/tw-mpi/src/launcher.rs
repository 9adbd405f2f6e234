//! Who started this process, as far as environment and ancestors tell.

use std::path::PathBuf;

/// A family of MPI implementations whose launchers and libraries understand each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpiFamily {
    /// Open MPI.
    OpenMpi,
    /// MPICH, Intel MPI and relatives.
    Mpich,
}

impl MpiFamily {
    pub(crate) fn name(self) -> &'static str {
        match self {
            MpiFamily::OpenMpi => "Open MPI",
            MpiFamily::Mpich => "MPICH or Intel MPI",
        }
    }
}

/// The launcher of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launcher {
    /// Its family, where the environment shows it. PMI alone, which Slurm speaks too, shows none.
    pub family: Option<MpiFamily>,
    /// The number of ranks it started, if it says so.
    pub size: Option<u32>,
    /// The variable that says so.
    pub variable: Option<&'static str>,
    /// The directory that contains its `bin`, if an ancestor of this process is a known launcher.
    pub prefix: Option<PathBuf>,
}

/// The number of tasks that `srun` started.
pub(crate) const SLURM_VARIABLE: &str = "SLURM_STEP_NUM_TASKS";

impl Launcher {
    /// From the environment and the ancestors of this process.
    pub fn detect() -> Launcher {
        Launcher { prefix: ancestors_prefix(), ..Launcher::of(|name| std::env::var(name).ok()) }
    }

    /// From variables.
    fn of(variable: impl Fn(&str) -> Option<String>) -> Launcher {
        // The last one is that of `srun`, and of interest only if none of the others speaks.
        let rows = [("OMPI_COMM_WORLD_SIZE", Some(MpiFamily::OpenMpi)), ("PMI_SIZE", None), (SLURM_VARIABLE, None)];
        for (name, family) in rows {
            if let Some(size) = variable(name).and_then(|size| size.trim().parse().ok()) {
                // Hydra, the launcher of MPICH and Intel MPI, says more than PMI.
                let is_hydra =
                    name == "PMI_SIZE" && variable("HYDI_CONTROL_FD").or_else(|| variable("MPI_LOCALNRANKS")).is_some();
                let family = if is_hydra { Some(MpiFamily::Mpich) } else { family };
                return Launcher { family, size: Some(size), variable: Some(name), prefix: None };
            }
        }
        Launcher::default()
    }
}

/// How many ranks the launcher has started on this host, if it says so.
pub fn ranks_on_this_host() -> Option<u32> {
    let variables = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"];
    let number = |name: &&str| std::env::var(name).ok()?.trim().parse().ok();
    variables.iter().find_map(number).filter(|&n| n > 0)
}

const NAMES: &[&str] = &[
    "mpirun",
    "mpiexec",
    "orterun",
    "orted",
    "prterun",
    "prted",
    "prte",
    "hydra_pmi_proxy",
    "mpiexec.hydra",
    "mpiexec.gforker",
];

/// Where the nearest launcher among the ancestors is installed.
fn ancestors_prefix() -> Option<PathBuf> {
    let mut process = std::process::id();
    // Between launcher and program there may be a shell and an interpreter.
    for _ in 0..8 {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // After the name, which is in parentheses and may contain anything: state, parent.
        process = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok().filter(|&parent| parent > 1)?;
        let Ok(file) = std::fs::read_link(format!("/proc/{process}/exe")) else { continue };
        let name = file.file_name()?.to_string_lossy().into_owned();
        if NAMES.contains(&name.as_str()) {
            return Some(file.parent()?.parent()?.to_path_buf());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Launcher {
        Launcher::of(|name| variables.iter().find(|(found, _)| *found == name).map(|(_, value)| value.to_string()))
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        assert_eq!(of(&[]), Launcher::default());
        let open = of(&[("OMPI_COMM_WORLD_SIZE", "4"), ("PMI_SIZE", "1")]);
        assert_eq!(
            (open.family, open.size, open.variable),
            (Some(MpiFamily::OpenMpi), Some(4), Some("OMPI_COMM_WORLD_SIZE"))
        );
        let hydra = of(&[("PMI_SIZE", "3"), ("MPI_LOCALNRANKS", "3")]);
        assert_eq!((hydra.family, hydra.size), (Some(MpiFamily::Mpich), Some(3)));
        let slurm = of(&[("PMI_SIZE", "3")]);
        assert_eq!((slurm.family, slurm.size), (None, Some(3)));
        let pmix = of(&[("SLURM_STEP_NUM_TASKS", "5")]);
        assert_eq!((pmix.family, pmix.size, pmix.variable), (None, Some(5), Some(SLURM_VARIABLE)));
        let mpirun_in_slurm = of(&[("SLURM_STEP_NUM_TASKS", "1"), ("OMPI_COMM_WORLD_SIZE", "4")]);
        assert_eq!(mpirun_in_slurm.size, Some(4));
        assert_eq!(of(&[("PMI_SIZE", "many")]), Launcher::default());
    }
}
