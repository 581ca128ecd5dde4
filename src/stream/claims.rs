//! The tasks in flight, and the work that threads take from them: a few samples of the oldest batch that has any,
//! within the permits. What a sample costs decides how many a claim has, and whether the consumer makes them.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::state::State;
use super::work::{Chunk, Work};
use crate::error::{Error, Result};
use crate::planted::{Bug, planted};
use crate::sync::Arc;

/// Target cost of a chunk, in nanoseconds: far above the cost of a claim, far below what a consumer would
/// notice.
const CHUNK_NS: f64 = 100_000.0;

/// A batch that costs less than this, in nanoseconds, is made by the consumer that would otherwise wait for
/// it. No thread is woken for such a batch while half of the depth is ready: a thread woken later makes
/// several. Waking a thread costs some microseconds, and so does being woken.
const CHEAP_NS: f64 = 50_000.0;

/// No thread is woken while all batches not yet begun together cost less than this, in nanoseconds.
const TINY_NS: f64 = 5_000.0;

/// Weight of the newest measurement.
const WEIGHT: f64 = 0.1;

/// The state of a batch before it is finished.
pub(super) enum Body<W: Work> {
    /// No thread has begun it.
    Waiting(W::Task),
    /// A thread is making room for it.
    Beginning,
    /// Samples are being made.
    Begun(Arc<W::Batch>),
    /// Taken by the thread that finishes it, or failed before there was a batch.
    Taken,
}

/// One task in flight.
pub(super) struct Flight<W: Work> {
    /// Number of the task.
    pub(super) seq: u64,
    pub(super) body: Body<W>,
    /// The caller's opaque state, returned with the batch.
    pub(super) state: Option<Box<[u8]>>,
    /// Bytes that the batch is planned to take.
    pub(super) bytes: usize,
    pub(super) samples: usize,
    /// Position of the first sample that no thread has claimed.
    pub(super) unclaimed: usize,
    /// Samples that are fetched and not yet claimed for computing, by position.
    pub(super) fetched: Vec<(usize, W::Fetched)>,
    /// Samples that are neither computed nor failed, plus the turns that hold the batch.
    pub(super) open: usize,
    pub(super) failures: Vec<(usize, Error)>,
    /// No thread begins it earlier.
    pub(super) not_before: Option<Instant>,
    /// True if it takes the place of a batch with failed samples.
    pub(super) is_again: bool,
    /// When a thread began it.
    pub(super) begun: Option<Instant>,
    pub(super) result: Option<Result<W::Output>>,
}

impl<W: Work> Flight<W> {
    /// Returns true if it is too early to begin it.
    pub(super) fn is_paused(&self) -> bool {
        self.not_before.is_some_and(|start| Instant::now() < start)
    }
}

/// The next piece of work of a thread.
pub(super) enum Claim<W: Work> {
    Begin(u64, W::Task),
    Fetch(u64, Arc<W::Batch>, Range<usize>),
    Compute(u64, Arc<W::Batch>, Chunk<W::Fetched>),
}

/// The step that follows for the thread that completed samples.
pub(super) enum Next<W: Work> {
    Nothing,
    /// The last sample was completed: join the samples.
    Finish(W::Batch),
    /// These samples failed: decide what takes the batch's place.
    Decide(W::Batch, Vec<(usize, Error)>),
    /// The flight has its result.
    Arrived,
}

/// Returns true if making a batch of `samples` samples, each of `sample_ns` nanoseconds, is faster than
/// waiting for it.
pub fn is_cheap(sample_ns: f64, samples: usize) -> bool {
    sample_ns * (samples as f64) < CHEAP_NS
}

impl<W: Work> State<W> {
    /// Returns true if the consumer should make the batch that it waits for rather than sleep.
    pub(super) fn is_cheap(&self) -> bool {
        if self.is_ready() {
            return false;
        }
        let awaited = self.flights.iter().find(|flight| flight.result.is_none());
        awaited.is_some_and(|flight| self.consumer_makes(flight.samples))
    }

    /// Returns true if a consumer makes batches of so many samples itself. Never where samples are fetched: a
    /// read can block for an unbounded time.
    fn consumer_makes(&self, samples: usize) -> bool {
        !self.fetches && is_cheap(self.sample_ns, samples)
    }

    /// Returns how many pool threads work on batches of so many samples: one fewer than permitted where the
    /// consumer makes such batches too.
    fn pool_threads(&self, samples: usize) -> usize {
        let consumers = usize::from(self.consumer_makes(samples));
        self.limits.threads.saturating_sub(consumers).max(1)
    }

    /// Returns true if another pool thread may work.
    fn has_permit(&self) -> bool {
        let samples = self.flights.back().map_or(0, |flight| flight.samples);
        self.threads.saturating_sub(self.consumers_working) < self.pool_threads(samples)
    }

    /// Returns true if a thread is to be woken for another batch, of so many samples.
    pub(super) fn is_worth_a_wake_up(&self, samples: usize) -> bool {
        let is_tiny = self.sample_ns * (self.unbegun as f64) < TINY_NS;
        let may_wait = is_cheap(self.sample_ns, samples) && 2 * self.ready >= self.limits.depth;
        !is_tiny && !may_wait
    }

    /// Returns how many idle threads to wake for so many samples. `others` threads work on them already;
    /// threads that are woken and on their way count too.
    pub(super) fn threads_to_wake(&mut self, samples: usize, others: usize) -> usize {
        let coming = self.threads + self.woken;
        let free = self.pool_threads(samples).saturating_sub(coming);
        let pieces = samples.div_ceil(self.chunk()).max(1);
        let threads_to_wake = pieces.saturating_sub(others).min(free);
        self.woken += threads_to_wake;
        threads_to_wake
    }

    /// Returns the number of samples per claim.
    #[allow(clippy::cast_sign_loss)] // the cost is not negative
    pub(super) fn chunk(&self) -> usize {
        let affordable = (CHUNK_NS / self.sample_ns.max(1.0)) as usize;
        affordable.clamp(1, self.limits.max_chunk.max(1))
    }

    /// Updates the cost of a sample.
    pub(super) fn observe(&mut self, samples: usize, elapsed: Duration) {
        if samples > 0 {
            let newest_ns = elapsed.as_nanos() as f64 / samples as f64;
            self.sample_ns += WEIGHT * (newest_ns - self.sample_ns);
            let samples = samples as u32;
            self.stats.computing.add(elapsed / samples, samples);
        }
    }

    /// Counts a thread out; `computing` if it was computing.
    pub(super) fn leave(&mut self, computing: bool) {
        self.computing -= usize::from(computing);
        self.threads -= 1;
        self.note_threads();
    }

    /// Gives work to a pool thread or the consumer that starts, if a permit is free.
    pub(super) fn claim(&mut self, is_consumer: bool) -> Option<Claim<W>> {
        self.woken = self.woken.saturating_sub(usize::from(!is_consumer));
        if self.limits.depth == 1 && planted(Bug::DeadlockAtDepthOne) {
            return None;
        }
        if self.threads >= self.limits.threads || !is_consumer && !self.has_permit() {
            return None;
        }
        let claim = self.find()?;
        self.threads += 1;
        self.note_threads();
        Some(claim)
    }

    /// Returns the next work of a thread that has begun a batch; without any, the thread leaves.
    pub(super) fn next_claim(&mut self) -> Option<Claim<W>> {
        let is_permitted = self.threads <= self.limits.threads;
        let claim = is_permitted.then(|| self.find()).flatten();
        if claim.is_none() {
            self.leave(false);
        }
        claim
    }

    /// Returns the next work of a thread that has computed samples, if it may continue; otherwise the thread
    /// leaves.
    pub(super) fn computed(&mut self, continues: bool) -> Option<Claim<W>> {
        if continues {
            self.computing -= 1;
            return self.next_claim();
        }
        self.leave(true);
        None
    }

    fn find(&mut self) -> Option<Claim<W>> {
        if self.cancelled {
            return None;
        }
        let (chunk, fetches) = (self.chunk(), self.fetches);
        for flight in &mut self.flights {
            let batch = match &flight.body {
                Body::Waiting(_) if flight.is_paused() => continue,
                Body::Waiting(_) => match std::mem::replace(&mut flight.body, Body::Beginning) {
                    Body::Waiting(task) => {
                        flight.begun = Some(Instant::now());
                        flight.not_before = None;
                        self.unbegun -= flight.samples;
                        return Some(Claim::Begin(flight.seq, task));
                    }
                    other => {
                        flight.body = other;
                        continue;
                    }
                },
                Body::Begun(batch) => batch,
                Body::Beginning | Body::Taken => continue,
            };
            if !flight.fetched.is_empty() {
                let first = flight.fetched.len().saturating_sub(chunk);
                let samples = flight.fetched.split_off(first);
                self.computing += 1;
                flight.open += 1; // the turn itself, which keeps the batch from being finished before it ends
                let chunk = Chunk::Fetched(samples);
                return Some(Claim::Compute(flight.seq, batch.clone(), chunk));
            }
            let range = flight.unclaimed..flight.samples.min(flight.unclaimed + chunk);
            if range.is_empty() {
                continue;
            }
            flight.unclaimed = range.end;
            flight.open += 1;
            if fetches {
                self.fetching += 1;
                return Some(Claim::Fetch(flight.seq, batch.clone(), range));
            }
            self.computing += 1;
            let chunk = Chunk::Range(range);
            return Some(Claim::Compute(flight.seq, batch.clone(), chunk));
        }
        None
    }
}
