//! Walking the points of a box.

use tw_ir::BoxRegion;

/// The points of a box in row-major order.
#[derive(Debug)]
pub struct Points {
    lo: Vec<u64>,
    hi: Vec<u64>,
    at: Vec<u64>,
    started: bool,
    empty: bool,
}

impl Points {
    /// The points of this box.
    pub fn new(bbox: &BoxRegion) -> Points {
        Points { lo: bbox.lo.clone(), hi: bbox.hi.clone(), at: bbox.lo.clone(), started: false, empty: bbox.is_empty() }
    }

    /// The next point.
    #[expect(clippy::should_implement_trait, reason = "what it gives is borrowed from it")]
    pub fn next(&mut self) -> Option<&[u64]> {
        if self.empty {
            return None;
        }
        if !self.started {
            self.started = true;
            return Some(&self.at);
        }
        for axis in (0..self.at.len()).rev() {
            self.at[axis] += 1;
            if self.at[axis] < self.hi[axis] {
                return Some(&self.at);
            }
            self.at[axis] = self.lo[axis];
        }
        self.empty = true;
        None
    }
}
