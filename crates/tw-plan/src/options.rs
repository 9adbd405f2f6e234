//! Options of the planner.

use std::hash::{Hash, Hasher};

/// Choices that change a plan. A session fixes them, so its cache of segments need not tell them apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlanOptions {
    /// Rewrite the program first (fusion, contraction order, common subexpressions). Off only to compare.
    pub rewrites: bool,
    /// Tile length of each axis without a requested tiling; `None` lets the planner choose by size.
    pub tile: Option<u64>,
    /// Bytes of a block where the planner chooses; `None` lets the program decide: about 2 MiB where tensors are streamed, 8 to 32 MiB where blocks meet
    /// other blocks, as in a matrix product.
    pub block_bytes: Option<u64>,
    /// The kernel provider recorded in the schedule.
    pub provider: ProviderName,
    /// Passes left out, by the names that [`pass_names`](crate::pass_names) lists: to see what each of them does. Planning may fail without a pass
    /// that lowering relies on.
    pub without: Vec<&'static str>,
}

impl PlanOptions {
    /// True if a pass is left out.
    pub(crate) fn leaves_out(&self, pass: &str) -> bool {
        self.without.contains(&pass)
    }
}

/// The name of the provider of products and factorisations.
#[derive(Clone, Debug)]
pub enum ProviderName {
    /// It has this name.
    Known(String),
    /// The name is asked for when a schedule needs one: finding a provider may mean to load a library, which most programs do without.
    Asked(fn() -> &'static str),
}

impl ProviderName {
    /// The name.
    pub fn get(&self) -> &str {
        match self {
            ProviderName::Known(name) => name,
            ProviderName::Asked(ask) => ask(),
        }
    }

    /// The provider name of a schedule that promises no particular bits.
    pub fn none() -> ProviderName {
        ProviderName::Known("none".to_string())
    }

    fn known(&self) -> Option<&str> {
        match self {
            ProviderName::Known(name) => Some(name),
            ProviderName::Asked(_) => None,
        }
    }
}

/// There is one place to ask, so that two names that have to be asked for are one.
impl PartialEq for ProviderName {
    fn eq(&self, other: &ProviderName) -> bool {
        self.known() == other.known()
    }
}
impl Eq for ProviderName {}
impl Hash for ProviderName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.known().hash(state);
    }
}

impl Default for PlanOptions {
    fn default() -> PlanOptions {
        PlanOptions {
            rewrites: true,
            tile: None,
            block_bytes: None,
            provider: ProviderName::none(),
            without: Vec::new(),
        }
    }
}
