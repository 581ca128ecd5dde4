//! The tasks in flight of one stream, and which thread may work on which sample next.
//!
//! Owns the schedule; runs nothing. Every method is called under the stream's lock.
//!
//! Invariants: positions of a flight are claimed in ascending order, so unclaimed positions come after all
//! claimed ones; `open` counts the samples that are neither computed nor failed, plus the turns that hold the
//! batch; a flight whose `open` reaches 0 is finished by exactly one thread.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::planted::{Bug, planted};
use crate::spans::{Recording, Stage};
use crate::stats::Stats;
use crate::sync::Arc;

use super::claims::{Body, Flight, Next};
use super::work::Work;
use super::{Limits, Ready};

/// See the module's documentation.
pub(super) struct State<W: Work> {
    pub(super) flights: VecDeque<Flight<W>>,
    pub(super) limits: Limits,
    pub(super) stats: Stats,
    /// The recorder of the threads' spans, if any.
    pub(super) recording: Option<Recording>,
    pub(super) cancelled: bool,
    /// Consumers that sleep until a batch is ready.
    pub(super) waiting: usize,
    /// Consumers that make batches themselves.
    pub(super) consumers_working: usize,
    /// Threads that were woken and have not claimed yet.
    pub(super) woken: usize,
    /// Batches that are finished and not taken.
    pub(super) ready: usize,
    /// Samples of batches that no thread has begun.
    pub(super) unbegun: usize,
    next_seq: u64,
    /// Bytes planned for the batches in flight.
    planned_bytes: usize,
    /// Threads in a turn, a consumer that makes batches included.
    pub(super) threads: usize,
    pub(super) fetching: usize,
    pub(super) computing: usize,
    /// A running estimate of what a sample costs, in nanoseconds.
    pub(super) sample_ns: f64,
    /// True if samples are fetched before they are computed.
    pub(super) fetches: bool,
}

impl<W: Work> State<W> {
    pub(super) fn new(work: &W, limits: Limits, first_seq: u64) -> State<W> {
        State {
            flights: VecDeque::new(),
            stats: Stats::new(limits.threads),
            recording: None,
            limits,
            cancelled: false,
            waiting: 0,
            consumers_working: 0,
            woken: 0,
            ready: 0,
            unbegun: 0,
            next_seq: first_seq,
            planned_bytes: 0,
            threads: 0,
            fetching: 0,
            computing: 0,
            sample_ns: work.cost_ns(),
            fetches: work.fetches(),
        }
    }

    /// Returns true if a batch of `bytes` fits within depth and budget. One batch always does.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.flights.is_empty()
            || (self.flights.len() < self.limits.depth
                && self.planned_bytes.saturating_add(bytes) <= self.limits.budget_bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// Numbers the next task `seq`, unless that is below the number that it has anyway.
    pub(super) fn skip_to(&mut self, seq: u64) {
        self.next_seq = self.next_seq.max(seq);
    }

    /// Adds a task; returns its number, and how many threads to wake for it.
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
            not_before: None,
            is_again: false,
            begun: None,
            result: None,
        });
        self.next_seq += 1;
        self.unbegun += samples;
        if self.flights.len() == 1 {
            self.note_threads();
        }
        let to_wake = if self.is_worth_a_wake_up(samples) {
            self.threads_to_wake(samples, 0)
        } else {
            0
        };
        (seq, to_wake)
    }

    /// Counts a call of the consumer for a batch.
    pub(super) fn note_call(&mut self) {
        self.stats.came(self.ready);
    }

    /// Adds the time that the consumer worked at batches itself, and the time that it slept.
    pub(super) fn note_wait(&mut self, worked: Duration, slept: Duration) {
        self.stats.made_here += worked;
        self.stats.wait += slept;
    }

    /// Returns true if no thread works although a batch is awaited: the consumer must wake one.
    pub(super) fn needs_thread(&self) -> bool {
        self.threads == 0 && !self.is_ready()
    }

    /// Records, from now on, how many threads work, and how many may while a task is in flight.
    pub(super) fn note_threads(&mut self) {
        let permitted = if self.flights.is_empty() {
            0
        } else {
            self.limits.threads
        };
        self.stats.threads(self.threads, permitted);
    }

    /// Records what this thread did for a batch, if spans are recorded.
    pub(super) fn record(&self, seq: u64, stage: Stage, begin: Instant, end: Instant) {
        if let Some(recording) = &self.recording {
            recording.add(seq, stage, begin, end);
        }
    }

    /// As [`State::record`], of a stage that ends now; `took` gets the end.
    pub(super) fn record_until_now(
        &self,
        seq: u64,
        stage: Stage,
        took: impl Fn(Instant) -> Duration,
    ) {
        if let Some(recording) = &self.recording {
            let end = Instant::now();
            let begin = end.checked_sub(took(end)).unwrap_or(end);
            recording.add(seq, stage, begin, end);
        }
    }

    fn at(&self, seq: u64) -> Option<usize> {
        self.flights
            .binary_search_by_key(&seq, |flight| flight.seq)
            .ok()
    }

    /// Stores the begun batch. A batch of no samples is complete at once.
    pub(super) fn begun(&mut self, seq: u64, batch: Result<W::Batch>) -> Next<W> {
        let Some(at) = self.at(seq) else {
            return Next::Nothing;
        };
        let begun = self.flights[at].begun;
        self.record_until_now(seq, Stage::Begin, |now| now - begun.unwrap_or(now));
        let flight = &mut self.flights[at];
        match batch {
            Ok(batch) if flight.samples == 0 => {
                flight.body = Body::Taken;
                Next::Finish(batch)
            }
            Ok(batch) => {
                flight.body = Body::Begun(Arc::new(batch));
                Next::Nothing
            }
            Err(error) => {
                flight.body = Body::Taken;
                flight.result = Some(Err(error));
                self.ready += 1;
                Next::Arrived
            }
        }
    }

    /// Keeps a fetched sample until a thread computes it.
    pub(super) fn keep_fetched(&mut self, seq: u64, position: usize, fetched: W::Fetched) {
        if let Some(at) = self.at(seq) {
            self.flights[at].fetched.push((position, fetched));
        }
    }

    /// Counts `count` samples as complete, `failures` of them failed, and ends `turns` turns that held the
    /// batch.
    pub(super) fn completed(
        &mut self,
        work: &W,
        seq: u64,
        count: usize,
        turns: usize,
        mut failures: Vec<(usize, Error)>,
    ) -> Next<W> {
        let Some(at) = self.at(seq) else {
            return Next::Nothing;
        };
        let flight = &mut self.flights[at];
        if !flight.is_again {
            self.stats.samples += count as u64;
        }
        flight.open -= count + turns;
        if !failures.is_empty() {
            flight.failures.append(&mut failures);
            if !work.is_tolerant() {
                // Unclaimed samples come after the failed one, so none of them can be the first error by
                // position.
                flight.open -= flight.samples - flight.unclaimed;
                flight.unclaimed = flight.samples;
            }
        }
        if flight.open > 0 {
            return Next::Nothing;
        }
        let Body::Begun(batch) = std::mem::replace(&mut flight.body, Body::Taken) else {
            return Next::Nothing;
        };
        let failures = std::mem::take(&mut flight.failures);
        // Succeeds: every turn drops its reference before it completes its last sample.
        match Arc::into_inner(batch) {
            Some(batch) if failures.is_empty() => return Next::Finish(batch),
            Some(batch) => return Next::Decide(batch, failures),
            None => flight.result = Some(Err(Error::Abandoned)),
        }
        self.ready += 1;
        Next::Arrived
    }

    /// Puts another task in the place of a batch with failed samples, to be begun after `pause`; returns how
    /// many threads to wake for it now: none if there is a pause, which the consumer ends.
    pub(super) fn replaced(
        &mut self,
        seq: u64,
        task: W::Task,
        samples: usize,
        pause: Duration,
    ) -> usize {
        let Some(at) = self.at(seq) else {
            return 0;
        };
        let flight = &mut self.flights[at];
        flight.body = Body::Waiting(task);
        (flight.samples, flight.unclaimed, flight.open) = (samples, 0, samples);
        flight.is_again = true;
        flight.not_before = (!pause.is_zero()).then(|| Instant::now() + pause);
        self.unbegun += samples;
        if pause.is_zero() {
            self.threads_to_wake(samples, 0).max(1)
        } else {
            0
        }
    }

    /// Returns the time until the first paused task may be begun; None if no task is paused.
    pub(super) fn pause(&self) -> Option<Duration> {
        let starts = self.flights.iter().filter_map(|flight| flight.not_before);
        let first = starts.min()?;
        Some(first.saturating_duration_since(Instant::now()))
    }

    /// Ends the pauses that are over; returns how many threads to wake.
    pub(super) fn resume(&mut self) -> usize {
        let now = Instant::now();
        let mut samples = 0;
        for flight in &mut self.flights {
            if flight.not_before.is_some_and(|start| start <= now) {
                flight.not_before = None;
                samples += flight.samples;
            }
        }
        self.threads_to_wake(samples, 0).max(1)
    }

    /// Stores the result, finished at `now`, until the consumer takes it.
    pub(super) fn arrived(&mut self, seq: u64, result: Result<W::Output>, now: Instant) {
        if let Some(at) = self.at(seq) {
            self.flights[at].result = Some(result);
            self.ready += 1;
            if let Some(begun) = self.flights[at].begun {
                self.stats.making.add(now - begun, 1);
            }
        }
    }

    /// Takes the next result in order, or any result if the stream is unordered.
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

    /// Returns true if a consumer sleeps although a batch can be taken.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting > 0 && self.is_ready()
    }

    /// Returns true if [`State::take`] would return a result.
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

    /// Cancels the stream and returns its flights, for the caller to drop outside of the lock.
    pub(super) fn cancel(&mut self) -> VecDeque<Flight<W>> {
        self.cancelled = true;
        (self.planned_bytes, self.ready, self.unbegun) = (0, 0, 0);
        let flights = std::mem::take(&mut self.flights);
        self.note_threads();
        flights
    }

    /// Returns how many threads are (fetching, computing, in a turn), for a time-out's message.
    pub(super) fn activity(&self) -> (usize, usize, usize) {
        (self.fetching, self.computing, self.threads)
    }
}
