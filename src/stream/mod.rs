//! One live iterator's work in flight.
//!
//! Owns the tasks, their ordered hand-over, the permits and the counters. Refuses to know what a batch is
//! ([`Work`] does) and which threads run ([`Notifier`] does).
//!
//! The unit of work is a claim: some samples of the oldest unfinished batch. So the first batch is ready
//! after its samples divided by the threads, a slow sample delays only its own batch, and batches still come
//! in order. A consumer that would wait for a batch cheaper than a wake-up makes it itself, within the same
//! permits, or spins for it before it sleeps. A batch whose samples failed may be made again in its place, at
//! once or after a pause ([`Work::again`]). The bound is at submission: the caller asks
//! [`Stream::has_room`] before [`Stream::submit`]. Nothing ever waits for room, so nothing can deadlock on
//! it.

mod claims;
mod shared;
mod state;
mod work;

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

pub use claims::is_cheap;
pub use work::{Again, Chunk, Completion, Work};

use crate::error::Result;
use crate::pool::{Notifier, Pool};
use crate::spans::Recording;
use crate::stats::Stats;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Condvar, Mutex, lock, wait_for};
use shared::Shared;
use state::State;

/// Time for which a consumer spins for a cheap batch that a thread is making before it sleeps: about as long as a
/// wake-up takes. Zero under loom, which has no clock.
const SPIN: Duration = Duration::from_micros(if cfg!(loom) { 0 } else { 30 });

/// Limits on what a stream uses.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum of batches in flight.
    pub depth: usize,
    /// Maximum of bytes planned for them; one batch is always admitted.
    pub budget_bytes: usize,
    /// Maximum of threads that work at once.
    pub threads: usize,
    /// Maximum of samples per claim.
    pub max_chunk: usize,
    /// True if batches are handed over in the order of their tasks.
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

/// The result of [`Stream::take`].
#[derive(Debug)]
pub enum Taken<O> {
    /// A batch.
    Ready(Ready<O>),
    /// No batch is ready yet.
    Waiting,
    /// Nothing is in flight.
    Exhausted,
}

/// The consumer's end of a stream. Dropping it cancels what is in flight, without waiting.
pub struct Stream<W: Work> {
    shared: Arc<Shared<W>>,
    pool: Option<&'static Pool>,
}

impl<W: Work> Stream<W> {
    /// Opens a stream on the process-wide pool. Its first batch has the number `first_seq`.
    pub fn open(work: W, limits: Limits, first_seq: u64) -> Result<Stream<W>> {
        let pool = Pool::global();
        let mut stream = Stream::with_notifier(work, limits, first_seq, Box::new(pool));
        pool.register(stream.shared.clone())?;
        stream.pool = Some(pool);
        Ok(stream)
    }

    fn with_notifier(
        work: W,
        limits: Limits,
        first_seq: u64,
        notifier: Box<dyn Notifier>,
    ) -> Stream<W> {
        let state = Mutex::new(State::new(&work, limits, first_seq));
        let shared = Arc::new_cyclic(|this| Shared {
            work,
            state,
            ready: Condvar::new(),
            notifier,
            cancelled: Arc::new(AtomicBool::new(false)),
            this: this.clone(),
        });
        Stream { shared, pool: None }
    }

    /// Returns true if a batch of `bytes` fits within depth and budget.
    pub fn has_room(&self, bytes: usize) -> bool {
        lock(&self.shared.state).has_room(bytes)
    }

    /// Numbers the next task `seq`, which is above the numbers of all earlier ones.
    pub fn skip_to(&self, seq: u64) {
        lock(&self.shared.state).skip_to(seq);
    }

    /// Submits the next task and returns its number. `bytes` is the planned size of its batch.
    pub fn submit(&self, task: W::Task, bytes: usize, state: Option<Box<[u8]>>) -> u64 {
        let samples = self.shared.work.samples(&task);
        let (seq, pieces) = lock(&self.shared.state).submit(task, samples, bytes, state);
        self.shared.notifier.notify(pieces);
        seq
    }

    /// Takes the next batch. Waits up to `wait` for it, or makes it on this thread if that is faster.
    pub fn take(&self, wait: Duration) -> Taken<W::Output> {
        let mut state = lock(&self.shared.state);
        state.note_call();
        if let Some(ready) = state.take() {
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
            state.consumers_working += 1;
            drop(state);
            let made = self.shared.work_on(true);
            state = lock(&self.shared.state);
            state.consumers_working -= 1;
            if !made {
                break;
            }
        }
        let spin_start = Instant::now();
        while state.is_cheap() && spin_start.elapsed() < SPIN {
            drop(state);
            std::thread::yield_now();
            state = lock(&self.shared.state);
        }
        if state.needs_thread() {
            state.woken = 0; // a thread that was woken for this stream may work for another one
            drop(state);
            self.shared.notifier.notify(1);
            state = lock(&self.shared.state);
        }
        state.waiting += 1;
        while !state.is_ready() && !state.cancelled {
            let mut left = wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                break;
            }
            if let Some(pause) = state.pause() {
                if pause.is_zero() {
                    let threads = state.resume();
                    drop(state);
                    self.shared.notifier.notify(threads);
                    state = lock(&self.shared.state);
                    continue;
                }
                left = left.min(pause);
            }
            state = wait_for(&self.shared.ready, state, left);
        }
        state.waiting -= 1;
        state.note_wait(spin_start - begun, spin_start.elapsed());
        state.take().map_or(Taken::Waiting, Taken::Ready)
    }

    /// Changes the limits; the next claim and the next submission obey them.
    pub fn adjust(&self, change: impl FnOnce(&mut Limits)) {
        let mut state = lock(&self.shared.state);
        change(&mut state.limits);
        let threads = state.limits.threads;
        let active = state.activity().2;
        state.note_threads();
        drop(state);
        self.shared.notifier.notify(threads.saturating_sub(active));
    }

    /// Records the spans of the threads from now on; None to stop.
    pub fn record(&self, recording: Option<Recording>) {
        lock(&self.shared.state).recording = recording;
    }

    /// Returns the counters so far.
    pub fn stats(&self) -> Stats {
        let mut state = lock(&self.shared.state);
        state.note_threads();
        state.stats.clone()
    }

    /// Returns the counters so far, and restarts those of the consumer's window.
    pub fn window(&self) -> Stats {
        let mut state = lock(&self.shared.state);
        state.note_threads();
        let stats = state.stats.clone();
        state.stats.marks.restart();
        stats
    }

    /// Returns the number of threads that are (fetching, computing) now.
    pub fn activity(&self) -> (usize, usize) {
        let (fetching, computing, _) = lock(&self.shared.state).activity();
        (fetching, computing)
    }

    /// Returns true if the pool was closed, so that no thread will work for the stream any more.
    pub fn is_orphaned(&self) -> bool {
        self.pool.is_some_and(Pool::is_closed)
    }

    /// Wakes a thread again; returns an error if the pool is closed or cannot start a thread.
    pub fn check(&self) -> Result<()> {
        self.shared.notifier.notify(1);
        self.pool.map_or(Ok(()), Pool::check)
    }

    /// Cancels what is in flight; no batch comes after this.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
        let flights = lock(&self.shared.state).cancel();
        if let Some(pool) = self.pool {
            pool.unregister(&self.shared);
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
