//! Cancellation of the computations of one thread.

use std::cell::RefCell;

use tw_run::CancelToken;

thread_local! {
    static OWN: RefCell<Option<CancelToken>> = const { RefCell::new(None) };
}

/// Runs code whose computations stop soon after the token is cancelled. Other runs of the same session go on.
///
/// ```
/// use tilewright::{CancelToken, Session, until_cancelled};
/// let session = Session::new();
/// let token = CancelToken::new();
/// token.cancel();
/// let x = session.arange(0.0, 10.0, 1.0)?;
/// assert!(until_cancelled(&token, || x.compute()).is_err());
/// assert!(x.compute().is_ok());
/// # Ok::<(), tilewright::Error>(())
/// ```
pub fn until_cancelled<T>(token: &CancelToken, f: impl FnOnce() -> T) -> T {
    struct Restore(Option<CancelToken>);
    impl Drop for Restore {
        fn drop(&mut self) {
            OWN.set(self.0.take());
        }
    }
    let _restore = Restore(OWN.replace(Some(token.clone())));
    f()
}

/// The token of a run that starts now: cancelled with the session's, or with the one of this thread.
pub(crate) fn token_of_run(session: &CancelToken) -> CancelToken {
    OWN.with_borrow(|own| own.as_ref().map_or_else(|| session.clone(), |own| own.or(session)))
}
