//! The synchronisation types of the crate: std's, or loom's under the model checker (`RUSTFLAGS="--cfg
//! loom"`). Reference counts are std's in both: loom checks which thread waits for which.

pub use std::sync::Arc;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

#[cfg(loom)]
pub use loom::{
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};

#[cfg(not(loom))]
pub use std::{
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};

/// Pauses of the CPU between two checks: half a microsecond, so that spinning does not slow the writer down.
const PAUSES: usize = 32;

/// Atomics, of std or of loom.
pub mod atomic {
    #[cfg(loom)]
    pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
    #[cfg(not(loom))]
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
}

/// Spins for at most `limit` until `is_so` holds; returns true if it does. Checks at least once; under loom,
/// which has no clock, exactly once.
pub fn spin_until(limit: Duration, is_so: impl Fn() -> bool) -> bool {
    let limit = if cfg!(loom) { Duration::ZERO } else { limit };
    let start = Instant::now();
    loop {
        if is_so() {
            return true;
        }
        if start.elapsed() >= limit {
            return false;
        }
        for _ in 0..PAUSES {
            std::hint::spin_loop();
        }
    }
}

/// Locks `mutex`, even if a holder panicked: every critical section of this crate leaves its data consistent
/// before it can panic.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a signal; as [`lock`], even if a holder panicked.
pub fn wait<'a, T>(signal: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    signal.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a signal for `time` at most.
pub fn wait_for<'a, T>(
    signal: &Condvar,
    guard: MutexGuard<'a, T>,
    time: Duration,
) -> MutexGuard<'a, T> {
    let waited = signal.wait_timeout(guard, time);
    waited.unwrap_or_else(PoisonError::into_inner).0
}

/// Runs a model in every interleaving of its threads, or in those with at most `preemptions` preemptions;
/// prints their number.
#[cfg(all(test, loom))]
#[allow(clippy::print_stdout)]
pub fn explore(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    builder.check(move || {
        counted.fetch_add(1, atomic::Ordering::Relaxed);
        model();
    });
    println!("interleavings: {}", count.load(atomic::Ordering::Relaxed));
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::atomic::{AtomicUsize, Ordering};
    use super::*;

    #[test]
    fn spinning_ends_when_it_is_so_or_too_late() {
        let checks = AtomicUsize::new(0);
        let third = || checks.fetch_add(1, Ordering::Relaxed) == 2;
        assert!(spin_until(Duration::from_secs(60), third));
        assert_eq!(checks.load(Ordering::Relaxed), 3);
        assert!(spin_until(Duration::ZERO, || true), "not checked once");
        let (start, limit) = (Instant::now(), Duration::from_millis(2));
        assert!(!spin_until(limit, || false));
        assert!(start.elapsed() >= limit);
    }
}
