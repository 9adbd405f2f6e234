//! Asking a run to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag shared by whoever may stop a run and the run itself, which looks at it before every task.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token nobody has used yet.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Asks every run that holds this token to stop. Tasks already running finish first. There is no way back.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// True once somebody has asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
