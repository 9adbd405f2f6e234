//! Requested forms of results, and the results.

use std::sync::Arc;

use tw_ir::Array;
use tw_ir::error::{Error, Result};
use tw_ir::workflow::{BlockSet, Boxes, Workflow};
use tw_run::{OutputForm, TensorHandle};

/// The requested form of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Want {
    /// Blocks, which are kept.
    #[default]
    Blocks,
    /// One array, which is handed to the caller. Its blocks are kept too if they have at most `keep_up_to` bytes.
    Array {
        /// The largest result, in bytes, whose blocks are kept.
        keep_up_to: u64,
        /// The rank that gets the array, of several; all of them if none is named.
        on: Option<u32>,
    },
}

/// A computed result: blocks, an array, or both.
#[derive(Debug, Default)]
pub(crate) struct Computed {
    pub(crate) stored: Option<Arc<TensorHandle>>,
    pub(crate) array: Option<Array>,
    /// True if it can be recomputed without keeping any array in memory.
    pub(crate) can_repeat: bool,
}

impl Computed {
    /// The blocks of a result that was requested as blocks.
    pub(crate) fn into_stored(self) -> Result<Arc<TensorHandle>> {
        self.stored.ok_or_else(|| Error::internal("a result has no blocks"))
    }

    /// One array, and the blocks if they are kept. `keep_up_to` is that of the request.
    pub(crate) fn into_array(self, keep_up_to: u64) -> Result<(Array, Option<Arc<TensorHandle>>)> {
        match (self.array, self.stored) {
            (Some(array), stored) => Ok((array, stored.filter(|stored| stored.n_bytes() <= keep_up_to))),
            (None, Some(stored)) if stored.n_bytes() <= keep_up_to => Ok((stored.to_array()?, Some(stored))),
            (None, Some(stored)) => Ok((TensorHandle::into_array(stored)?, None)),
            (None, None) => Err(Error::internal("a result was not computed")),
        }
    }
}

/// The forms in which a run produces its outputs, with at most `room` bytes beyond the blocks that it computes anyway. Without room for a copy, an output comes
/// as blocks, and the caller assembles the array. Also returns the bytes that the forms need.
pub(crate) fn forms(workflow: &Workflow, wants: &[Want], threads: usize, room: u64) -> (Vec<OutputForm>, u64) {
    let mut needed = 0u64;
    let mut form = |set: &BlockSet, want: Want| {
        let Want::Array { keep_up_to, .. } = want else { return OutputForm::Blocks };
        let n_bytes = set.array_bytes();
        let Boxes::Grid(grid) = &set.boxes else { return OutputForm::Blocks };
        let largest = grid.iter().fold(set.dtype.size(), |bytes, axis| bytes.saturating_mul(axis.longest()));
        // Of every thread a block may be both complete and copied.
        let in_hand = largest.saturating_mul(threads as u64).min(n_bytes);
        let kept = OutputForm::BlocksAndArray;
        let choices = [(kept, n_bytes, n_bytes <= keep_up_to), (OutputForm::Array, in_hand, true)];
        let choice = choices.into_iter().find(|&(_, bytes, wanted)| wanted && needed.saturating_add(bytes) <= room);
        needed += choice.map_or(0, |(_, bytes, _)| bytes);
        choice.map_or(OutputForm::Blocks, |(form, _, _)| form)
    };
    let sets = workflow.outputs.iter().map(|output| &workflow.sets[output.set]);
    let wants = wants.iter().copied().chain(std::iter::repeat(Want::Blocks));
    let forms = sets.zip(wants).map(|(set, want)| form(set, want)).collect();
    (forms, needed)
}
