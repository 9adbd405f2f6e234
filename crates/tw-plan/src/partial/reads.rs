//! The region of an operand that a tile of the iteration space reads.

use std::ops::Range;

use tw_ir::error::Result;
use tw_ir::index::{Edge, Idx, Interval};
use tw_ir::plan::RelId;
use tw_ir::workflow::MaybeOperand;
use tw_ir::{Axis, BoxRegion, Grid};

use super::Partial;

/// The elements of an axis that an index reaches while the variables run over inclusive ranges.
pub(super) fn image(idx: &Idx, ranges: &[Interval], extent: u64, edge: Edge) -> Range<u64> {
    let n = extent as i64;
    if n == 0 {
        return 0..0;
    }
    let (lo, hi) = idx.interval(ranges);
    match edge {
        Edge::Error | Edge::Fill => {
            let (start, end) = (lo.max(0), hi.min(n - 1) + 1);
            if start < end { start as u64..end as u64 } else { 0..0 }
        }
        Edge::Clamp => lo.clamp(0, n - 1) as u64..hi.clamp(0, n - 1) as u64 + 1,
        Edge::Wrap if lo.div_euclid(n) == hi.div_euclid(n) => lo.rem_euclid(n) as u64..hi.rem_euclid(n) as u64 + 1,
        Edge::Wrap => 0..extent,
    }
}

/// The range that one tile needs along one axis of an operand.
#[derive(Clone)]
struct Hit {
    range: Range<u64>,
    tiles: Range<u64>,
    /// The range is exactly one tile.
    whole: bool,
}

impl Hit {
    fn new(range: Range<u64>, axis: &Axis) -> Hit {
        let tiles = axis.tiles_meeting(&range);
        let whole = tiles.end - tiles.start == 1 && axis.range(tiles.start) == range;
        Hit { range, tiles, whole }
    }
}

/// The mapping from tiles of the variables to one axis of an operand.
enum AxisReads {
    /// It depends on at most one variable: a table over the tiles of that one.
    Table { var: usize, hits: Vec<Hit> },
    /// It depends on several.
    General(Idx),
}

/// The mapping from tiles of the variables of a join to one operand.
pub(super) struct Reads {
    relation: RelId,
    grid: Grid,
    edge: Edge,
    axes: Vec<AxisReads>,
}

/// Inclusive ranges of the variables at tile coordinates.
pub(super) fn ranges_at(vars: &[Axis], coords: &[u64]) -> Vec<Interval> {
    vars.iter().zip(coords).map(|(axis, &tile)| inclusive(axis.range(tile))).collect()
}

fn inclusive(range: Range<u64>) -> Interval {
    (range.start as i64, range.end as i64 - 1)
}

impl Reads {
    pub(super) fn new(relation: RelId, grid: &Grid, idx: &[Idx], edge: Edge, vars: &[Axis]) -> Reads {
        // Beside a variable without tiles another may have more than can be listed, and none of them is ever visited.
        let nothing_is_read = vars.iter().any(|axis| axis.n_tiles() == 0);
        let axes = idx
            .iter()
            .zip(grid)
            .map(|(idx, axis)| {
                let mut used = (0..vars.len()).filter(|&v| idx.uses(tw_ir::Var(v as u32)));
                let (first, second) = (used.next(), used.next());
                if second.is_some() {
                    return AxisReads::General(idx.clone());
                }
                // The only variable used stands alone in the ranges; the others do not matter.
                let var = first.unwrap_or(0);
                let n_tiles = match first {
                    _ if nothing_is_read => 0,
                    Some(var) => vars[var].n_tiles(),
                    None => 1,
                };
                let mut ranges: Vec<Interval> = vec![(0, 0); vars.len()];
                let hits = (0..n_tiles)
                    .map(|tile| {
                        if first.is_some() {
                            ranges[var] = inclusive(vars[var].range(tile));
                        }
                        Hit::new(image(idx, &ranges, axis.extent(), edge), axis)
                    })
                    .collect();
                AxisReads::Table { var, hits }
            })
            .collect();
        Reads { relation, grid: grid.clone(), edge, axes }
    }

    fn hit(&self, k: usize, vars: &[Axis], coords: &[u64]) -> Hit {
        match &self.axes[k] {
            AxisReads::Table { var, hits } if hits.len() > 1 => hits[coords[*var] as usize].clone(),
            AxisReads::Table { hits, .. } => hits[0].clone(),
            AxisReads::General(idx) => {
                let range = image(idx, &ranges_at(vars, coords), self.grid[k].extent(), self.edge);
                Hit::new(range, &self.grid[k])
            }
        }
    }

    /// The region needed at a tile, if it spans several blocks.
    pub(super) fn spanning_region(&self, vars: &[Axis], coords: &[u64]) -> Option<(RelId, BoxRegion)> {
        let mut spans = false;
        for k in 0..self.axes.len() {
            let tiles = match &self.axes[k] {
                AxisReads::Table { var, hits } if hits.len() > 1 => hits[coords[*var] as usize].tiles.clone(),
                _ => self.hit(k, vars, coords).tiles,
            };
            if tiles.is_empty() {
                return None;
            }
            spans |= tiles.end - tiles.start > 1;
        }
        spans.then(|| (self.relation, self.region(vars, coords)))
    }

    fn region(&self, vars: &[Axis], coords: &[u64]) -> BoxRegion {
        BoxRegion::from_ranges((0..self.axes.len()).map(|k| self.hit(k, vars, coords).range))
    }

    /// The operand at a tile; regions that span blocks must have been assembled.
    pub(super) fn operand(&self, partial: &mut Partial<'_>, vars: &[Axis], coords: &[u64]) -> Result<MaybeOperand> {
        let (mut block, mut whole) = (Vec::with_capacity(self.axes.len()), true);
        for k in 0..self.axes.len() {
            let (tiles, is_whole) = match &self.axes[k] {
                AxisReads::Table { var, hits } if hits.len() > 1 => {
                    let hit = &hits[coords[*var] as usize];
                    (hit.tiles.clone(), hit.whole)
                }
                _ => {
                    let hit = self.hit(k, vars, coords);
                    (hit.tiles, hit.whole)
                }
            };
            if tiles.is_empty() {
                return Ok(MaybeOperand::default());
            }
            block.push(tiles.start);
            whole &= is_whole;
        }
        if whole {
            return Ok(partial.whole(self.relation, self.grid.position(&block)));
        }
        partial.operand_for(self.relation, &self.region(vars, coords))
    }

    /// True if no tile ever needs more than one block.
    pub(super) fn never_spans(&self) -> bool {
        self.axes.iter().all(|axis| match axis {
            AxisReads::Table { hits, .. } => hits.iter().all(|hit| hit.tiles.end - hit.tiles.start <= 1),
            AxisReads::General(_) => false,
        })
    }
}
