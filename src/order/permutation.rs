//! A random permutation, drawn piece by piece: torch's.
//!
//! Owns the choice of how to begin behind a number of indices. A few swaps are replayed. Where they are many, the
//! next indices are traced back through them, and a thread of the pool replays the swaps meanwhile. Where the pool
//! has no thread the caller that needs the rest makes it, and so it does in a forked child, which touches no lock of
//! its parent.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use std::vec::IntoIter;

use super::remaining::Remaining;
use super::swaps::Swaps;
use super::trace::trace;
use crate::fork::Uninherited;
use crate::pool::{Pool, Source};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Condvar, Mutex, lock, wait_for};

/// Swaps that are replayed at once, in some 10 ms.
const REPLAYED: u32 = 1 << 21;

/// Indices that are traced for each rank: what a loader asks for ahead of its first batch.
const TRACED: u32 = 1 << 15;

/// Indices that are traced, at most: more take as long as the replay.
const MOST_TRACED: u32 = 1 << 18;

/// Interval at which a caller that waits checks again.
const RECHECK: Duration = Duration::from_secs(1);

/// The part of a permutation that is not drawn yet.
#[derive(Debug)]
pub struct Permutation {
    /// The next indices.
    traced: IntoIter<u32>,
    behind: Behind,
}

/// The indices behind those that are traced.
#[derive(Debug)]
enum Behind {
    Nothing,
    Coming(Coming),
    Here(Remaining),
}

impl Permutation {
    /// The maximum length: torch draws longer permutations with twice as many bits.
    pub const MOST: u32 = u32::MAX / 20 - 1;

    /// Makes the first permutation of `0..len` that a generator seeded with `seed` draws, without its first
    /// `skip` indices. One of `ranks` indices is used. None above [`Permutation::MOST`].
    pub fn new(len: usize, seed: u64, skip: usize, ranks: u32) -> Option<Permutation> {
        let len = u32::try_from(len).ok().filter(|&len| len <= Self::MOST)?;
        let (skip, swaps) = (skip.min(len as usize) as u32, Swaps::new(len, seed));
        if skip >= REPLAYED {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            let count = TRACED.saturating_mul(ranks).min(MOST_TRACED);
            return Some(Self::traced(skip, count, swaps, threads));
        }
        Some(Permutation {
            traced: Vec::new().into_iter(),
            behind: Behind::Here(Remaining::after(skip, swaps, || true)?),
        })
    }

    /// Traces `count` indices behind the first `skip`, by threads.
    fn traced(skip: u32, count: u32, swaps: Swaps, threads: usize) -> Permutation {
        let end = swaps.len().min(skip + count);
        Permutation {
            traced: trace(swaps.clone(), skip..end, threads).into_iter(),
            behind: if end < swaps.len() {
                Behind::Coming(Coming::begin(end, swaps))
            } else {
                Behind::Nothing
            },
        }
    }

    /// Returns the number of indices that are not drawn yet.
    pub fn left(&self) -> usize {
        let behind = match &self.behind {
            Behind::Nothing => 0,
            Behind::Coming(coming) => coming.left(),
            Behind::Here(remaining) => remaining.left(),
        };
        self.traced.len() + behind
    }

    /// Returns what [`Permutation::draw`] would wait for, where it could not draw `count` indices now.
    pub fn awaited(&self, count: usize) -> Option<Arc<Rest>> {
        match &self.behind {
            Behind::Coming(coming) if count > self.traced.len() => Some(Arc::clone(coming.rest())),
            _ => None,
        }
    }

    /// Draws the next indices, as many as `out` holds or as are left.
    pub fn draw(&mut self, out: &mut [[u8; 8]]) {
        let count = out.len().min(self.left());
        let (first, out) = out[..count].split_at_mut(count.min(self.traced.len()));
        for (out, index) in first.iter_mut().zip(&mut self.traced) {
            *out = i64::from(index).to_ne_bytes();
        }
        if out.is_empty() {
            return;
        }
        if let Behind::Coming(coming) = &self.behind {
            self.behind = Behind::Here(coming.take());
        }
        if let Behind::Here(remaining) = &mut self.behind {
            remaining.draw(out);
        }
    }
}

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
    /// of the pool has begun to. True in a forked child, too, for which [`Permutation::draw`] makes it.
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

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use proptest::prelude::*;

    use super::{Permutation, Swaps};

    fn drawn(permutation: &mut Permutation, count: usize) -> Vec<i64> {
        let mut out = vec![[0; 8]; count.min(permutation.left())];
        permutation.draw(&mut out);
        out.into_iter().map(i64::from_ne_bytes).collect()
    }

    #[test]
    fn what_torch_draws_in_another_way_is_refused() {
        assert!(Permutation::new(Permutation::MOST as usize + 1, 0, 0, 1).is_none());
        assert!(Permutation::new(usize::MAX, 0, 0, 1).is_none());
    }

    proptest! {
        #[test]
        fn pieces_are_those_of_the_whole(
            len in 0_usize..2000,
            seed: u64,
            skip in 0_usize..2500,
            traced in 0_u32..900,
            pieces in prop::collection::vec(0_usize..900, 0..5),
        ) {
            let whole = drawn(&mut Permutation::new(len, seed, 0, 1).unwrap(), len);
            let mut sorted = whole.clone();
            sorted.sort_unstable();
            prop_assert!(sorted.iter().copied().eq((0..).take(len)));
            let skipped = skip.min(len);
            let swaps = Swaps::new(len as u32, seed);
            for mut permutation in [
                Permutation::new(len, seed, skip, 1).unwrap(),
                Permutation::traced(skipped as u32, traced, swaps, 2),
            ] {
                let mut joined = Vec::new();
                for &piece in pieces.iter().chain([&len]) {
                    joined.extend(drawn(&mut permutation, piece));
                }
                prop_assert_eq!(permutation.left(), 0);
                prop_assert_eq!(&joined, &whole[skipped..]);
            }
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
