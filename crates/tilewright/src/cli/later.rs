//! Options for features that do not exist yet. `tw` parses them and refuses them; it never ignores them.

use tw_ir::error::{Error, Result};

/// Options that only `tw run` has.
#[derive(clap::Args)]
pub(crate) struct LaterRunArgs {
    /// The same bits for any number of ranks.
    #[arg(long, hide = true)]
    reproducible: bool,
}

/// The error for a feature that does not exist yet.
pub(crate) fn refusal(option: &str, comes_with: &str) -> Error {
    Error::plan(format!("{option} is not there yet; it comes with {comes_with}"))
}

impl LaterRunArgs {
    /// An error if one of them is given.
    pub(crate) fn refuse(&self) -> Result<()> {
        if self.reproducible {
            let help = "on one machine results do not depend on the number of threads anyway; leave the option out";
            return Err(refusal("`--reproducible`", "plans for any number of ranks").help(help));
        }
        Ok(())
    }
}
