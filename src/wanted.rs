//! Lets long work notice that its stream was cancelled.
//!
//! Owns one flag per thread: that of the stream for which it works now. Without one, all work is wanted.

use std::cell::RefCell;

use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static CANCELLED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Restores the previous flag, even after a panic.
struct Before(Option<Arc<AtomicBool>>);

impl Drop for Before {
    fn drop(&mut self) {
        CANCELLED.set(self.0.take());
    }
}

/// Runs `body`, whose results are wanted until `cancelled` is set.
pub(crate) fn until<T>(cancelled: &Arc<AtomicBool>, body: impl FnOnce() -> T) -> T {
    let before = Before(CANCELLED.replace(Some(cancelled.clone())));
    let made = body();
    drop(before);
    made
}

/// Returns false once the stream for which this thread works is cancelled.
pub(crate) fn is_wanted() -> bool {
    let is_cancelled = CANCELLED.try_with(|flag| {
        let flag = flag.try_borrow().ok()?;
        flag.as_ref().map(|flag| flag.load(Ordering::Relaxed))
    });
    !matches!(is_cancelled, Ok(Some(true)))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn work_is_wanted_until_its_own_flag_is_set() {
        let (outer, inner) = (
            Arc::new(AtomicBool::new(true)),
            Arc::new(AtomicBool::new(false)),
        );
        assert!(is_wanted());
        until(&outer, || {
            assert!(!is_wanted());
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                until(&inner, || {
                    assert!(is_wanted());
                    inner.store(true, Ordering::Relaxed);
                    assert!(!is_wanted());
                    inner.store(false, Ordering::Relaxed);
                    std::panic::resume_unwind(Box::new("torn"));
                });
            }));
            assert!(panicked.is_err() && !is_wanted());
        });
        assert!(is_wanted());
    }
}
