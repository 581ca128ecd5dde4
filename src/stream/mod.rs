//! One live iterator's work in flight.
//!
//! Owns the tasks, their ordered hand-over, the permits and the counters. Refuses to know what a
//! batch is ([`Work`] does) and who runs the threads ([`Crew`] does).
//!
//! The unit of work is a claim: some samples of the oldest unfinished batch. So the first batch is
//! there after its samples divided by the threads, a slow sample holds up only its own batch, and
//! batches still come in order. A consumer that would wait for a batch cheaper than a wake-up makes it
//! itself, within the same permits, or looks for it before it sleeps. The bound is at submission: [`Stream::has_room`] is asked before
//! [`Stream::submit`], nothing ever waits for room, and so nothing can deadlock.

mod claims;
mod completion;
mod cost;
mod flight;
mod shared;
mod state;
mod work;

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

pub use completion::Completion;
pub use cost::is_cheap;
pub use work::{Chunk, Fetch, Work};

use crate::error::Result;
use crate::pool::{Crew, Pool, Source};
use crate::stats::Stats;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Condvar, Mutex, lock};
use shared::Shared;
use state::State;

/// How much a stream may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most batches in flight.
    pub depth: usize,
    /// Most bytes planned for them; one batch is always let in.
    pub budget_bytes: usize,
    /// Most threads at work at once.
    pub threads: usize,
    /// Most of them fetching at once.
    pub fetch: usize,
    /// Most of them computing at once.
    pub compute: usize,
    /// Most samples per claim.
    pub max_chunk: usize,
    /// Whether batches are handed over in the order of their tasks.
    pub in_order: bool,
}

/// A finished batch, or the error in its place.
#[derive(Debug)]
pub struct Ready<O> {
    /// Number of its task.
    pub seq: u64,
    /// The opaque state that came with the task.
    pub state: Option<Box<[u8]>>,
    /// The batch.
    pub output: Result<O>,
}

/// What came of waiting.
#[derive(Debug)]
pub enum Taken<O> {
    /// A batch.
    Ready(Ready<O>),
    /// Nothing yet.
    Waiting,
    /// Nothing is in flight.
    Exhausted,
}

/// The consumer's end; dropping it cancels what is in flight and waits for nothing.
pub struct Stream<W: Work> {
    shared: Arc<Shared<W>>,
    source: Arc<dyn Source>,
    pool: Option<&'static Pool>,
}

impl<W: Work> std::fmt::Debug for Stream<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

impl<W: Work> Stream<W> {
    /// Opens a stream on the process-wide pool. Its first batch has the number `first_seq`.
    pub fn open(work: W, limits: Limits, first_seq: u64) -> Result<Stream<W>> {
        let pool = Pool::global();
        let mut stream = Stream::with_crew(work, limits, first_seq, Box::new(pool));
        pool.register(stream.source.clone())?;
        stream.pool = Some(pool);
        Ok(stream)
    }

    fn with_crew(work: W, limits: Limits, first_seq: u64, crew: Box<dyn Crew>) -> Stream<W> {
        let state = Mutex::new(State::new(&work, limits, first_seq));
        let shared = Arc::new_cyclic(|this| Shared {
            work,
            state,
            ready: Condvar::new(),
            crew,
            cancelled: Arc::new(AtomicBool::new(false)),
            this: this.clone(),
        });
        Stream {
            source: shared.clone(),
            shared,
            pool: None,
        }
    }

    /// What the stream runs.
    pub fn work(&self) -> &W {
        &self.shared.work
    }

    /// Whether a batch of `bytes` may be submitted now.
    pub fn has_room(&self, bytes: usize) -> bool {
        lock(&self.shared.state).has_room(bytes)
    }

    /// Submits the next task and returns its number. `bytes` is what its batch is planned to take.
    pub fn submit(&self, task: W::Task, bytes: usize, state: Option<Box<[u8]>>) -> u64 {
        let samples = self.shared.work.samples(&task);
        let (seq, pieces) = lock(&self.shared.state).submit(task, samples, bytes, state);
        self.shared.crew.notify(pieces);
        seq
    }

    /// Takes the next batch, waiting up to `wait` for it, or making it here if that is sooner done.
    pub fn take(&self, wait: Duration) -> Taken<W::Output> {
        let mut state = lock(&self.shared.state);
        let was_within = state.is_within_budget();
        state.note_call();
        if let Some(ready) = state.take() {
            let calls = usize::from(!was_within && state.is_within_budget());
            drop(state);
            self.shared.crew.notify(calls);
            return Taken::Ready(ready);
        }
        if state.is_empty() {
            return Taken::Exhausted;
        }
        if wait.is_zero() {
            return Taken::Waiting;
        }
        let begun = Instant::now();
        while state.is_cheap() && begun.elapsed() < wait {
            state.helping += 1;
            drop(state);
            let made = self.shared.work_on(true);
            state = lock(&self.shared.state);
            state.helping -= 1;
            if !made {
                break;
            }
        }
        let asleep_from = Instant::now();
        while state.is_cheap() && asleep_from.elapsed() < cost::LOOK {
            drop(state);
            std::thread::yield_now();
            state = lock(&self.shared.state);
        }
        if state.is_asleep() {
            state.summoned = 0; // whoever was called may be busy elsewhere
            drop(state);
            self.shared.crew.notify(1);
            state = lock(&self.shared.state);
        }
        state.waiting += 1;
        while !state.is_ready() && !state.cancelled {
            let left = wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                break;
            }
            state = self
                .shared
                .ready
                .wait_timeout(state, left)
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .0;
        }
        state.waiting -= 1;
        state.note_wait(asleep_from - begun, asleep_from.elapsed());
        state.take().map_or(Taken::Waiting, Taken::Ready)
    }

    /// Changes the limits, from the next claim and the next submission on.
    pub fn adjust(&self, change: impl FnOnce(&mut Limits)) {
        let mut state = lock(&self.shared.state);
        change(&mut state.limits);
        let threads = state.limits.threads;
        let active = state.activity().2;
        state.note_threads();
        drop(state);
        self.shared.crew.notify(threads.saturating_sub(active));
    }

    /// Returns the counters so far.
    pub fn stats(&self) -> Stats {
        let mut state = lock(&self.shared.state);
        state.note_threads();
        state.stats.clone()
    }

    /// Returns the counters so far, and begins the marks of the consumer anew.
    pub fn window(&self) -> Stats {
        let mut state = lock(&self.shared.state);
        state.note_threads();
        let stats = state.stats.clone();
        state.stats.marks.restart();
        stats
    }

    /// Returns how many threads are (fetching, computing) now.
    pub fn activity(&self) -> (usize, usize) {
        let (fetching, computing, _) = lock(&self.shared.state).activity();
        (fetching, computing)
    }

    /// Whether the threads that work for the stream were ended for good.
    pub fn is_orphaned(&self) -> bool {
        self.pool.is_some_and(Pool::is_closed)
    }

    /// Asks for threads again, and tells why nobody works for the stream if nobody does.
    pub fn check(&self) -> Result<()> {
        self.shared.crew.notify(1);
        self.pool.map_or(Ok(()), Pool::check)
    }

    /// Cancels what is in flight; nothing comes any more.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
        let flights = lock(&self.shared.state).cancel();
        if let Some(pool) = self.pool {
            pool.unregister(&self.source);
        }
        drop(flights);
        self.shared.ready.notify_all();
    }
}

impl<W: Work> Drop for Stream<W> {
    fn drop(&mut self) {
        self.cancel();
    }
}
