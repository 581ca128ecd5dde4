//! Runs one call's work on the calling thread and on pool threads.
//!
//! Owns the wait: the caller works too, and returns only when no other thread works any more, so the work may
//! borrow from it. It completes even where no thread can be started. Refuses to know what the work is: each
//! thread that runs it must take its share of what is left.
#![allow(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use crate::pool::{Pool, Source};
use crate::sync::{Arc, Condvar, Mutex, lock, spin_until, wait};

/// Time for which the caller spins for the other threads: a wake-up takes longer than their last piece of work.
const LAST_PIECE: Duration = Duration::from_micros(50);

struct Shared {
    work: *const (),
    /// Runs the work. Its argument must point to the type that it was made for.
    call: unsafe fn(*const ()),
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Default)]
struct State {
    /// Number of threads that may still join.
    unjoined: usize,
    active: usize,
    panicked: bool,
}

// SAFETY: the work may be shared between threads, and a thread uses the pointer only while it is counted as
// active; `run` lets no thread join after it has set `unjoined` to 0, and returns only when none is
// active.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Source for Shared {
    fn turn(&self) -> bool {
        let mut state = lock(&self.state);
        if state.unjoined == 0 {
            return false;
        }
        state.unjoined -= 1;
        state.active += 1;
        drop(state);
        // SAFETY: this thread is counted as active, so the work lives; `call` was made for its type.
        let outcome = catch_unwind(AssertUnwindSafe(|| unsafe { (self.call)(self.work) }));
        let mut state = lock(&self.state);
        state.active -= 1;
        state.panicked |= outcome.is_err();
        drop(state);
        self.left.notify_one();
        true
    }

    fn threads(&self) -> usize {
        let state = lock(&self.state);
        state.unjoined + state.active
    }

    fn active(&self) -> usize {
        lock(&self.state).active
    }

    fn is_brief(&self) -> bool {
        true
    }
}

/// Runs `work` here and on up to `threads - 1` pool threads; returns when all of them are done.
///
/// # Panics
///
/// If the work panics, on any thread.
pub fn run<F: Fn() + Sync>(threads: usize, work: &F) {
    if threads <= 1 {
        return work();
    }
    let shared = Arc::new(Shared {
        work: (&raw const *work).cast(),
        call: call::<F>,
        state: Mutex::new(State {
            unjoined: threads - 1,
            ..State::default()
        }),
        left: Condvar::new(),
    });
    let pool = Pool::global();
    // A closed pool has no threads: all work is then done here.
    pool.offer(shared.clone(), threads - 1);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    lock(&shared.state).unjoined = 0;
    spin_until(LAST_PIECE, || lock(&shared.state).active == 0);
    let mut state = lock(&shared.state);
    while state.active > 0 {
        state = wait(&shared.left, state);
    }
    let panicked = state.panicked;
    drop(state);
    pool.unregister(&shared);
    if let Err(payload) = outcome {
        resume_unwind(payload);
    }
    assert!(
        !panicked,
        "a thread of the pool panicked at its share of the work"
    );
}

/// Runs work of type `F`.
///
/// # Safety
///
/// `work` points to a live `F`.
unsafe fn call<F: Fn()>(work: *const ()) {
    // SAFETY: by the caller's promise.
    unsafe { (*work.cast::<F>())() };
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn any_number_of_threads_does_all_of_the_work() {
        for threads in [1, 2, 5] {
            let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
            run(threads, &|| {
                while next.fetch_add(1, Ordering::Relaxed) < 1_000 {
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
            assert_eq!(done.into_inner(), 1_000);
        }
    }

    #[test]
    fn all_threads_are_done_when_it_returns() {
        let (begun, over) = (AtomicUsize::new(0), AtomicUsize::new(0));
        for _ in 0..20 {
            run(3, &|| {
                begun.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(2));
                over.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(begun.load(Ordering::Relaxed), over.load(Ordering::Relaxed));
        }
        assert!(over.into_inner() > 20, "the pool never helped");
    }

    #[test]
    fn calls_may_follow_at_any_interval() {
        let called = AtomicUsize::new(0);
        for micros in (0..1_500).map(|call| call % 150) {
            std::thread::sleep(Duration::from_micros(micros));
            let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
            run(2, &|| {
                called.fetch_add(1, Ordering::Relaxed);
                while next.fetch_add(1, Ordering::Relaxed) < 100 {
                    for _ in 0..50 {
                        std::hint::spin_loop(); // long enough for a thread to wake up
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
            assert_eq!(done.into_inner(), 100);
        }
        assert!(called.into_inner() > 1_500, "the pool never helped");
    }

    #[test]
    fn a_panic_on_any_thread_reaches_the_caller() {
        let here = std::thread::current().id();
        for is_here in [true, false] {
            let called = AtomicUsize::new(0);
            let work = || {
                called.fetch_add(1, Ordering::Relaxed);
                while called.load(Ordering::Relaxed) < 2 {
                    std::thread::yield_now();
                }
                assert_ne!(std::thread::current().id() == here, is_here, "on purpose");
            };
            let outcome = catch_unwind(AssertUnwindSafe(|| run(2, &work)));
            assert!(outcome.is_err());
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::atomic::{AtomicUsize, Ordering};
    use crate::sync::explore;
    use loom::cell::UnsafeCell;

    /// The data that the work borrows: loom fails if it is written while another thread reads it, or might.
    struct Borrowed(UnsafeCell<()>);

    // SAFETY: that it may be shared is what the model checks.
    unsafe impl Sync for Borrowed {}

    #[test]
    fn loom_no_thread_uses_a_borrow_after_the_return() {
        explore(Some(2), || {
            let (borrowed, calls) = (Borrowed(UnsafeCell::new(())), AtomicUsize::new(0));
            run(2, &|| {
                let borrowed = &borrowed; // the whole of it, which is `Sync`
                borrowed.0.with(|_| ());
                calls.fetch_add(1, Ordering::Relaxed);
            });
            borrowed.0.with_mut(|_| ());
            assert!((1..=2).contains(&calls.load(Ordering::Relaxed)));
            Pool::global().shutdown(Duration::from_secs(1_000_000));
        });
    }
}
