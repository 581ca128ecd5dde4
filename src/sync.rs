//! The synchronisation types of the crate: std's, or loom's when the model checker runs
//! (`RUSTFLAGS="--cfg loom"`). Reference counts are std's in both: what is checked is who waits for whom.

pub use std::sync::Arc;
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

/// Pauses of the processor from one look to the next: half a microsecond, so that who writes is not held up.
const LOOKS_AWAY: usize = 32;

/// Atomics, of std or of loom.
pub mod atomic {
    #[cfg(loom)]
    pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
    #[cfg(not(loom))]
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
}

/// Looks again and again for at most `limit` whether something is so, without sleeping; returns whether it is.
/// The model checker, which knows no time, looks once.
pub fn is_soon(limit: Duration, is_so: impl Fn() -> bool) -> bool {
    let limit = if cfg!(loom) { Duration::ZERO } else { limit };
    let began = Instant::now();
    loop {
        if is_so() {
            return true;
        }
        if began.elapsed() >= limit {
            return false;
        }
        for _ in 0..LOOKS_AWAY {
            std::hint::spin_loop();
        }
    }
}

/// Locks `mutex`, also after a panic of another holder: every critical section of this crate
/// leaves its data consistent before it can panic.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Runs a model in every interleaving of its threads, or those with at most so many preemptions, and prints how
/// many there were.
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
    fn it_is_looked_until_it_is_so_or_too_late() {
        let looks = AtomicUsize::new(0);
        let third = || looks.fetch_add(1, Ordering::Relaxed) == 2;
        assert!(is_soon(Duration::from_secs(60), third));
        assert_eq!(looks.load(Ordering::Relaxed), 3);
        assert!(
            is_soon(Duration::ZERO, || true),
            "it is looked at least once"
        );
        let (began, limit) = (Instant::now(), Duration::from_millis(2));
        assert!(!is_soon(limit, || false));
        assert!(began.elapsed() >= limit);
    }
}
