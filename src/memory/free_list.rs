//! Blocks that wait for reuse: one stack per size class, last in, first out.
//!
//! Owns the idle blocks, and the flag that a watcher will free them in time. Refuses to allocate, free or
//! time anything: callers do that, outside of the lock. Invariant: a block is in the list or has exactly one
//! owner; and `put` tells its caller if no watcher runs.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::sync::{Condvar, Mutex, lock};

/// Idle blocks of type `B`, by size class.
pub(super) struct FreeList<B> {
    shelves: Mutex<Shelves<B>>,
    stopped: Condvar,
}

struct Shelves<B> {
    /// Class in bytes → blocks, oldest first.
    blocks: BTreeMap<usize, Vec<Idle<B>>>,
    idle_bytes: usize,
    watched: bool,
    stopping: bool,
    retired: bool,
}

struct Idle<B> {
    block: B,
    since: Instant,
}

/// The outcome of [`FreeList::put`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Put<B> {
    /// The block is kept, and a watcher will find it.
    Kept,
    /// The block is kept, but no watcher runs: see [`FreeList::watch`].
    Unwatched,
    /// The list is retired and keeps nothing: the caller frees the block.
    Refused(B),
}

/// The next step of the watcher.
pub(super) enum Watch<B> {
    /// Free these, then call again.
    Expired(Vec<B>),
    /// Nothing expires for this long.
    Rest(Duration),
    /// End: nothing is idle, or the watch was stopped. The caller is no longer the watcher.
    Over,
}

impl<B> FreeList<B> {
    pub(super) fn new() -> Self {
        let shelves = Shelves {
            blocks: BTreeMap::new(),
            idle_bytes: 0,
            watched: false,
            stopping: false,
            retired: false,
        };
        Self {
            shelves: Mutex::new(shelves),
            stopped: Condvar::new(),
        }
    }

    /// Takes the most recently used block of this class, the likeliest to be in a cache. Without one, takes a
    /// block of the next larger class that has any, up to twice as large, so that batches of changing shape
    /// reuse memory too.
    pub(super) fn take(&self, class: usize) -> Option<B> {
        let mut shelves = lock(&self.shelves);
        let near = class..=class.saturating_mul(2);
        let mut near = shelves.blocks.range_mut(near);
        let (class, idle) = near.find_map(|(&class, shelf)| Some((class, shelf.pop()?)))?;
        shelves.idle_bytes -= class;
        Some(idle.block)
    }

    /// Keeps a block of `class` bytes for reuse.
    pub(super) fn put(&self, class: usize, block: B, now: Instant) -> Put<B> {
        let mut shelves = lock(&self.shelves);
        if shelves.retired {
            return Put::Refused(block);
        }
        shelves
            .blocks
            .entry(class)
            .or_default()
            .push(Idle { block, since: now });
        shelves.idle_bytes += class;
        if shelves.watched {
            Put::Kept
        } else {
            Put::Unwatched
        }
    }

    /// Makes the caller the watcher; returns false if there is one already or nothing is idle.
    pub(super) fn watch(&self) -> bool {
        let mut shelves = lock(&self.shelves);
        let wanted = !shelves.watched && !shelves.stopping && shelves.idle_bytes > 0;
        shelves.watched |= wanted;
        wanted
    }

    /// Ends a watch that could not start.
    pub(super) fn unwatch(&self) {
        lock(&self.shelves).watched = false;
    }

    /// Does one step of a watch: takes out the blocks that have been idle for `lifetime` or longer.
    pub(super) fn step(&self, now: Instant, lifetime: Duration) -> Watch<B> {
        let mut shelves = lock(&self.shelves);
        if shelves.stopping || shelves.idle_bytes == 0 {
            shelves.watched = false;
            return Watch::Over;
        }
        let expired = shelves.expire(now, lifetime);
        if !expired.is_empty() {
            return Watch::Expired(expired);
        }
        let oldest = shelves
            .blocks
            .values()
            .filter_map(|shelf| shelf.first())
            .map(|b| b.since);
        let age = oldest
            .min()
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        Watch::Rest(lifetime.saturating_sub(age))
    }

    /// Sleeps for `time`, or until the watch is stopped.
    pub(super) fn rest(&self, time: Duration) {
        let shelves = lock(&self.shelves);
        if !shelves.stopping {
            drop(self.stopped.wait_timeout(shelves, time));
        }
    }

    /// Asks the watcher to end; no watch can start until [`Self::resume`].
    pub(super) fn stop(&self) {
        lock(&self.shelves).stopping = true;
        self.stopped.notify_all();
    }

    /// Lets a watch start again.
    pub(super) fn resume(&self) {
        lock(&self.shelves).stopping = false;
    }

    /// Keeps no block from now on.
    pub(super) fn retire(&self) {
        lock(&self.shelves).retired = true;
    }

    /// Takes out every block.
    pub(super) fn drain(&self) -> Vec<B> {
        let mut shelves = lock(&self.shelves);
        shelves.idle_bytes = 0;
        let blocks = std::mem::take(&mut shelves.blocks);
        blocks
            .into_values()
            .flatten()
            .map(|idle| idle.block)
            .collect()
    }

    /// Returns the size of all idle blocks, in bytes.
    pub(super) fn idle_bytes(&self) -> usize {
        lock(&self.shelves).idle_bytes
    }
}

impl<B> Shelves<B> {
    fn expire(&mut self, now: Instant, lifetime: Duration) -> Vec<B> {
        let mut expired = Vec::new();
        for (class, shelf) in &mut self.blocks {
            let is_old = |idle: &Idle<B>| now.saturating_duration_since(idle.since) >= lifetime;
            let old = shelf.iter().take_while(|idle| is_old(idle)).count();
            self.idle_bytes -= class * old;
            expired.extend(shelf.drain(..old).map(|idle| idle.block));
        }
        self.blocks.retain(|_, shelf| !shelf.is_empty());
        expired
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_last_block_of_a_class_comes_first() {
        let list = FreeList::new();
        let now = Instant::now();
        for (class, block) in [(8, "a"), (8, "b"), (16, "c")] {
            assert_eq!(list.put(class, block, now), Put::Unwatched);
        }
        assert_eq!(list.idle_bytes(), 32);
        assert_eq!(list.take(8), Some("b"));
        assert_eq!(list.take(8), Some("a"));
        assert_eq!(list.take(7), None);
        assert_eq!(list.idle_bytes(), 16);
        assert_eq!(list.drain(), ["c"]);
        assert_eq!(list.idle_bytes(), 0);
    }

    #[test]
    fn a_class_up_to_twice_as_large_stands_in() {
        let list = FreeList::new();
        for (class, block) in [(16, "twice"), (12, "next"), (17, "more")] {
            list.put(class, block, Instant::now());
        }
        assert_eq!(list.take(8), Some("next"));
        assert_eq!(list.take(8), Some("twice"));
        assert_eq!(list.take(8), None);
        assert_eq!(list.idle_bytes(), 17);
    }

    #[test]
    fn only_blocks_idle_for_the_lifetime_expire() {
        let list = FreeList::new();
        let start = Instant::now();
        list.put(8, "old", start);
        list.put(16, "older", start);
        list.put(8, "new", start + SECOND);
        assert!(list.watch());
        assert!(!list.watch());
        assert!(matches!(list.step(start, 2 * SECOND), Watch::Rest(rest) if rest == 2 * SECOND));
        let Watch::Expired(expired) = list.step(start + 2 * SECOND, 2 * SECOND) else {
            panic!("nothing expired");
        };
        assert_eq!(expired, ["old", "older"]);
        let then = start + 2 * SECOND;
        assert!(matches!(list.step(then, 2 * SECOND), Watch::Rest(rest) if rest == SECOND));
        assert_eq!(list.take(8), Some("new"));
        assert!(matches!(list.step(then, 2 * SECOND), Watch::Over));
        assert_eq!(list.put(8, "next", then), Put::Unwatched);
        assert!(list.watch());
    }

    #[test]
    fn a_stopped_list_is_not_watched_until_resumed() {
        let list = FreeList::new();
        list.put(8, 1, Instant::now());
        assert!(list.watch());
        list.stop();
        list.rest(Duration::MAX);
        assert!(matches!(list.step(Instant::now(), SECOND), Watch::Over));
        assert!(!list.watch());
        list.resume();
        assert!(list.watch());
    }

    #[test]
    fn a_retired_list_keeps_nothing() {
        let list = FreeList::new();
        list.put(8, 1, Instant::now());
        list.retire();
        assert_eq!(list.put(8, 2, Instant::now()), Put::Refused(2));
        assert_eq!(list.take(8), Some(1));
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::{explore, thread};
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicUsize, Ordering};

    /// A block that counts its owners.
    type Held = Arc<AtomicUsize>;

    fn hold(block: &Held) {
        assert_eq!(block.fetch_add(1, Ordering::Relaxed), 0, "two owners");
    }

    fn release(list: &FreeList<Held>, block: Held) -> Put<Held> {
        block.fetch_sub(1, Ordering::Relaxed);
        list.put(1, block, Instant::now())
    }

    /// Expires everything until the watch is over; returns the number of blocks.
    fn watch_to_the_end(list: &FreeList<Held>) -> usize {
        let mut freed = 0;
        loop {
            match list.step(Instant::now(), Duration::ZERO) {
                Watch::Expired(blocks) => {
                    blocks.iter().for_each(hold);
                    freed += blocks.len();
                }
                Watch::Rest(_) => unreachable!("everything expires at once"),
                Watch::Over => return freed,
            }
        }
    }

    #[test]
    fn loom_a_block_has_one_owner() {
        explore(None, || {
            let list = Arc::new(FreeList::new());
            for _ in 0..2 {
                list.put(1, Held::default(), Instant::now());
            }
            let threads = [(); 2].map(|()| {
                let list = Arc::clone(&list);
                thread::spawn(move || {
                    for _ in 0..2 {
                        let block = list.take(1).unwrap();
                        hold(&block);
                        release(&list, block);
                    }
                })
            });
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(list.drain().len(), 2);
        });
    }

    #[test]
    fn loom_nothing_stays_idle_unwatched() {
        explore(None, || {
            let list = Arc::new(FreeList::new());
            let threads = [(); 2].map(|()| {
                let list = Arc::clone(&list);
                thread::spawn(move || {
                    let block = Held::new(AtomicUsize::new(1));
                    match release(&list, block) {
                        // As the slab pool does it: the thread that becomes the watcher watches to the end.
                        Put::Unwatched if list.watch() => watch_to_the_end(&list),
                        _ => 0,
                    }
                })
            });
            let freed: usize = threads.map(|thread| thread.join().unwrap()).iter().sum();
            assert_eq!(freed, 2);
            assert_eq!(list.idle_bytes(), 0);
        });
    }

    #[test]
    fn loom_a_stop_ends_the_watch_and_loses_nothing() {
        explore(None, || {
            let list = Arc::new(FreeList::new());
            list.put(1, Held::default(), Instant::now());
            assert!(list.watch());
            let watcher = thread::spawn({
                let list = Arc::clone(&list);
                move || {
                    // Nothing expires: only the stop ends it.
                    loop {
                        match list.step(Instant::now(), Duration::MAX) {
                            Watch::Expired(_) => unreachable!("nothing expires"),
                            Watch::Rest(time) => list.rest(time),
                            Watch::Over => return,
                        }
                    }
                }
            });
            list.stop();
            watcher.join().unwrap();
            list.resume();
            assert_eq!(list.drain().len(), 1);
        });
    }
}
