//! Runs a function over many indices before an epoch begins, on pool threads: to read headers of files.
//!
//! Owns the claims and the results; refuses to know what is read. Invariant: results are in the order of
//! their indices, whichever thread made them.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::fork::Uninherited;
use crate::pool::{Notifier, Pool, Source};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Condvar, Mutex, lock};

/// Indices that a thread claims at once.
const CLAIM: usize = 32;
/// The caller handles up to this many alone.
const FEW: usize = 64;
/// Time between two calls of `tick`.
const TICK: Duration = Duration::from_millis(100);

struct Scan<T, F> {
    count: usize,
    look: F,
    threads: usize,
    next: AtomicUsize,
    active: AtomicUsize,
    found: Mutex<Found<T>>,
    more: Condvar,
}

struct Found<T> {
    results: Vec<Option<T>>,
    done: usize,
    /// The scan was abandoned, or a `look` panicked.
    over: bool,
}

/// Marks the end of a turn, also if it panicked.
struct Turn<'a, T, F>(&'a Scan<T, F>, bool);

impl<T, F> Drop for Turn<'_, T, F> {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::Relaxed);
        if !self.1 {
            lock(&self.0.found).over = true;
        }
        self.0.more.notify_all();
    }
}

impl<T: Send, F: Fn(usize) -> T + Send + Sync> Source for Scan<T, F> {
    fn turn(&self) -> bool {
        let first = self.next.fetch_add(CLAIM, Ordering::Relaxed);
        if first >= self.count || lock(&self.found).over {
            return false;
        }
        self.active.fetch_add(1, Ordering::Relaxed);
        let mut turn = Turn(self, false);
        let range = first..self.count.min(first + CLAIM);
        let results: Vec<T> = range.clone().map(&self.look).collect();
        let mut found = lock(&self.found);
        found.done += results.len();
        for (place, result) in found.results[range].iter_mut().zip(results) {
            *place = Some(result);
        }
        drop(found);
        turn.1 = true;
        true
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }
}

/// Calls `look` for each index below `count`, on pool threads, and returns the results in order. Calls `tick`
/// on the calling thread every 100 ms with the number of results so far; its error ends the scan.
///
/// # Errors
///
/// The error that `tick` returns; [`Error::Forked`] in a child that `tick` forked; no thread can be started, or the
/// pool is closed; a `look` panicked.
pub fn scan<T: Send + 'static>(
    count: usize,
    look: impl Fn(usize) -> T + Send + Sync + 'static,
    tick: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Vec<T>> {
    if count <= FEW {
        return Ok((0..count).map(look).collect());
    }
    let threads = match std::thread::available_parallelism() {
        Ok(threads) if !cfg!(loom) => threads.get(),
        _ => 2,
    };
    let scan = Arc::new(Scan {
        count,
        look,
        threads,
        next: AtomicUsize::new(0),
        active: AtomicUsize::new(0),
        found: Mutex::new(Found {
            results: std::iter::repeat_with(|| None).take(count).collect(),
            done: 0,
            over: false,
        }),
        more: Condvar::new(),
    });
    let scan = Uninherited::new(scan);
    let pool = Pool::global();
    pool.register(scan.get().ok_or(Error::Forked)?.clone())?;
    pool.notify(threads);
    let waited = wait(&scan, pool, tick);
    let scan = scan.get().ok_or(Error::Forked)?;
    lock(&scan.found).over = true;
    pool.unregister(scan);
    waited?;
    let results = std::mem::take(&mut lock(&scan.found).results);
    let results: Option<Vec<T>> = results.into_iter().collect();
    results.ok_or(Error::Abandoned)
}

fn wait<T, F>(
    scan: &Uninherited<Arc<Scan<T, F>>>,
    pool: &Pool,
    tick: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<()> {
    let mut due = Instant::now() + TICK;
    loop {
        let scan = scan.get().ok_or(Error::Forked)?; // `tick` runs Python code, which may fork
        let found = lock(&scan.found);
        if found.done == scan.count || found.over {
            return Ok(());
        }
        let waited = scan.more.wait_timeout(found, TICK);
        let (found, _) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        if Instant::now() >= due {
            due = Instant::now() + TICK;
            let done = found.done;
            drop(found);
            pool.check()?;
            tick(done)?;
        }
    }
}

#[cfg(all(test, not(loom), not(miri)))]
#[allow(unsafe_code)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_panics_ends_the_scan() {
        for count in [FEW + 1, 40 * FEW] {
            let look = move |number: usize| assert!(number + 1 < count, "on purpose");
            let found = scan(count, look, &mut |_| Ok(()));
            assert!(matches!(found, Err(Error::Abandoned)));
        }
    }

    #[test]
    fn a_child_of_a_tick_ends_its_scan_and_the_parent_goes_on() {
        let parent = std::process::id();
        let mut child = 0;
        let look = |number: usize| {
            std::thread::sleep(Duration::from_millis(4));
            number
        };
        let scanned = scan(4 * FEW, look, &mut |_| {
            if child == 0 {
                // SAFETY: the child touches no lock of this scan, and exits.
                child = unsafe { libc::fork() };
            }
            Ok(())
        });
        if std::process::id() != parent {
            let code = i32::from(matches!(scanned, Err(Error::Forked)));
            // SAFETY: ends the child without running what belongs to the parent.
            unsafe { libc::_exit(code) };
        }
        assert!(scanned.is_ok_and(|numbers| numbers.into_iter().eq(0..4 * FEW)));
        assert!(child > 0, "the scan was over before the first tick");
        let mut status = 0;
        // SAFETY: `status` is a live int, `child` ours.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 1);
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::explore;

    // The panic of a `look` is tested with real threads: loom's threads share one panic count, so no other
    // thread can run while the first one unwinds.
    #[test]
    fn loom_results_are_all_there() {
        explore(Some(2), || {
            let found = scan(FEW + 1, |number| number, &mut |_| Ok(()));
            assert!(found.is_ok_and(|found| found.into_iter().eq(0..=FEW)));
            Pool::global().shutdown(Duration::from_secs(1_000_000));
        });
    }
}
