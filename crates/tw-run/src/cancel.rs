//! Cancellation of a run.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::sync::AtomicBool;

/// A flag that stops a run. The run checks it before each task.
#[derive(Clone, Debug, Default)]
pub struct CancelToken {
    flag: Arc<AtomicBool>,
    also: Vec<CancelToken>,
}

impl CancelToken {
    /// A new token.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Asks every run that holds this token to stop. Tasks already running finish first. There is no way back.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Release);
    }

    /// True once cancellation was requested.
    pub fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::Acquire) || self.also.iter().any(CancelToken::is_cancelled)
    }

    /// A token that is cancelled with this one, or with another. Cancelling it leaves the other alone.
    ///
    /// ```
    /// use tw_run::CancelToken;
    /// let (one, other) = (CancelToken::new(), CancelToken::new());
    /// let either = one.or(&other);
    /// other.cancel();
    /// assert!(either.is_cancelled() && !one.is_cancelled());
    /// assert!(either.or(&CancelToken::new()).is_cancelled());
    /// ```
    pub fn or(&self, other: &CancelToken) -> CancelToken {
        let also = self.also.iter().chain([other]).cloned().collect();
        CancelToken { flag: self.flag.clone(), also }
    }
}
