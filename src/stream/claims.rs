//! Hands out work: a few samples of the oldest batch that has any, within the permits.

use std::time::Instant;

use super::flight::{Body, Claim};
use super::state::State;
use super::work::{Chunk, Work};
use crate::planted::{Bug, planted};

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
