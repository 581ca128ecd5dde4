//! The row groups that were decoded last, up to a number of bytes.

use std::collections::HashMap;

use super::part::Decoded;
use crate::error::Result;
use crate::sync::{Arc, Condvar, Mutex, lock};

/// Bytes that threads may need while they decode, also where fewer are kept.
const AT_ONCE: usize = 1 << 30;

/// A column of a row group: the number of the one among the columns in use, and of the other among all.
pub(super) type Key = (usize, usize);

/// The decoded row groups that threads share.
#[derive(Debug, Default)]
pub(super) struct Cache {
    state: Mutex<State>,
    made: Condvar,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<Key, Entry>,
    /// Of all entries.
    bytes: usize,
    /// Bytes that are kept elsewhere, and count.
    reserved: usize,
    /// Bytes that threads need which decode now.
    making: usize,
    /// Counts uses.
    clock: u64,
}

#[derive(Debug)]
enum Entry {
    /// A thread decodes it.
    Making,
    Ready {
        decoded: Arc<Decoded>,
        used: u64,
    },
}

/// The treatment of a row group that another thread decodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
    /// It is left to that thread for now.
    Leave,
    /// It is waited for.
    Wait,
}

/// Takes the mark of a decoding away, also if that panicked.
struct Making<'a> {
    cache: &'a Cache,
    key: Key,
    bytes: usize,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.cache.state);
        if let Some(Entry::Making) = state.entries.get(&self.key) {
            state.entries.remove(&self.key);
        }
        state.making -= self.bytes;
        drop(state);
        self.cache.made.notify_all();
    }
}

impl Cache {
    /// Returns a row group that is here.
    pub(super) fn peek(&self, key: Key) -> Option<Arc<Decoded>> {
        lock(&self.state).find(key)
    }

    /// Returns a row group; if it is not here, `make` decodes it, which needs about `bytes`, unless another
    /// thread does, or others need so much that this one has to wait for them. None: it is left for now.
    pub(super) fn get(
        &self,
        key: Key,
        limit: usize,
        bytes: usize,
        other: Other,
        make: impl FnOnce() -> Result<Decoded>,
    ) -> Result<Option<Arc<Decoded>>> {
        let bytes = bytes.min(isize::MAX as usize >> 16); // more than there is, as is the sum of some
        let most = limit.max(AT_ONCE);
        let mut state = lock(&self.state);
        loop {
            if let Some(decoded) = state.find(key) {
                return Ok(Some(decoded));
            }
            let fits = state.making == 0 || state.making + bytes <= most;
            if fits && !state.entries.contains_key(&key) {
                break;
            }
            if other == Other::Leave {
                return Ok(None);
            }
            let waited = self.made.wait(state);
            state = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        state.entries.insert(key, Entry::Making);
        state.making += bytes;
        state.evict(limit, None);
        drop(state);
        let cache = self;
        let making = Making { cache, key, bytes };
        let decoded = Arc::new(make()?);
        lock(&self.state).keep(key, decoded.clone());
        drop(making);
        lock(&self.state).evict(limit, Some(key));
        Ok(Some(decoded))
    }

    /// Counts bytes that are kept elsewhere, if they fit.
    pub(super) fn reserve(&self, bytes: usize, limit: usize) -> bool {
        let mut state = lock(&self.state);
        let fits = state
            .reserved
            .checked_add(bytes)
            .is_some_and(|all| all <= limit);
        if fits {
            state.reserved += bytes;
            state.evict(limit, None);
        }
        fits
    }

    /// Ends a reservation.
    pub(super) fn release(&self, bytes: usize) {
        let mut state = lock(&self.state);
        state.reserved = state.reserved.saturating_sub(bytes); // a forked child begins with none
    }

    /// Drops the row groups of a column.
    pub(super) fn forget(&self, column: usize) {
        let mut state = lock(&self.state);
        let mut freed = 0;
        state.entries.retain(|key, entry| match entry {
            Entry::Ready { decoded, .. } if key.0 == column => {
                freed += decoded.bytes();
                false
            }
            _ => true,
        });
        state.bytes -= freed;
    }
}

impl State {
    fn find(&mut self, key: Key) -> Option<Arc<Decoded>> {
        self.clock += 1;
        match self.entries.get_mut(&key) {
            Some(Entry::Ready { decoded, used }) => {
                *used = self.clock;
                Some(decoded.clone())
            }
            _ => None,
        }
    }

    fn keep(&mut self, key: Key, decoded: Arc<Decoded>) {
        self.clock += 1;
        self.bytes += decoded.bytes();
        let used = self.clock;
        self.entries.insert(key, Entry::Ready { decoded, used });
    }

    /// Drops what was used longest ago until the rest fits, but for `kept`.
    fn evict(&mut self, limit: usize, kept: Option<Key>) {
        let others = self.reserved.saturating_add(self.making);
        while self.bytes.saturating_add(others) > limit {
            let ready = self.entries.iter().filter_map(|(&key, entry)| match entry {
                Entry::Ready { used, decoded } if Some(key) != kept => {
                    Some((*used, key, decoded.bytes()))
                }
                _ => None,
            });
            let Some((_, key, bytes)) = ready.min() else {
                break;
            };
            self.entries.remove(&key);
            self.bytes -= bytes;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::memory::{Dtype, View};
    use crate::parquet::part::Part;
    use crate::sync::atomic::{AtomicUsize, Ordering};

    fn decoded(bytes: usize) -> Result<Decoded> {
        let part = Part {
            values: View::owned(vec![0_u8; bytes]),
            dtype: Dtype::UInt8,
            offsets: None,
        };
        part.decoded()
    }

    #[test]
    fn a_row_group_is_decoded_once_whoever_asks() {
        let (cache, made) = (Cache::default(), AtomicUsize::new(0));
        let ask = || {
            for number in 0..50 {
                let make = || {
                    made.fetch_add(1, Ordering::Relaxed);
                    std::thread::yield_now();
                    decoded(10)
                };
                let got = cache.get((0, number), 10_000, 10, Other::Wait, make);
                assert!(got.is_ok_and(|got| got.is_some()));
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(ask);
            }
        });
        assert_eq!(made.load(Ordering::Relaxed), 50);
    }

    #[test]
    fn what_was_used_longest_ago_goes_first_and_one_stays() {
        let cache = Cache::default();
        let get = |number, bytes, limit| {
            let got = cache.get((0, number), limit, bytes, Other::Wait, || decoded(bytes));
            assert!(got.is_ok());
        };
        get(0, 40, 100);
        get(1, 40, 100);
        assert!(cache.peek((0, 0)).is_some());
        get(2, 40, 100);
        assert!(cache.peek((0, 1)).is_none() && cache.peek((0, 0)).is_some());
        get(3, 400, 100);
        let left: Vec<_> = (0..4)
            .filter(|&number| cache.peek((0, number)).is_some())
            .collect();
        assert_eq!(left, [3]);
        assert!(cache.reserve(100, 100) && !cache.reserve(1, 100));
        assert!(
            cache.peek((0, 3)).is_none(),
            "a reservation takes its place"
        );
    }

    #[test]
    fn another_thread_may_try_after_a_failure_or_a_panic() {
        let cache = Cache::default();
        let failed = cache.get((0, 0), 100, 1, Other::Leave, || Err(Error::Abandoned));
        assert!(failed.is_err());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = cache.get((0, 0), 100, 1, Other::Leave, || panic!("torn"));
        }));
        assert!(panicked.is_err());
        let got = cache.get((0, 0), 100, 1, Other::Leave, || decoded(1));
        assert!(got.is_ok_and(|got| got.is_some()));
        cache.forget(0);
        assert!(cache.peek((0, 0)).is_none());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::error::Error;
    use crate::memory::{Dtype, View};
    use crate::parquet::part::Part;
    use crate::sync::atomic::{AtomicUsize, Ordering};
    use crate::sync::{explore, thread};

    const KEY: Key = (0, 0);
    const BYTES: usize = 10;

    fn decoded() -> Result<Decoded> {
        let part = Part {
            values: View::owned(vec![0_u8; BYTES]),
            dtype: Dtype::UInt8,
            offsets: None,
        };
        part.decoded()
    }

    /// Two threads ask for one row group, and decode it up to `failures` times in vain; returns who got it, and
    /// how often it was decoded.
    fn ask(other: Other, failures: usize) -> ([Result<bool>; 2], usize) {
        let shared = Arc::new((Cache::default(), AtomicUsize::new(0)));
        let ask = move |shared: &(Cache, AtomicUsize)| {
            let make = || match shared.1.fetch_add(1, Ordering::Relaxed) {
                before if before < failures => Err(Error::Abandoned),
                _ => decoded(),
            };
            let got = shared.0.get(KEY, BYTES, BYTES, other, make);
            got.map(|got| got.is_some())
        };
        let thread = thread::spawn({
            let shared = Arc::clone(&shared);
            move || ask(&shared)
        });
        let here = ask(&shared);
        let got = [here, thread.join().unwrap()];
        let made = shared.1.load(Ordering::Relaxed);
        assert_eq!(shared.0.peek(KEY).is_some(), made > failures);
        (got, made)
    }

    #[test]
    fn loom_a_row_group_is_decoded_once() {
        explore(None, || {
            let (got, made) = ask(Other::Wait, 0);
            assert!(matches!(got, [Ok(true), Ok(true)]));
            assert_eq!(made, 1);
        });
    }

    #[test]
    fn loom_a_row_group_is_decoded_by_who_waited_for_a_failure() {
        explore(None, || {
            let (got, made) = ask(Other::Wait, 1);
            assert_eq!(made, 2);
            assert_eq!(got.iter().filter(|got| got.is_err()).count(), 1);
        });
    }

    #[test]
    fn loom_nobody_waits_who_leaves_it() {
        explore(None, || {
            let (got, made) = ask(Other::Leave, 0);
            assert!(got.iter().any(|got| matches!(got, Ok(true))));
            assert_eq!(made, 1);
        });
    }

    /// Kept and reserved bytes fit together, in any order.
    #[test]
    fn loom_a_reservation_and_a_row_group_fit_together() {
        explore(None, || {
            let cache = Arc::new(Cache::default());
            let thread = thread::spawn({
                let cache = Arc::clone(&cache);
                move || cache.reserve(BYTES, BYTES)
            });
            cache.get(KEY, BYTES, BYTES, Other::Wait, decoded).unwrap();
            let is_reserved = thread.join().unwrap();
            let state = lock(&cache.state);
            assert!(is_reserved && state.reserved == BYTES);
            assert!(state.bytes == 0 || state.entries.len() == 1, "one stays");
        });
    }
}
