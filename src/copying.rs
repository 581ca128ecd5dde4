//! Copies memory on pool threads in the background, before the copy is needed.
//!
//! Owns the wait: a thread that needs the copy helps to complete it, so it completes even where no thread can
//! be started. Refuses to know what is copied. Invariant: after [`Copying::wait`] has returned, or the value
//! is dropped, no thread touches the memory.

use crate::fork::Uninherited;
use crate::memory::Transfer;
use crate::pool::{Pool, Source};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Condvar, Mutex, lock, wait};

/// More threads than this do not copy faster: memory is the limit.
const THREADS: usize = 4;

#[derive(Debug)]
struct Shared {
    transfer: Transfer,
    active: AtomicUsize,
    lock: Mutex<()>,
    over: Condvar,
}

impl Source for Shared {
    fn turn(&self) -> bool {
        self.active.fetch_add(1, Ordering::Relaxed);
        let worked = self.transfer.step();
        self.active.fetch_sub(1, Ordering::Relaxed);
        if worked && self.transfer.is_over() {
            // The waiting thread holds the lock from its last check until it sleeps; taking it here loses no
            // wake-up.
            drop(lock(&self.lock));
            self.over.notify_all();
        }
        worked
    }

    fn threads(&self) -> usize {
        THREADS
    }

    fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }
}

/// A copy in progress.
#[derive(Debug)]
pub struct Copying(Uninherited<Arc<Shared>>);

impl Copying {
    /// Starts copying.
    pub fn start(transfer: Transfer) -> Self {
        let pieces = transfer.pieces();
        let shared = Arc::new(Shared {
            transfer,
            active: AtomicUsize::new(0),
            lock: Mutex::new(()),
            over: Condvar::new(),
        });
        // A closed pool has no threads: `wait` makes the copy.
        Pool::global().offer(shared.clone(), pieces.min(THREADS));
        Self(Uninherited::new(shared))
    }

    /// Helps to copy, and waits until everything is copied.
    pub fn wait(&self) {
        let Some(shared) = self.0.get() else {
            return; // in a forked child: no thread copies there
        };
        while shared.transfer.step() {}
        shared.end();
    }
}

impl Shared {
    /// Waits for pieces that other threads have begun.
    fn end(self: &Arc<Self>) {
        let mut guard = lock(&self.lock);
        while !self.transfer.is_over() {
            guard = wait(&self.over, guard);
        }
        drop(guard);
        Pool::global().unregister(self);
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        if let Some(shared) = self.0.get() {
            shared.transfer.cancel();
            shared.end();
        }
    }
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_complete_after_a_wait_and_stops_at_a_drop() {
        let from = vec![7_u8; 9 << 20];
        for whole in [true, false] {
            let mut to = vec![0_u8; from.len()];
            let (source, target) = (from.as_ptr(), to.as_mut_ptr());
            let block = (source.expose_provenance(), target.expose_provenance());
            // SAFETY: both vectors outlive the copying.
            #[allow(unsafe_code)]
            let transfer = unsafe { Transfer::new([(block.0, block.1, from.len())]) };
            let copying = Copying::start(transfer);
            if whole {
                copying.wait();
                assert_eq!(to, from);
            }
            drop(copying);
            let left = to.clone();
            assert_eq!(left, to);
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::explore;
    use std::time::Duration;

    /// Copies two blocks, on up to two threads; `end` waits for the copy or drops it.
    fn check(end: impl Fn(Copying) + Send + Sync + 'static, is_whole: bool) {
        explore(Some(2), move || {
            let from = [7_u8, 8];
            let mut to = [0_u8; 2];
            let (source, target) = (from.as_ptr(), to.as_mut_ptr());
            let (source, target) = (source.expose_provenance(), target.expose_provenance());
            let blocks = [0, 1].map(|at| (source + at, target + at, 1));
            // SAFETY: both arrays outlive the copying, and nothing else uses them until it ends.
            #[allow(unsafe_code)]
            let transfer = unsafe { Transfer::new(blocks) };
            end(Copying::start(transfer));
            let left = to;
            assert!(left == from || !is_whole);
            Pool::global().shutdown(Duration::from_secs(1_000_000));
            assert_eq!(to, left, "copied after it was over");
        });
    }

    #[test]
    fn loom_a_copy_is_complete_after_a_wait() {
        check(|copying| copying.wait(), true);
    }

    #[test]
    fn loom_nothing_is_copied_after_a_drop() {
        check(drop, false);
    }
}
