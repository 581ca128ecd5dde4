//! The synchronisation types of the crate: std's, or loom's when the model checker runs
//! (`RUSTFLAGS="--cfg loom"`). Reference counts are std's in both: what is checked is who waits for whom.

pub use std::sync::Arc;

#[cfg(loom)]
pub use loom::sync::{Condvar, Mutex, MutexGuard};

#[cfg(not(loom))]
pub use std::sync::{Condvar, Mutex, MutexGuard};

/// Atomics, of std or of loom.
pub mod atomic {
    #[cfg(loom)]
    pub use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    #[cfg(not(loom))]
    pub use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
}

/// Locks `mutex`, also after a panic of another holder: every critical section of this crate
/// leaves its data consistent before it can panic.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
