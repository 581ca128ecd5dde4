//! The tasks in flight of one stream, and who may work on which sample next.
//!
//! Owns the schedule; runs nothing. Everything here happens under the stream's lock.
//!
//! Invariants: positions of a flight are claimed in ascending order, so what is unclaimed lies
//! behind every claimed one; `open` counts the samples that are neither computed nor failed, and the
//! turns that hold the batch; a flight whose `open` reaches 0 is finished by exactly one thread.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::planted::{Bug, planted};
use crate::stats::Stats;
use crate::sync::Arc;

use super::cost::Cost;
use super::flight::{Body, Flight, Next};
use super::work::Work;
use super::{Limits, Ready};

/// See the module's documentation.
pub(super) struct State<W: Work> {
    pub(super) flights: VecDeque<Flight<W>>,
    pub(super) limits: Limits,
    pub(super) stats: Stats,
    pub(super) cancelled: bool,
    /// Consumers that wait.
    pub(super) waiting: usize,
    /// Consumers that make batches themselves.
    pub(super) helping: usize,
    /// Threads that were called and have not come yet.
    pub(super) summoned: usize,
    /// Batches that are finished and not taken.
    ready: usize,
    /// Samples of batches that nobody has begun.
    pub(super) unbegun: usize,
    next_seq: u64,
    planned_bytes: usize,
    /// Bytes of samples that are fetched and wait to be computed.
    pub(super) fetched_bytes: usize,
    pub(super) threads: usize,
    pub(super) fetching: usize,
    pub(super) computing: usize,
    cost: Cost,
    /// Whether samples are fetched.
    pub(super) fetches: bool,
}

impl<W: Work> State<W> {
    pub(super) fn new(work: &W, limits: Limits, first_seq: u64) -> State<W> {
        State {
            flights: VecDeque::new(),
            stats: Stats::new(limits.threads),
            limits,
            cancelled: false,
            waiting: 0,
            helping: 0,
            summoned: 0,
            ready: 0,
            unbegun: 0,
            next_seq: first_seq,
            planned_bytes: 0,
            fetched_bytes: 0,
            threads: 0,
            fetching: 0,
            computing: 0,
            cost: Cost::of(work.cost_ns()),
            fetches: work.fetches(),
        }
    }

    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.flights.is_empty()
            || (self.flights.len() < self.limits.depth
                && self.planned_bytes.saturating_add(bytes) <= self.limits.budget_bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// Adds a task; returns its number, and for how many threads it is worth calling.
    pub(super) fn submit(
        &mut self,
        task: W::Task,
        samples: usize,
        bytes: usize,
        state: Option<Box<[u8]>>,
    ) -> (u64, usize) {
        let seq = self.next_seq;
        if self.cancelled {
            return (seq, 0);
        }
        self.planned_bytes = self.planned_bytes.saturating_add(bytes);
        self.flights.push_back(Flight {
            seq,
            body: Body::Waiting(task),
            state,
            bytes,
            samples,
            unclaimed: 0,
            fetched: Vec::new(),
            open: samples,
            failures: Vec::new(),
            begun: None,
            result: None,
        });
        self.next_seq += 1;
        self.unbegun += samples;
        if self.flights.len() == 1 {
            self.note_threads();
        }
        let worthless = self.cost.is_tiny(self.unbegun)
            || self.cost.is_cheap(samples) && 2 * self.ready >= self.limits.depth;
        let called = if worthless {
            0
        } else {
            self.helpers(samples, 0)
        };
        (seq, called)
    }

    /// Notes that the consumer came for a batch.
    pub(super) fn note_call(&mut self) {
        self.stats.came(self.ready);
    }

    /// Notes for how long it worked at batches itself, and for how long it slept.
    pub(super) fn note_wait(&mut self, worked: Duration, slept: Duration) {
        self.stats.made_here += worked;
        self.stats.wait += slept;
    }

    /// Whether the consumer had better make the batch that it waits for than sleep meanwhile.
    pub(super) fn is_cheap(&self) -> bool {
        if self.is_ready() {
            return false;
        }
        let awaited = self.flights.iter().find(|flight| flight.result.is_none());
        awaited.is_some_and(|flight| self.is_for_the_consumer(flight.samples))
    }

    /// Whether a consumer makes batches of so many samples itself. Never where samples are fetched: a file
    /// can keep one waiting for ever.
    fn is_for_the_consumer(&self, samples: usize) -> bool {
        !self.fetches && self.cost.is_cheap(samples)
    }

    /// Whether nobody works although there is work: who waits must call for somebody.
    pub(super) fn is_asleep(&self) -> bool {
        self.threads == 0 && !self.is_ready()
    }

    /// How many threads work on batches of so many samples: one fewer than are permitted where the consumer makes
    /// such batches, too.
    fn called(&self, samples: usize) -> usize {
        let consumers = usize::from(self.is_for_the_consumer(samples));
        self.limits.threads.saturating_sub(consumers).max(1)
    }

    /// Whether another thread, other than a consumer, may work.
    pub(super) fn has_permit(&self) -> bool {
        let samples = self.flights.back().map_or(0, |flight| flight.samples);
        self.threads.saturating_sub(self.helping) < self.called(samples)
    }

    /// How many free threads are to be called to this many samples, beside `others` that work on them, and beside
    /// those that are called already.
    pub(super) fn helpers(&mut self, samples: usize, others: usize) -> usize {
        let coming = self.threads + self.summoned;
        let free = self.called(samples).saturating_sub(coming);
        let pieces = samples.div_ceil(self.chunk()).max(1);
        let helpers = pieces.saturating_sub(others).min(free);
        self.summoned += helpers;
        helpers
    }

    /// Samples per claim.
    pub(super) fn chunk(&self) -> usize {
        self.cost.chunk(self.limits.max_chunk)
    }

    /// Whether what is planned and fetched leaves room to fetch ahead.
    pub(super) fn is_within_budget(&self) -> bool {
        self.planned_bytes.saturating_add(self.fetched_bytes) <= self.limits.budget_bytes
    }

    /// Whether a permit of one stage can hold up threads that another stage has work for.
    pub(super) fn has_tight_stages(&self) -> bool {
        self.limits.fetch.min(self.limits.compute) < self.limits.threads
    }

    /// A thread that fetched goes on to compute, if it has something to and a permit is free.
    pub(super) fn fetched_to_compute(&mut self, wanted: bool) -> bool {
        self.fetching -= 1;
        let may = wanted && self.computing < self.limits.compute;
        self.computing += usize::from(may);
        may
    }

    /// A thread leaves.
    pub(super) fn leave(&mut self, computing: bool) {
        self.computing -= usize::from(computing);
        self.threads -= 1;
        self.note_threads();
    }

    /// Counts time from now on by how many threads work, and may while there is something in flight.
    pub(super) fn note_threads(&mut self) {
        let permitted = if self.flights.is_empty() {
            0
        } else {
            self.limits.threads
        };
        self.stats.threads(self.threads, permitted);
    }

    /// Learns what computing samples cost.
    pub(super) fn observe(&mut self, samples: usize, elapsed: Duration) {
        if samples > 0 {
            self.cost.observe(samples, elapsed.as_nanos() as f64);
            self.stats.computed(samples as u32, elapsed);
        }
    }

    fn at(&self, seq: u64) -> Option<usize> {
        self.flights
            .binary_search_by_key(&seq, |flight| flight.seq)
            .ok()
    }

    /// Puts the begun batch in its place. A batch of no samples is over at once.
    pub(super) fn begun(&mut self, seq: u64, batch: Result<W::Batch>) -> Next<W> {
        let Some(at) = self.at(seq) else {
            return Next::Nothing;
        };
        let flight = &mut self.flights[at];
        match batch {
            Ok(batch) if flight.samples == 0 => {
                flight.body = Body::Over;
                Next::Finish(batch)
            }
            Ok(batch) => {
                flight.body = Body::Begun(Arc::new(batch));
                Next::Nothing
            }
            Err(error) => {
                flight.body = Body::Over;
                flight.result = Some(Err(error));
                self.ready += 1;
                Next::Arrived
            }
        }
    }

    /// Keeps fetched samples until a thread computes them.
    pub(super) fn keep_fetched(
        &mut self,
        work: &W,
        seq: u64,
        mut samples: Vec<(usize, W::Fetched)>,
    ) {
        if let Some(at) = self.at(seq) {
            let bytes = samples
                .iter()
                .map(|(_, fetched)| work.fetched_bytes(fetched));
            self.fetched_bytes += bytes.sum::<usize>();
            self.flights[at].fetched.append(&mut samples);
        }
    }

    /// Notes that `count` samples are over, `failures` of them without success, and so are `turns`
    /// that held the batch.
    pub(super) fn completed(
        &mut self,
        work: &W,
        seq: u64,
        count: usize,
        turns: usize,
        mut failures: Vec<(usize, Error)>,
    ) -> Next<W> {
        self.stats.samples += count as u64;
        let Some(at) = self.at(seq) else {
            return Next::Nothing;
        };
        let flight = &mut self.flights[at];
        flight.open -= count + turns;
        if !failures.is_empty() {
            flight.failures.append(&mut failures);
            // What is unclaimed lies behind the failure and cannot be the first by position.
            flight.open -= flight.samples - flight.unclaimed;
            flight.unclaimed = flight.samples;
        }
        if flight.open > 0 {
            return Next::Nothing;
        }
        let Body::Begun(batch) = std::mem::replace(&mut flight.body, Body::Over) else {
            return Next::Nothing;
        };
        let failures = std::mem::take(&mut flight.failures);
        if let Some((position, error)) = failures.into_iter().min_by_key(|(p, _)| *p) {
            let index = work.index(&batch, position);
            let source = Box::new(error);
            flight.result = Some(Err(Error::Sample {
                index,
                position,
                seq,
                source,
            }));
            self.ready += 1;
            return Next::Arrived;
        }
        // Every executor gives its reference up before it completes its last sample.
        if let Some(batch) = Arc::into_inner(batch) {
            return Next::Finish(batch);
        }
        flight.result = Some(Err(Error::Abandoned));
        self.ready += 1;
        Next::Arrived
    }

    /// Keeps the result, which came `now`, until the consumer takes it.
    pub(super) fn arrived(&mut self, seq: u64, result: Result<W::Output>, now: Instant) {
        if let Some(at) = self.at(seq) {
            self.flights[at].result = Some(result);
            self.ready += 1;
            self.stats.made(self.flights[at].begun, now);
        }
    }

    /// Takes the next result in order, or any if order does not matter.
    pub(super) fn take(&mut self) -> Option<Ready<W::Output>> {
        let at = self.next_ready()?;
        let flight = self.flights.remove(at)?;
        self.ready -= 1;
        self.planned_bytes = self.planned_bytes.saturating_sub(flight.bytes);
        self.stats.took(flight.samples);
        if self.flights.is_empty() {
            self.note_threads();
        }
        Some(Ready {
            seq: flight.seq,
            state: flight.state,
            output: flight.result?,
        })
    }

    /// Whether a consumer waits for what can be taken now.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting > 0 && self.is_ready()
    }

    /// Whether [`State::take`] would return a result.
    pub(super) fn is_ready(&self) -> bool {
        self.next_ready().is_some()
    }

    fn next_ready(&self) -> Option<usize> {
        let all = self.flights.len();
        let in_order = self.limits.in_order && !(self.ready > 0 && planted(Bug::OrderSwap));
        let reach = if in_order { 1 } else { all };
        let mut flights = self.flights.iter().take(reach);
        flights.position(|flight| flight.result.is_some())
    }

    /// Gives up everything in flight; the caller drops it outside of the lock.
    pub(super) fn cancel(&mut self) -> VecDeque<Flight<W>> {
        self.cancelled = true;
        (self.planned_bytes, self.fetched_bytes) = (0, 0);
        (self.ready, self.unbegun) = (0, 0);
        let flights = std::mem::take(&mut self.flights);
        self.note_threads();
        flights
    }

    /// What the threads are doing, for a time-out's message.
    pub(super) fn activity(&self) -> (usize, usize, usize) {
        (self.fetching, self.computing, self.threads)
    }
}
