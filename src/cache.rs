//! Values that threads share, such as decoded row groups: those used last stay, up to a number of bytes.

use std::collections::HashMap;

use crate::error::Result;
use crate::sync::{Arc, Condvar, Mutex, lock, wait};

/// Bytes that threads may need while they make values, also where fewer are kept.
const AT_ONCE: usize = 1 << 30;

/// What a value belongs to, such as a column, and its number in that.
pub type Key = (usize, usize);

/// See the module's documentation.
#[derive(Debug)]
pub struct Cache<T> {
    state: Mutex<State<T>>,
    made: Condvar,
}

#[derive(Debug)]
struct State<T> {
    entries: HashMap<Key, Entry<T>>,
    /// Of all entries.
    bytes: usize,
    /// Bytes that are kept elsewhere, and count.
    reserved: usize,
    /// Bytes that threads need which make values now.
    making: usize,
    /// Counts uses.
    clock: u64,
}

#[derive(Debug)]
enum Entry<T> {
    /// A thread makes it.
    Making,
    Ready {
        value: Arc<T>,
        bytes: usize,
        used: u64,
    },
}

/// The treatment of a value that another thread makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// It is left to that thread for now.
    Leave,
    /// It is waited for.
    Wait,
}

/// Takes the mark of a making away, also if that panicked.
struct Making<'a, T> {
    cache: &'a Cache<T>,
    key: Key,
    bytes: usize,
}

impl<T> Drop for Making<'_, T> {
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

impl<T> Default for Cache<T> {
    fn default() -> Cache<T> {
        Cache {
            state: Mutex::new(State {
                entries: HashMap::new(),
                bytes: 0,
                reserved: 0,
                making: 0,
                clock: 0,
            }),
            made: Condvar::new(),
        }
    }
}

impl<T> Cache<T> {
    /// Returns a value that is here.
    pub fn peek(&self, key: Key) -> Option<Arc<T>> {
        lock(&self.state).find(key)
    }

    /// Returns a value; if it is not here, `make` makes it and says its bytes, which are about `bytes`, unless another
    /// thread does, or others need so much that this one has to wait for them. None: it is left for now.
    pub fn get(
        &self,
        key: Key,
        limit: usize,
        bytes: usize,
        other: Other,
        make: impl FnOnce() -> Result<(T, usize)>,
    ) -> Result<Option<Arc<T>>> {
        let bytes = bytes.min(isize::MAX as usize >> 16); // more than there is, as is the sum of some
        let most = limit.max(AT_ONCE);
        let mut state = lock(&self.state);
        loop {
            if let Some(value) = state.find(key) {
                return Ok(Some(value));
            }
            let fits = state.making == 0 || state.making + bytes <= most;
            if fits && !state.entries.contains_key(&key) {
                break;
            }
            if other == Other::Leave {
                return Ok(None);
            }
            state = wait(&self.made, state);
        }
        state.entries.insert(key, Entry::Making);
        state.making += bytes;
        state.evict(limit, None);
        drop(state);
        let cache = self;
        let making = Making { cache, key, bytes };
        let (value, bytes) = make()?;
        let value = Arc::new(value);
        lock(&self.state).keep(key, value.clone(), bytes);
        drop(making);
        lock(&self.state).evict(limit, Some(key));
        Ok(Some(value))
    }

    /// Counts bytes that are kept elsewhere, if they fit.
    pub fn reserve(&self, bytes: usize, limit: usize) -> bool {
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
    pub fn release(&self, bytes: usize) {
        let mut state = lock(&self.state);
        state.reserved = state.reserved.saturating_sub(bytes); // a forked child begins with none
    }

    /// Drops the values that belong to `owner`.
    pub fn forget(&self, owner: usize) {
        let mut state = lock(&self.state);
        let mut freed = 0;
        state.entries.retain(|key, entry| match entry {
            Entry::Ready { bytes, .. } if key.0 == owner => {
                freed += *bytes;
                false
            }
            _ => true,
        });
        state.bytes -= freed;
    }
}

impl<T> State<T> {
    fn find(&mut self, key: Key) -> Option<Arc<T>> {
        self.clock += 1;
        match self.entries.get_mut(&key) {
            Some(Entry::Ready { value, used, .. }) => {
                *used = self.clock;
                Some(value.clone())
            }
            _ => None,
        }
    }

    fn keep(&mut self, key: Key, value: Arc<T>, bytes: usize) {
        self.clock += 1;
        self.bytes += bytes;
        let used = self.clock;
        self.entries
            .insert(key, Entry::Ready { value, bytes, used });
    }

    /// Drops what was used longest ago until the rest fits, but for `kept`.
    fn evict(&mut self, limit: usize, kept: Option<Key>) {
        let others = self.reserved.saturating_add(self.making);
        while self.bytes.saturating_add(others) > limit {
            let ready = self.entries.iter().filter_map(|(&key, entry)| match entry {
                Entry::Ready { used, bytes, .. } if Some(key) != kept => Some((*used, key, *bytes)),
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
    use crate::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_value_is_made_once_whoever_asks() {
        let (cache, made) = (Cache::default(), AtomicUsize::new(0));
        let ask = || {
            for number in 0..50 {
                let make = || {
                    made.fetch_add(1, Ordering::Relaxed);
                    std::thread::yield_now();
                    Ok(((), 10))
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
            let got = cache.get((0, number), limit, bytes, Other::Wait, || Ok(((), bytes)));
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
        let got = cache.get((0, 0), 100, 1, Other::Leave, || Ok(((), 1)));
        assert!(got.is_ok_and(|got| got.is_some()));
        cache.forget(0);
        assert!(cache.peek((0, 0)).is_none());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::error::Error;
    use crate::sync::atomic::{AtomicUsize, Ordering};
    use crate::sync::{explore, thread};

    const KEY: Key = (0, 0);
    const BYTES: usize = 10;

    /// Two threads ask for one value, and make it up to `failures` times in vain; returns who got it, and how
    /// often it was made.
    fn ask(other: Other, failures: usize) -> ([Result<bool>; 2], usize) {
        let shared = Arc::new((Cache::default(), AtomicUsize::new(0)));
        let ask = move |shared: &(Cache<()>, AtomicUsize)| {
            let make = || match shared.1.fetch_add(1, Ordering::Relaxed) {
                before if before < failures => Err(Error::Abandoned),
                _ => Ok(((), BYTES)),
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
    fn loom_a_value_is_made_once() {
        explore(None, || {
            let (got, made) = ask(Other::Wait, 0);
            assert!(matches!(got, [Ok(true), Ok(true)]));
            assert_eq!(made, 1);
        });
    }

    #[test]
    fn loom_a_value_is_made_by_who_waited_for_a_failure() {
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
    fn loom_a_reservation_and_a_value_fit_together() {
        explore(None, || {
            let cache = Arc::new(Cache::default());
            let thread = thread::spawn({
                let cache = Arc::clone(&cache);
                move || cache.reserve(BYTES, BYTES)
            });
            cache
                .get(KEY, BYTES, BYTES, Other::Wait, || Ok(((), BYTES)))
                .unwrap();
            let is_reserved = thread.join().unwrap();
            let state = lock(&cache.state);
            assert!(is_reserved && state.reserved == BYTES);
            assert!(state.bytes == 0 || state.entries.len() == 1, "one stays");
        });
    }
}
