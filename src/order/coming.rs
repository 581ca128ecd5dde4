//! The rest of a permutation, which a thread of the pool makes while the first indices are handed over.
//!
//! Owns the hand-over from that thread. Where the pool has no thread the caller that needs the rest makes it,
//! and so it does in a forked child, which touches no lock of its parent.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::remaining::Remaining;
use super::swaps::Swaps;
use crate::fork::Uninherited;
use crate::pool::{Pool, Source};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Condvar, Mutex, lock, wait_for};

/// Interval at which a caller that waits checks again.
const RECHECK: Duration = Duration::from_secs(1);

/// What a thread may wait for: see [`Rest::wait`].
pub type Rest = Uninherited<Making>;

/// The rest, which is made once.
#[derive(Debug)]
pub struct Making {
    skip: u32,
    swaps: Swaps,
    is_wanted: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
enum State {
    /// No thread has begun.
    Waiting,
    Running,
    Ready(Remaining),
    /// It has been taken, is no longer wanted, or could not be made.
    Over,
}

impl Making {
    /// Makes the rest while `is_wanted`, if no thread has begun to; returns false if one has.
    fn make(&self, is_wanted: impl Fn() -> bool) -> bool {
        let mut state = lock(&self.state);
        if !matches!(*state, State::Waiting) {
            return false;
        }
        *state = State::Running;
        drop(state);
        let make = || Remaining::after(self.skip, self.swaps.clone(), is_wanted);
        let made = catch_unwind(AssertUnwindSafe(make)).ok().flatten();
        *lock(&self.state) = made.map_or(State::Over, State::Ready);
        self.changed.notify_all();
        true
    }

    /// Makes the rest on a thread of the pool.
    fn make_ahead(&self) -> bool {
        let pool = Pool::global();
        self.make(|| self.is_wanted.load(Ordering::Relaxed) && !pool.is_closed())
    }

    fn is_running(&self) -> bool {
        matches!(*lock(&self.state), State::Running)
    }
}

impl Source for Rest {
    fn turn(&self) -> bool {
        self.get().is_some_and(Making::make_ahead)
    }

    fn threads(&self) -> usize {
        self.get().map_or(0, |making| {
            usize::from(matches!(
                *lock(&making.state),
                State::Waiting | State::Running
            ))
        })
    }

    fn active(&self) -> usize {
        self.get()
            .map_or(0, |making| usize::from(making.is_running()))
    }
}

impl Rest {
    /// Waits until the rest is there, for `limit` at most; returns false if it is not. Makes it here if no thread
    /// of the pool has begun to. True in a forked child, too, for which [`super::Permutation::draw`] makes it.
    pub fn wait(&self, limit: Duration) -> bool {
        let Some(making) = self.get() else {
            return true;
        };
        if making.make(|| true) {
            return true;
        }
        let mut state = lock(&making.state);
        if matches!(*state, State::Running) {
            state = wait_for(&making.changed, state, limit);
        }
        !matches!(*state, State::Running)
    }
}

/// The rest, for as long as it is needed.
#[derive(Debug)]
pub(super) struct Coming(Arc<Rest>);

impl Coming {
    /// Has the pool leave out the first `skip` indices.
    pub(super) fn begin(skip: u32, swaps: Swaps) -> Coming {
        let rest = Arc::new(Uninherited::new(Making {
            skip,
            swaps,
            is_wanted: AtomicBool::new(true),
            state: Mutex::new(State::Waiting),
            changed: Condvar::new(),
        }));
        // A closed pool has no threads: the rest is made by the caller that needs it.
        Pool::global().offer(rest.clone(), 1);
        Coming(rest)
    }

    /// Returns how many indices there will be.
    pub(super) fn left(&self) -> usize {
        let making = self.0.even_if_inherited();
        (making.swaps.len() - making.skip) as usize
    }

    /// Returns what to wait for.
    pub(super) fn rest(&self) -> &Arc<Rest> {
        &self.0
    }

    /// Returns the rest; waits for it, or makes it.
    pub(super) fn take(&self) -> Remaining {
        while !self.0.wait(RECHECK) {}
        let take = |making: &Making| mem::replace(&mut *lock(&making.state), State::Over);
        if let Some(State::Ready(remaining)) = self.0.get().map(take) {
            return remaining;
        }
        let making = self.0.even_if_inherited();
        let made = Remaining::after(making.skip, making.swaps.clone(), || true);
        made.expect("the rest, which is wanted")
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        if let Some(making) = self.0.get() {
            making.is_wanted.store(false, Ordering::Relaxed);
            Pool::global().unregister(&self.0);
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::explore;

    #[test]
    fn loom_the_rest_is_made_once_and_handed_over() {
        explore(Some(2), || {
            let coming = Coming::begin(3, Swaps::new(8, 1));
            assert_eq!(coming.take().left(), 5);
            drop(coming);
            Pool::global().shutdown(Duration::from_secs(1_000_000));
        });
    }
}
