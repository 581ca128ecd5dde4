//! The process-wide pool of native threads.
//!
//! Owns the threads: starts them when there is work, parks them when there is none, ends them after
//! [`LINGER`]. Refuses to know what they work on: a [`Source`] is asked for one turn after the other, and
//! sources are visited in rotation, so that live streams share the threads fairly.
//!
//! Invariant: a thread parks only if no [`Notifier::notify`] came since it began to look for work, so no
//! wake-up is lost. Threads never attach to an interpreter. A forked child inherits no threads:
//! [`Pool::global`] builds a new pool there and leaks the old one untouched.

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
#[cfg(not(loom))]
use crate::fork::Renewed;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::thread::{self, JoinHandle, ThreadId};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, lock, spin_until, wait_for};

/// Time for which an idle thread stays before it ends.
pub const LINGER: Duration = Duration::from_secs(3);

/// Time for which a thread that did brief work spins for more before it sleeps. Waking it takes some 50 us.
const SPIN: Duration = Duration::from_micros(100);

/// Interval at which a thread that waits for others to end rechecks its condition.
const RECHECK: Duration = Duration::from_millis(5);

thread_local! {
    static CURRENT: Cell<Thread> = const { Cell::new(Thread { number: 0, id: 0 }) };
}

/// A thread of the pool, or any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Thread {
    /// N of its name `fastload-N`; 0 for a thread that is not the pool's.
    pub number: u32,
    /// The system's number of a thread of the pool, on Linux; else 0.
    pub id: u32,
}

/// Returns what this thread is.
pub fn current() -> Thread {
    CURRENT.get()
}

#[cfg(all(target_os = "linux", not(miri)))]
fn system_id() -> u32 {
    rustix::thread::gettid().as_raw_pid().cast_unsigned()
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn system_id() -> u32 {
    0
}

/// A source of work for the pool's threads.
pub trait Source: Send + Sync {
    /// Does one piece of work; returns true if there was any.
    fn turn(&self) -> bool;
    /// Returns the maximum of threads that may work for this source at once.
    fn threads(&self) -> usize;
    /// Returns the number of threads that work for it now.
    fn active(&self) -> usize;
    /// Returns true if its work is done sooner than a thread wakes, and more of the kind follows: a thread
    /// that worked for it spins for more before it sleeps.
    fn is_brief(&self) -> bool {
        false
    }
}

/// Announces work to the pool, or to a test.
pub trait Notifier: Send + Sync {
    /// Announces that up to `pieces` pieces of work can be begun now.
    fn notify(&self, pieces: usize);
}

/// See the module's documentation.
pub struct Pool {
    state: Mutex<State>,
    work: Condvar,
    ended: Condvar,
    /// No thread is started any more; set under the lock.
    closed: AtomicBool,
    /// Number of announcements; counted under the lock.
    signals: AtomicU64,
}

#[derive(Default)]
struct State {
    sources: Vec<Arc<dyn Source>>,
    next: usize,
    threads: usize,
    /// The system's numbers of those that run; of one that has just been started not yet.
    ids: Vec<u32>,
    idle: usize,
    started: u32,
    handles: HashMap<ThreadId, JoinHandle<()>>,
    /// The error of the last thread that could not be started.
    spawn_error: Option<std::io::Error>,
    /// Threads that are about to return.
    ended: Vec<ThreadId>,
    /// Set to end idle threads at once instead of letting them linger.
    ending: bool,
}

impl State {
    /// Takes the handles of threads that have ended.
    fn reap(&mut self) -> Vec<JoinHandle<()>> {
        let ended = std::mem::take(&mut self.ended);
        ended
            .iter()
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

    /// Returns the pool of one execution of a loom model, which ends it with [`Pool::shutdown`].
    #[cfg(loom)]
    pub fn global() -> &'static Pool {
        loom::lazy_static! { static ref GLOBAL: Pool = Pool::new(); }
        &GLOBAL
    }

    /// Adds a source. [`Notifier::notify`] announces its work.
    pub fn register(&self, source: Arc<dyn Source>) -> Result<()> {
        let mut state = lock(&self.state);
        if self.is_closed() {
            return Err(Error::Closed);
        }
        state.sources.push(source);
        Ok(())
    }

    /// Adds a source, and announces `pieces` pieces of its work, unless the pool is closed.
    pub fn offer(&'static self, source: Arc<dyn Source>, pieces: usize) {
        if self.register(source).is_ok() {
            self.notify(pieces);
        }
    }

    /// Removes a source; threads in the middle of a turn finish it.
    pub fn unregister(&self, source: &Arc<impl Source + ?Sized>) {
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

    /// Returns the system's numbers of the threads that run; zeros where [`Thread::id`] is 0.
    pub fn thread_ids(&self) -> Vec<u32> {
        lock(&self.state).ids.clone()
    }

    /// Returns true if the pool was shut down.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Returns an error if no thread can work: the pool was shut down, or no thread can be started.
    pub fn check(&self) -> Result<()> {
        let mut state = lock(&self.state);
        if self.is_closed() {
            return Err(Error::Closed);
        }
        match state.spawn_error.take() {
            Some(source) if state.threads == 0 => Err(Error::Threads { source }),
            _ => Ok(()),
        }
    }

    /// Ends the idle threads, and waits up to `limit` until they are gone.
    pub fn park(&self, limit: Duration) {
        self.end(lock(&self.state), limit, |state| {
            state.threads <= state.sources.iter().map(|source| source.active()).sum()
        });
    }

    /// Ends all threads for good after their current turn, and waits for that up to `limit`. Returns true if
    /// a source was still registered.
    pub fn shutdown(&self, limit: Duration) -> bool {
        let mut state = lock(&self.state);
        self.closed.store(true, Ordering::Relaxed);
        let sources = std::mem::take(&mut state.sources);
        self.end(state, limit, |state| state.threads == 0);
        !sources.is_empty()
    }

    /// Ends threads until `over` holds, then joins those that ended: the system counts a thread until it is
    /// joined.
    fn end(&self, mut state: MutexGuard<'_, State>, limit: Duration, over: fn(&State) -> bool) {
        let deadline = Instant::now() + limit;
        state.ending = true;
        self.work.notify_all();
        while !over(&state) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            // A thread that finds work again signals nothing, hence the recheck every `RECHECK`.
            state = wait_for(&self.ended, state, left.min(RECHECK));
        }
        state.ending = self.is_closed();
        let ended = state.reap();
        drop(state);
        for handle in ended {
            // the thread caught its panics
            let _ = handle.join();
        }
    }

    /// Starts threads for the pieces that no idle thread can take: as many as the largest source permits,
    /// plus one for each further source, so that no source waits for another one's readers.
    fn start_threads(&'static self, state: &mut State, pieces: usize) {
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
            let number = state.started;
            let thread = thread::Builder::new()
                .name(format!("fastload-{number}"))
                .spawn(move || self.run(number));
            match thread {
                Ok(thread) => state.handles.insert(thread.thread().id(), thread),
                Err(error) => {
                    state.spawn_error = Some(error); // with other threads alive, these do the work
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

    /// Runs one thread: looks for work, spins, sleeps, ends.
    fn run(&'static self, number: u32) {
        let id = system_id();
        CURRENT.set(Thread { number, id });
        let mut state = lock(&self.state);
        state.ids.push(id);
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
                // The stream catches panics of samples; this keeps the thread alive through any other.
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
                spin_until(SPIN, || self.signals() != seen);
                state = lock(&self.state);
            }
            let deadline = Instant::now() + LINGER;
            let mut left = LINGER;
            while self.signals() == seen && !state.ending && !left.is_zero() {
                state = wait_for(&self.work, state, left);
                left = deadline.saturating_duration_since(Instant::now());
            }
            state.idle -= 1;
            if self.signals() == seen || self.is_closed() {
                break;
            }
        }
        state.threads -= 1;
        if let Some(place) = state.ids.iter().position(|&each| each == id) {
            state.ids.swap_remove(place);
        }
        state.ended.push(thread::current().id());
        drop(state);
        self.ended.notify_all();
    }
}

impl Notifier for &'static Pool {
    fn notify(&self, pieces: usize) {
        if pieces == 0 {
            return;
        }
        let mut state = lock(&self.state);
        self.signals.fetch_add(1, Ordering::Relaxed);
        let idle = state.idle;
        self.start_threads(&mut state, pieces);
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

    /// Long enough for any model: loom has no clock.
    const FOREVER: Duration = Duration::from_secs(1_000_000);

    /// Pieces of work that can be begun, and the number done.
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

    /// Work is done that is announced while the only thread works, spins, or is about to sleep.
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

    /// A sleeping thread is woken.
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

    /// Neither of two sources waits for the other.
    #[test]
    fn loom_all_sources_are_served() {
        check(|| {
            let all = [Pieces::new(1, false), Pieces::new(1, false)];
            all.iter().for_each(|pieces| pieces.announce(1));
            all.iter().for_each(|pieces| pieces.wait(1));
            Pool::global().unregister(&all[0]);
            all[1].announce(1);
            all[1].wait(2);
        });
    }

    /// A shutdown ends all threads, whatever they are doing.
    #[test]
    fn loom_a_shutdown_meets_threads_in_any_state() {
        check(|| Pieces::new(2, false).announce(2));
    }
}
