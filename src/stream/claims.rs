//! The tasks in flight, and the work that threads take from them: a few samples of the oldest batch that has any,
//! within the permits.

use std::ops::Range;
use std::time::Instant;

use super::state::State;
use super::work::{Chunk, Work};
use crate::error::{Error, Result};
use crate::planted::{Bug, planted};
use crate::sync::Arc;

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

impl<W: Work> State<W> {
    /// Gives work to a pool thread or the consumer that starts, if a permit is free.
    pub(super) fn claim(&mut self, work: &W, is_consumer: bool) -> Option<Claim<W>> {
        self.woken = self.woken.saturating_sub(usize::from(!is_consumer));
        if self.limits.depth == 1 && planted(Bug::DeadlockAtDepthOne) {
            return None;
        }
        if self.threads >= self.limits.threads || !is_consumer && !self.has_permit() {
            return None;
        }
        let claim = self.find(work)?;
        self.threads += 1;
        self.note_threads();
        Some(claim)
    }

    /// Returns the next work of a thread that has begun a batch; without any, the thread leaves.
    pub(super) fn next_claim(&mut self, work: &W) -> Option<Claim<W>> {
        let is_permitted = self.threads <= self.limits.threads;
        let claim = is_permitted.then(|| self.find(work)).flatten();
        if claim.is_none() {
            self.leave(false);
        }
        claim
    }

    /// Returns the next work of a thread that has computed samples, if it may continue; otherwise the thread
    /// leaves.
    pub(super) fn computed(&mut self, work: &W, continues: bool) -> Option<Claim<W>> {
        if continues {
            self.computing -= 1;
            return self.next_claim(work);
        }
        self.leave(true);
        None
    }

    fn find(&mut self, work: &W) -> Option<Claim<W>> {
        if self.cancelled {
            return None;
        }
        let (chunk, fetches) = (self.chunk(), self.fetches);
        let may_fetch = self.fetching < self.limits.fetch;
        // The budget never stops the oldest batch: the consumer waits for it.
        let within = self.is_within_budget();
        let oldest = self.flights.front().map(|flight| flight.seq);
        let may_compute = self.computing < self.limits.compute;
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
            if may_compute && !flight.fetched.is_empty() {
                let first = flight.fetched.len().saturating_sub(chunk);
                let samples = flight.fetched.split_off(first);
                let bytes = samples
                    .iter()
                    .map(|(_, fetched)| work.fetched_bytes(fetched));
                self.fetched_bytes -= bytes.sum::<usize>();
                self.computing += 1;
                flight.open += 1; // the turn itself, which keeps the batch from being finished before it ends
                let chunk = Chunk::Fetched(samples);
                return Some(Claim::Compute(flight.seq, batch.clone(), chunk));
            }
            let range = flight.unclaimed..flight.samples.min(flight.unclaimed + chunk);
            if range.is_empty() {
                continue;
            }
            if fetches && may_fetch && (within || oldest == Some(flight.seq)) {
                self.fetching += 1;
                flight.unclaimed = range.end;
                flight.open += 1;
                return Some(Claim::Fetch(flight.seq, batch.clone(), range));
            }
            if !fetches && may_compute {
                self.computing += 1;
                flight.unclaimed = range.end;
                flight.open += 1;
                let chunk = Chunk::Range(range);
                return Some(Claim::Compute(flight.seq, batch.clone(), chunk));
            }
        }
        None
    }
}
