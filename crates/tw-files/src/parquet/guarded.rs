//! Code of the crate `parquet` on bytes from outside. It may panic on bytes that nobody would write.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use ::parquet::errors::ParquetError;

thread_local! {
    /// True while a panic of this thread is no news for anybody.
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs code of the crate; a panic is an error then, and is not printed.
///
/// What is printed about panics is the business of the process: the hook that was there is called for all others. It is found once, when this is first called; hooks that are set later
/// replace ours, as they would replace any other.
pub(super) fn guarded<T>(run: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                usual(info);
            }
        }));
    });
    let before = IS_QUIET.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(run));
    IS_QUIET.set(before);
    match result {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err("its bytes make no sense".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn panics_are_errors_that_nobody_hears_of() {
        let heard = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&heard);
        let name = std::thread::current().name().map(str::to_string);
        panic::set_hook(Box::new(move |_| {
            // Other tests may panic at the same time.
            if std::thread::current().name().map(str::to_string) == name {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }));
        let found: Result<(), String> = guarded(|| panic!("in the crate"));
        assert_eq!((found, heard.load(Ordering::Relaxed)), (Err("its bytes make no sense".into()), 0));
        assert!(panic::catch_unwind(|| panic!("in ours")).is_err());
        assert_eq!(heard.load(Ordering::Relaxed), 1);
    }
}
