//! Inner loops over dense levels.

use tw_sparse::loops::{LocalId, LoopExpr, LoopStmt};

use super::Translation;

/// Counts how often each local is named.
pub(super) fn count_mentions(_stmt: &LoopStmt, _mentions: &mut [usize]) {}

impl Translation<'_> {
    pub(super) fn dense_loop(&mut self, _local: LocalId, _from: &LoopExpr, _to: &LoopExpr, _body: &[LoopStmt]) -> bool {
        false
    }
}
