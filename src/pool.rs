//! The process-wide pool of native threads.
//!
//! Owns the threads: starts them when there is work, parks them when there is none, ends them after
//! [`LINGER`]. Refuses to know what they work on: a [`Source`] is asked for one turn after the
//! other, and sources are visited in rotation, so that live streams share the threads fairly.
//!
//! Invariant: a thread parks only if no [`Crew::notify`] came since it began to look for work, so a
//! wake-up cannot be lost. Threads never attach to an interpreter. A forked child inherits no
//! threads: [`Pool::global`] notices and builds a new pool there; the old one is leaked untouched.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
#[cfg(not(loom))]
use crate::fork::Renewed;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::thread::{self, JoinHandle, ThreadId};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, is_soon, lock};

/// How long a thread without work stays before it ends.
pub const LINGER: Duration = Duration::from_secs(3);

/// How long a thread that did brief work looks for more before it sleeps. Waking it takes some 50 us.
const LOOK_FOR_MORE: Duration = Duration::from_micros(100);

/// How often who waits for threads to end looks whether it is still worth it.
const LOOK: Duration = Duration::from_millis(5);

/// Something that has work for threads of the pool.
pub trait Source: Send + Sync {
    /// Does one piece of work; returns whether there was one.
    fn turn(&self) -> bool;
    /// Most threads that may work for this source at once.
    fn threads(&self) -> usize;
    /// How many do now.
    fn active(&self) -> usize;
    /// Whether its work is over sooner than a thread wakes, and more of its kind follows: who has worked for it
    /// looks for more before it sleeps.
    fn is_brief(&self) -> bool {
        false
    }
}

/// Who is told that there is work: the pool, or a test.
pub trait Crew: Send + Sync {
    /// Announces that up to `pieces` pieces of work can be begun now.
    fn notify(&self, pieces: usize);
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Pool {
    state: Mutex<State>,
    work: Condvar,
    ended: Condvar,
    /// No thread is started any more; set under the lock.
    closed: AtomicBool,
    /// How often work was announced; counted under the lock.
    signals: AtomicU64,
}

#[derive(Default)]
struct State {
    sources: Vec<Arc<dyn Source>>,
    next: usize,
    threads: usize,
    idle: usize,
    started: usize,
    handles: HashMap<ThreadId, JoinHandle<()>>,
    /// Why the last thread could not be started.
    refused: Option<std::io::Error>,
    /// Threads whose last act this was.
    over: Vec<ThreadId>,
    /// Idle threads end at once instead of lingering.
    leaving: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("sources", &self.sources.len())
            .field("threads", &self.threads)
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}

impl State {
    /// Takes the handles of threads that are over.
    fn reap(&mut self) -> Vec<JoinHandle<()>> {
        let over = std::mem::take(&mut self.over);
        over.iter()
            .filter_map(|id| self.handles.remove(id))
            .collect()
    }
}

#[cfg(not(loom))]
static GLOBAL: Renewed<Pool> = Renewed::new(Pool::new);

impl Pool {
    fn new() -> Pool {
        Pool {
            state: Mutex::new(State::default()),
            work: Condvar::new(),
            ended: Condvar::new(),
            closed: AtomicBool::new(false),
            signals: AtomicU64::new(0),
        }
    }

    /// Returns the pool of this process; makes it on first use, and anew in a forked child.
    #[cfg(not(loom))]
    pub fn global() -> &'static Pool {
        GLOBAL.get()
    }

    /// Returns the pool of this execution of a model, which ends it by [`Pool::shutdown`].
    #[cfg(loom)]
    pub fn global() -> &'static Pool {
        loom::lazy_static! { static ref GLOBAL: Pool = Pool::new(); }
        &GLOBAL
    }

    /// Adds a source. Its work is announced by [`Crew::notify`].
    pub fn register(&self, source: Arc<dyn Source>) -> Result<()> {
        let mut state = lock(&self.state);
        if self.is_closed() {
            return Err(Error::Closed);
        }
        state.sources.push(source);
        Ok(())
    }

    /// Removes a source; threads in the middle of a turn finish that turn.
    pub fn unregister(&self, source: &Arc<dyn Source>) {
        let mut state = lock(&self.state);
        let removed = state
            .sources
            .iter()
            .position(|s| std::ptr::addr_eq(Arc::as_ptr(s), Arc::as_ptr(source)))
            .map(|at| state.sources.swap_remove(at));
        drop(state);
        drop(removed);
    }

    /// Returns how many threads are alive.
    pub fn threads(&self) -> usize {
        lock(&self.state).threads
    }

    /// Whether the threads were ended for good.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Tells why nobody works: threads were ended for good, or none can be started.
    pub fn check(&self) -> Result<()> {
        let mut state = lock(&self.state);
        if self.is_closed() {
            return Err(Error::Closed);
        }
        match state.refused.take() {
            Some(source) if state.threads == 0 => Err(Error::Threads { source }),
            _ => Ok(()),
        }
    }

    /// Ends the threads that have nothing to do, and waits up to `limit` until they are gone.
    pub fn park(&self, limit: Duration) {
        self.end(lock(&self.state), limit, |state| {
            state.threads <= state.sources.iter().map(|source| source.active()).sum()
        });
    }

    /// Ends all threads for good as soon as their turn is over, and waits for that up to `limit`.
    /// Returns whether some source was left.
    pub fn shutdown(&self, limit: Duration) -> bool {
        let mut state = lock(&self.state);
        self.closed.store(true, Ordering::Relaxed);
        let sources = std::mem::take(&mut state.sources);
        self.end(state, limit, |state| state.threads == 0);
        !sources.is_empty()
    }

    /// Has threads end until there is nobody left to wait for, then joins those that ended: the
    /// system counts a thread until then.
    fn end(&self, mut state: MutexGuard<'_, State>, limit: Duration, over: fn(&State) -> bool) {
        let deadline = Instant::now() + limit;
        state.leaving = true;
        self.work.notify_all();
        while !over(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            // A thread that finds work again says nothing, so this looks by itself, too.
            state = self
                .ended
                .wait_timeout(state, left.min(LOOK))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        state.leaving = self.is_closed();
        let ended = state.reap();
        drop(state);
        for handle in ended {
            // Its panics were caught.
            let _ = handle.join();
        }
    }

    /// Starts threads for the pieces that no idle one can take: as many as the largest source
    /// permits, and one for each further source, so that none waits for readers of another.
    fn hire(&'static self, state: &mut State, pieces: usize) {
        let largest = state
            .sources
            .iter()
            .map(|source| source.threads())
            .max()
            .unwrap_or(0);
        let permitted = largest + state.sources.len().saturating_sub(1);
        let mut missing = pieces.saturating_sub(state.idle);
        drop(state.reap());
        while missing > 0 && state.threads < permitted && !self.is_closed() {
            state.started += 1;
            let thread = thread::Builder::new()
                .name(format!("fastload-{}", state.started))
                .spawn(move || self.run());
            match thread {
                Ok(thread) => state.handles.insert(thread.thread().id(), thread),
                Err(error) => {
                    state.refused = Some(error); // if there are some, fewer do the same work
                    break;
                }
            };
            state.threads += 1;
            missing -= 1;
        }
    }

    fn signals(&self) -> u64 {
        self.signals.load(Ordering::Relaxed)
    }

    /// The life of one thread.
    fn run(&'static self) {
        let mut state = lock(&self.state);
        let mut was_brief = false;
        loop {
            let seen = self.signals();
            let mut worked = false;
            for _ in 0..state.sources.len() {
                if state.sources.is_empty() || self.is_closed() {
                    break;
                }
                state.next = (state.next + 1) % state.sources.len();
                let source = Arc::clone(&state.sources[state.next]);
                drop(state);
                // What samples do is caught where it happens; this keeps the thread through the rest.
                if catch_unwind(AssertUnwindSafe(|| source.turn())).unwrap_or(true) {
                    worked = true;
                    was_brief = source.is_brief();
                }
                drop(source);
                state = lock(&self.state);
            }
            if self.is_closed() {
                break;
            }
            if worked || self.signals() != seen {
                continue;
            }
            state.idle += 1;
            if std::mem::take(&mut was_brief) {
                drop(state);
                is_soon(LOOK_FOR_MORE, || self.signals() != seen);
                state = lock(&self.state);
            }
            let deadline = Instant::now() + LINGER;
            let mut left = LINGER;
            while self.signals() == seen && !state.leaving && !left.is_zero() {
                state = self
                    .work
                    .wait_timeout(state, left)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                left = deadline.saturating_duration_since(Instant::now());
            }
            state.idle -= 1;
            if self.signals() == seen || self.is_closed() {
                break;
            }
        }
        state.threads -= 1;
        state.over.push(thread::current().id());
        drop(state);
        self.ended.notify_all();
    }
}

impl Crew for &'static Pool {
    fn notify(&self, pieces: usize) {
        if pieces == 0 {
            return;
        }
        let mut state = lock(&self.state);
        self.signals.fetch_add(1, Ordering::Relaxed);
        let idle = state.idle;
        self.hire(&mut state, pieces);
        drop(state);
        for _ in 0..pieces.min(idle) {
            self.work.notify_one();
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::sync::explore;

    /// As long as it takes: the model checker knows no time.
    const FOREVER: Duration = Duration::from_secs(1_000_000);

    /// Pieces of work that can be begun, and how many were done.
    struct Pieces {
        left: AtomicU64,
        done: Mutex<u64>,
        more: Condvar,
        threads: usize,
        is_brief: bool,
    }

    impl Source for Pieces {
        fn turn(&self) -> bool {
            let order = Ordering::Relaxed;
            let one_less = |left: u64| left.checked_sub(1);
            if self.left.fetch_update(order, order, one_less).is_err() {
                return false;
            }
            *lock(&self.done) += 1;
            self.more.notify_all();
            true
        }

        fn threads(&self) -> usize {
            self.threads
        }

        fn active(&self) -> usize {
            0
        }

        fn is_brief(&self) -> bool {
            self.is_brief
        }
    }

    impl Pieces {
        fn new(threads: usize, is_brief: bool) -> Arc<Pieces> {
            let pieces = Arc::new(Pieces {
                left: AtomicU64::new(0),
                done: Mutex::new(0),
                more: Condvar::new(),
                threads,
                is_brief,
            });
            let source = Arc::clone(&pieces) as Arc<dyn Source>;
            Pool::global().register(source).unwrap();
            pieces
        }

        fn announce(&self, pieces: usize) {
            self.left.fetch_add(pieces as u64, Ordering::Relaxed);
            Pool::global().notify(pieces);
        }

        fn wait(&self, done: u64) {
            let mut guard = lock(&self.done);
            while *guard < done {
                guard = self.more.wait(guard).unwrap();
            }
        }
    }

    fn check(model: impl Fn() + Send + Sync + 'static) {
        explore(Some(2), move || {
            model();
            Pool::global().shutdown(FOREVER);
            assert_eq!(Pool::global().threads(), 0);
        });
    }

    /// Work is done that is announced while the one thread works, looks, or is about to sleep.
    #[test]
    fn loom_announced_work_is_done() {
        for is_brief in [false, true] {
            check(move || {
                let pieces = Pieces::new(1, is_brief);
                pieces.announce(1);
                pieces.announce(1);
                pieces.wait(2);
            });
        }
    }

    /// A thread that sleeps is woken.
    #[test]
    fn loom_a_sleeping_thread_is_woken() {
        check(|| {
            let pieces = Pieces::new(1, false);
            pieces.announce(1);
            pieces.wait(1);
            pieces.announce(1);
            pieces.wait(2);
        });
    }

    /// Neither of two sources waits for the other's.
    #[test]
    fn loom_all_sources_are_served() {
        check(|| {
            let all = [Pieces::new(1, false), Pieces::new(1, false)];
            all.iter().for_each(|pieces| pieces.announce(1));
            all.iter().for_each(|pieces| pieces.wait(1));
            let source = Arc::clone(&all[0]) as Arc<dyn Source>;
            Pool::global().unregister(&source);
            all[1].announce(1);
            all[1].wait(2);
        });
    }

    /// A pool ends all its threads, whatever they are at.
    #[test]
    fn loom_an_end_meets_threads_in_any_state() {
        check(|| Pieces::new(2, false).announce(2));
    }
}
