//! Deferred extents: extents that depend on data.
//!
//! `x[mask]` has as many elements as the mask selects. Until that count is computed, the extent in the type of a tensor is the id of a [`Count`]; equal ids are
//! equal extents, so `x[m] + y[m]` type-checks. [`super::graph`] resolves each count once when it collects a program. A builder that needs the number fails with an error that
//! names the extent (`Error::needed_extents`). Then only that count is computed, and the builder runs again. Two different deferred extents may still be equal, so they are
//! needed too, not a mismatch. Any other error is raised before anything is computed. All tensors under one mask share its count.

use std::sync::{Arc, Mutex, OnceLock, Weak};

use tw_build as build;
use tw_build::Reduction;
use tw_ir::error::Result;
use tw_ir::program::{ExtentId, Op, TensorType};
use tw_ir::{DType, EntityRef, Extent};

use super::Tensor;
use crate::session::lock;

mod recent;

/// The number of elements that a mask selects. It is computed with the results, or when a shape is requested.
pub(super) struct Count {
    id: CountId,
    /// The lazy number itself.
    pub(super) tensor: Tensor,
    known: OnceLock<u64>,
}

impl Count {
    /// The count of a mask. Everything selected by one mask shares it, so that the selections fit each other.
    pub(super) fn of(mask: &Tensor) -> Result<Arc<Count>> {
        let mut counts = lock(&mask.node.counts_of_results);
        if let Some(count) = counts.iter().find_map(|(k, count)| (*k == mask.result).then(|| count.upgrade())?) {
            return Ok(count);
        }
        let count = match recent::find(mask) {
            Some(count) => count,
            None => {
                let kind = if mask.dtype() == DType::Bool { Reduction::Count } else { Reduction::Sum };
                let number = build::reduce(mask.ty(), kind, None, false)?;
                let tensor = Tensor::apply(mask.session(), number, &[mask])?;
                let count = Arc::new(Count { id: CountId::new(), tensor, known: OnceLock::new() });
                recent::remember(mask, &count);
                count
            }
        };
        counts.retain(|(k, _)| *k != mask.result);
        // A strong reference would be a circle: the count refers to the mask.
        counts.push((mask.result, Arc::downgrade(&count)));
        Ok(count)
    }

    /// Its id in the types of tensors.
    pub(super) fn id(&self) -> ExtentId {
        self.id.0
    }

    /// The number, if it has been computed.
    pub(super) fn known(&self) -> Option<u64> {
        if let Some(&n) = self.known.get() {
            return Some(n);
        }
        let n = self.tensor.stored()?.item().ok()?.as_i64();
        Some(*self.known.get_or_init(|| n.max(0) as u64))
    }

    /// The extent in types.
    pub(super) fn extent(&self) -> Extent {
        self.known().map_or(Extent::Deferred(self.id()), Extent::Known)
    }

    /// The lazy number of a count without other references.
    pub(super) fn into_tensor(count: Arc<Count>) -> Option<Tensor> {
        Arc::into_inner(count).map(|count| count.tensor)
    }
}

/// The cache of counts of a node's results as masks.
pub(super) type CountsOfResults = Mutex<Vec<(usize, Weak<Count>)>>;

/// Those of some counts that an operation or the types of its results name, each once.
pub(super) fn named_by<'a>(
    counts: impl Iterator<Item = &'a Arc<Count>>,
    op: &Op,
    types: &[TensorType],
) -> Vec<Arc<Count>> {
    let mut named: Vec<Arc<Count>> = Vec::new();
    let mut extents = None;
    for count in counts {
        let extents: &Vec<Extent> = extents.get_or_insert_with(|| {
            op.extents().into_iter().chain(types.iter().flat_map(|ty| ty.shape.clone())).collect()
        });
        let seen = named.iter().any(|other| other.id() == count.id());
        if !seen && extents.contains(&Extent::Deferred(count.id())) {
            named.push(count.clone());
        }
    }
    named
}

/// A number that no other count of the process has while this one lives.
struct CountId(ExtentId);

static FREE_IDS: Mutex<FreeIds> = Mutex::new(FreeIds { returned: Vec::new(), next: 0 });

struct FreeIds {
    returned: Vec<ExtentId>,
    next: usize,
}

impl CountId {
    fn new() -> CountId {
        let mut free = lock(&FREE_IDS);
        let id = free.returned.pop().unwrap_or_else(|| {
            free.next += 1;
            ExtentId::new(free.next - 1)
        });
        CountId(id)
    }
}

impl Drop for CountId {
    fn drop(&mut self) {
        lock(&FREE_IDS).returned.push(self.0);
    }
}
