//! Selection by masks (`x[mask]`, `x[mask] = v`, `repeat`).
//!
//! Each piece of the mask is counted before anything moves; the counts are constants of the segment (`MaskCounts`). They tell where the run of each piece begins in
//! the result. So one task per piece copies its run, the result is cut where pieces end, and tasks, bytes and memory grow with the data. `x[mask] = v` is the
//! transpose; `repeat` has counts instead of bools. The rewrite `selections` removes selections that no statement needs as arrays.
//!
//! Rejected: a scan and a scatter, because each piece would meet each block of the result; and packed blocks of unknown length, because the peak would not be
//! known before the run.

use tw_ir::error::{Error, Result};
use tw_ir::plan::RelOp;
use tw_ir::program::{MaskCounts, Node};
use tw_ir::workflow::StmtId;
use tw_ir::{Axis, DType, Extent};

use super::Lowering;

/// The smallest block of selected elements, in bytes. The selections of neighbouring pieces of the mask share one block until it has this size.
const RUN_BYTES: u64 = 64 << 10;

impl Lowering<'_> {
    /// The result is cut where pieces of the mask end, so that every piece writes into one block.
    pub(super) fn compact(
        &mut self,
        node: &Node,
        extent: Extent,
        counts: Option<&MaskCounts>,
        statement: StmtId,
    ) -> Result<()> {
        let extent = extent.known().ok_or_else(|| Error::internal("an extent is not resolved"))?;
        let counts = self.counts(node, counts, extent)?;
        if counts.total() != extent {
            let total = counts.total();
            return Err(Error::data(format!("the mask takes {total} elements, but {extent} were announced")));
        }
        let inputs = self.relations_of(node)?;
        let rank = counts.cut().len();
        let row_bytes = inputs[1..].iter().map(|&data| {
            let relation = &self.plan.relations[data];
            relation.shape[rank..].iter().fold(relation.dtype.size(), |bytes, &n| bytes.saturating_mul(n))
        });
        let fewest = RUN_BYTES.div_ceil(row_bytes.max().unwrap_or(DType::I64.size()).max(1));
        let mut boundaries = vec![0];
        for end in counts.starts() {
            if end - boundaries[boundaries.len() - 1] >= fewest {
                boundaries.push(end);
            }
        }
        match boundaries.last_mut() {
            // The remainder joins the last block.
            Some(last) if *last > 0 => *last = extent,
            _ if extent > 0 => boundaries.push(extent),
            _ => {}
        }
        let mut outputs = Vec::new();
        for &result in &node.results {
            let shape = self.program.ty(result).require_shape()?;
            let rest = shape[1..].iter().map(|&n| Axis::whole(n));
            let grid = [Axis::from_boundaries(boundaries.clone())].into_iter().chain(rest).collect();
            outputs.push(self.define(result, grid)?);
        }
        self.step(RelOp::Compact(counts), inputs, outputs, statement);
        Ok(())
    }

    /// The result is cut as the mask is.
    pub(super) fn expand(&mut self, node: &Node, counts: Option<&MaskCounts>, statement: StmtId) -> Result<()> {
        let inputs = self.relations_of(node)?;
        let n_values = self.plan.relations[inputs[1]].shape[0];
        let counts = self.counts(node, counts, n_values)?;
        if counts.total() != n_values {
            return Err(Error::data(format!("{n_values} values for {} places", counts.total())));
        }
        let output = self.define(node.results[0], counts.cut().clone())?;
        self.step(RelOp::Expand(counts), inputs, vec![output], statement);
        Ok(())
    }

    /// The counts of the mask; an uncounted mask is one piece.
    fn counts(&self, node: &Node, counts: Option<&MaskCounts>, total: u64) -> Result<MaskCounts> {
        match counts {
            Some(counts) => Ok(counts.clone()),
            None => Ok(MaskCounts::whole(&self.program.ty(node.args[0]).require_shape()?, total)),
        }
    }
}
