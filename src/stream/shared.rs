//! The state that a stream's consumer and its threads share, and one turn of work.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use crate::caught;
use crate::error::{Error, Result};
use crate::planted::{Bug, planted};
use crate::pool::{Notifier, Source};
use crate::spans::Stage;
use crate::stats::Stages;
use crate::sync::atomic::AtomicBool;
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, lock};
use crate::wanted;

use super::Completion;
use super::claims::{Claim, Next};
use super::state::State;
use super::work::{Again, Chunk, Work};

/// See the module's documentation.
pub(super) struct Shared<W: Work> {
    /// Makes the batches.
    pub(super) work: W,
    /// The schedule.
    pub(super) state: Mutex<State<W>>,
    /// Signals the consumer that a batch is ready.
    pub(super) ready: Condvar,
    /// Wakes pool threads.
    pub(super) notifier: Box<dyn Notifier>,
    /// Set when the stream is cancelled; long work polls it.
    pub(super) cancelled: Arc<AtomicBool>,
    /// A reference to itself, for [`Completion`]s.
    pub(super) this: std::sync::Weak<Shared<W>>,
}

/// Runs `body`; a panic becomes an error.
fn guarded<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        let message = caught::words(&*payload).unwrap_or("no message").to_owned();
        Err(Error::Panic { message })
    })
}

impl<W: Work> Shared<W> {
    /// Begins a batch; returns this thread's next work.
    fn begin(&self, seq: u64, task: W::Task) -> Option<Claim<W>> {
        let samples = self.work.samples(&task);
        let batch = guarded(|| self.work.begin(task));
        let mut state = lock(&self.state);
        let next = state.begun(seq, batch);
        let claim = state.next_claim();
        // Threads that skipped the batch while it was begun are woken again.
        let others = state.threads_to_wake(samples, 1);
        drop(state);
        self.handle(seq, next);
        self.notifier.notify(others);
        claim
    }

    fn fetch(&self, seq: u64, batch: Arc<W::Batch>, range: std::ops::Range<usize>) {
        let mut stages = Stages::default();
        let mut failures = Vec::new();
        let mut fetched = Vec::with_capacity(range.len());
        for position in range {
            match guarded(|| self.work.fetch(&batch, position, &mut stages)) {
                Ok(sample) => fetched.push((position, sample)),
                Err(error) => failures.push((position, error)),
            }
        }
        let mut state = lock(&self.state);
        state.record_until_now(seq, Stage::Read, |_| stages.read);
        state.fetching -= 1;
        state.computing += 1;
        drop(state);
        self.compute(seq, batch, Chunk::Fetched(fetched), failures, stages, false);
    }

    /// Computes samples; returns this thread's next work if it `continues`.
    fn compute(
        &self,
        seq: u64,
        batch: Arc<W::Batch>,
        chunk: Chunk<W::Fetched>,
        mut failures: Vec<(usize, Error)>,
        mut stages: Stages,
        continues: bool,
    ) -> Option<Claim<W>> {
        let count = chunk.len();
        let unfetched = failures.len();
        let first = chunk.positions().next();
        let left = Cell::new(0);
        let later = |position| {
            left.set(left.get() + 1);
            self.completion(seq, position)
        };
        let begun = Instant::now();
        let run = guarded(|| {
            self.work
                .compute(&batch, chunk, begun, &later, &mut failures, &mut stages);
            Ok(())
        });
        let elapsed = begun.elapsed();
        if let Err(error) = run {
            // The panicking sample is unknown; the first one of the chunk carries the error.
            failures.extend(first.map(|position| (position, error)));
        }
        drop(batch);
        let over = count + unfetched - left.get();
        let mut state = lock(&self.state);
        let (decoded, ended) = (begun + stages.decode, begun + elapsed);
        state.record(seq, Stage::Decode, begun, decoded.min(ended));
        state.record(seq, Stage::Transform, decoded, ended);
        state.observe(count, elapsed);
        let next = state.completed(&self.work, seq, over, 1, failures);
        let mut to_wake = 0;
        match next {
            Next::Finish(batch) => {
                drop(state);
                state = self.finish(seq, batch, stages);
            }
            Next::Decide(batch, failures) => {
                state.stats.stages.add(&stages);
                drop(state);
                (state, to_wake) = self.decide(seq, batch, failures);
            }
            Next::Nothing | Next::Arrived => state.stats.stages.add(&stages),
        }
        let claim = state.computed(continues);
        self.wake_consumer(state);
        self.notifier.notify(to_wake); // once this thread has left its permit
        claim
    }

    /// Returns the completion of a sample; only called within a turn.
    fn completion(&self, seq: u64, position: usize) -> Completion<W> {
        // A thread in a turn holds an `Arc` of the stream, so the upgrade succeeds.
        let shared = self.this.upgrade();
        let shared = shared.unwrap_or_else(|| unreachable!("a turn holds its stream"));
        Completion::new(shared, seq, position)
    }

    /// Finishes the batch, if its last sample was completed, and wakes the consumer.
    fn handle(&self, seq: u64, next: Next<W>) {
        let (state, to_wake) = match next {
            Next::Nothing => return,
            Next::Arrived => (lock(&self.state), 0),
            Next::Finish(batch) => (self.finish(seq, batch, Stages::default()), 0),
            Next::Decide(batch, failures) => self.decide(seq, batch, failures),
        };
        self.wake_consumer(state);
        self.notifier.notify(to_wake);
    }

    /// Joins the samples of a batch; counts the stages of the turn that completed it.
    fn finish(&self, seq: u64, batch: W::Batch, mut stages: Stages) -> MutexGuard<'_, State<W>> {
        let begun = Instant::now();
        let result = guarded(|| self.work.finish(batch));
        let now = Instant::now();
        stages.collate += now - begun;
        let mut state = lock(&self.state);
        state.record(seq, Stage::Collate, begun, now);
        state.stats.stages.add(&stages);
        state.arrived(seq, result, now);
        state
    }

    /// Puts another task, a result or an error in the place of a batch with failed samples; returns how many
    /// threads to wake for the task.
    fn decide(
        &self,
        seq: u64,
        batch: W::Batch,
        failures: Vec<(usize, Error)>,
    ) -> (MutexGuard<'_, State<W>>, usize) {
        let decision = guarded(|| self.work.again(seq, batch, failures));
        let mut state = lock(&self.state);
        let result = match decision {
            Ok(Again::Task(task, pause)) => {
                let samples = self.work.samples(&task);
                let to_wake = state.replaced(seq, task, samples, pause);
                if to_wake == 0 {
                    self.ready.notify_all(); // a consumer that sleeps is to wake when the pause ends
                }
                return (state, to_wake);
            }
            Ok(Again::Output(output)) => Ok(output),
            Err(error) => Err(error),
        };
        state.arrived(seq, result, Instant::now());
        (state, 0)
    }

    /// Wakes the consumer if it waits for a batch that is ready now.
    fn wake_consumer(&self, state: MutexGuard<'_, State<W>>) {
        let is_awaited = state.is_awaited() && !planted(Bug::LostWakeUp);
        drop(state);
        if is_awaited {
            self.ready.notify_all();
        }
    }

    /// Keeps a sample that another executor fetched.
    pub(super) fn fetched(&self, seq: u64, position: usize, fetched: W::Fetched) {
        lock(&self.state).keep_fetched(seq, position, fetched);
        self.notifier.notify(1);
    }

    /// Notes the error of a sample that was left to another executor.
    pub(super) fn failed(&self, seq: u64, position: usize, error: Error) {
        let failures = vec![(position, error)];
        let next = lock(&self.state).completed(&self.work, seq, 1, 0, failures);
        self.handle(seq, next);
    }

    /// Does one piece of work; returns true if there was any. For a pool thread a piece is as many samples as
    /// a claim may have, of any number of batches, so that small batches cost few visits to the pool. For a
    /// consumer it is one batch.
    pub(super) fn work_on(&self, is_consumer: bool) -> bool {
        let mut state = lock(&self.state);
        let most = if is_consumer { 0 } else { state.chunk() };
        let mut claim = state.claim(is_consumer);
        drop(state);
        if claim.is_none() {
            return false;
        }
        let mut computed = 0;
        wanted::until(&self.cancelled, || {
            while let Some(next) = claim {
                claim = match next {
                    Claim::Begin(seq, task) => self.begin(seq, task),
                    Claim::Fetch(seq, batch, range) => {
                        self.fetch(seq, batch, range);
                        None
                    }
                    Claim::Compute(seq, batch, chunk) => {
                        computed += chunk.len();
                        let (failures, stages) = (Vec::new(), Stages::default());
                        self.compute(seq, batch, chunk, failures, stages, computed < most)
                    }
                };
            }
        });
        true
    }
}

impl<W: Work> Source for Shared<W> {
    fn turn(&self) -> bool {
        self.work_on(false)
    }

    fn threads(&self) -> usize {
        lock(&self.state).limits.threads
    }

    fn active(&self) -> usize {
        lock(&self.state).activity().2
    }
}
