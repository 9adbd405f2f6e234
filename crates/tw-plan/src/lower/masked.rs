//! Selecting by masks, and putting back what was selected.

use tw_ir::error::{Error, Result};
use tw_ir::plan::RelOp;
use tw_ir::program::{MaskCounts, Node};
use tw_ir::workflow::StmtId;
use tw_ir::{Axis, DType, Extent};

use super::Lowering;

/// Fewest bytes of a block of selected elements: what a piece of the mask selects is put into one block with what its neighbours do until
/// there are so many.
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
            // What is left over joins the last block.
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

    /// The counts of the mask; one that nobody has counted is one piece.
    fn counts(&self, node: &Node, counts: Option<&MaskCounts>, total: u64) -> Result<MaskCounts> {
        match counts {
            Some(counts) => Ok(counts.clone()),
            None => Ok(MaskCounts::whole(&self.program.ty(node.args[0]).require_shape()?, total)),
        }
    }
}
