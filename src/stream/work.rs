//! The work that a stream runs. The engine knows only tasks, samples by position, and outcomes.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::stats::Stages;
use crate::sync::Arc;

use super::shared::Shared;

/// Makes batches for the engine.
///
/// A sample is a small state machine: to fetch, fetched, computed; or failed at any point. All methods are
/// called from several threads at once.
pub trait Work: Send + Sync + Sized + 'static {
    /// The description that a batch is made from.
    type Task: Send + 'static;
    /// A batch in the making.
    type Batch: Send + Sync + 'static;
    /// The result of fetching a sample.
    type Fetched: Send + 'static;
    /// A finished batch.
    type Output: Send + 'static;

    /// Returns the number of samples of a task.
    fn samples(&self, task: &Self::Task) -> usize;

    /// Returns true if samples are fetched before they are computed.
    fn fetches(&self) -> bool;

    /// Returns a first guess of the cost of computing one sample, in nanoseconds.
    fn cost_ns(&self) -> f64;

    /// Makes room for a batch; called once, by the first thread that works on it.
    fn begin(&self, task: Self::Task) -> Result<Self::Batch>;

    /// Returns the dataset index of a sample, for messages.
    fn index(&self, batch: &Self::Batch, position: usize) -> i64;

    /// Fetches one sample.
    fn fetch(
        &self,
        batch: &Self::Batch,
        position: usize,
        stages: &mut Stages,
    ) -> Result<Self::Fetched>;

    /// Computes samples into the batch. Appends the failed ones to `failures`, with their positions. Takes a
    /// [`Completion`] from `later` for each sample that it leaves to another executor. `begun` is the time of
    /// the call.
    fn compute(
        &self,
        batch: &Self::Batch,
        chunk: Chunk<Self::Fetched>,
        begun: Instant,
        later: &dyn Fn(usize) -> Completion<Self>,
        failures: &mut Vec<(usize, Error)>,
        stages: &mut Stages,
    );

    /// Joins the samples; called once, after all of them are computed.
    fn finish(&self, batch: Self::Batch) -> Result<Self::Output>;

    /// Returns true if all samples of a batch are tried although one has failed.
    fn is_tolerant(&self) -> bool {
        false
    }

    /// Returns what takes the place of the batch `seq`, given the samples that failed, by position. The
    /// samples that are not among them are computed if the work is tolerant.
    fn again(
        &self,
        seq: u64,
        batch: Self::Batch,
        failures: Vec<(usize, Error)>,
    ) -> Result<Again<Self::Task, Self::Output>> {
        Err(self.first_failure(seq, &batch, failures))
    }

    /// Returns the error of the first failed sample.
    fn first_failure(&self, seq: u64, batch: &Self::Batch, failures: Vec<(usize, Error)>) -> Error {
        let first = failures.into_iter().min_by_key(|(position, _)| *position);
        let (position, source) = first.unwrap_or((0, Error::Abandoned));
        Error::Sample {
            index: self.index(batch, position),
            position,
            seq,
            source: Box::new(source),
        }
    }
}

/// The replacement of a batch with failed samples.
#[derive(Debug)]
pub enum Again<T, O> {
    /// Another task, to be begun after a pause.
    Task(T, Duration),
    /// A finished batch.
    Output(O),
}

/// Samples to compute in one call.
#[derive(Debug)]
pub enum Chunk<F> {
    /// Consecutive positions that need no fetching.
    Range(std::ops::Range<usize>),
    /// Fetched samples by position.
    Fetched(Vec<(usize, F)>),
}

impl<F> Chunk<F> {
    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        match self {
            Chunk::Range(range) => range.len(),
            Chunk::Fetched(samples) => samples.len(),
        }
    }

    /// Returns the positions, in the order of the samples.
    pub fn positions(&self) -> impl Iterator<Item = usize> {
        let (range, fetched) = match self {
            Chunk::Range(range) => (range.clone(), [].as_slice()),
            Chunk::Fetched(samples) => (0..0, samples.as_slice()),
        };
        range.chain(fetched.iter().map(|(position, _)| *position))
    }
}

/// The right, and the duty, to complete one sample; from any thread, once.
///
/// Dropping it fails the sample with [`Error::Abandoned`], so no batch waits forever.
pub struct Completion<W: Work> {
    /// None once the sample is completed.
    shared: Option<Arc<Shared<W>>>,
    seq: u64,
    position: usize,
}

impl<W: Work> Completion<W> {
    pub(super) fn new(shared: Arc<Shared<W>>, seq: u64, position: usize) -> Completion<W> {
        Completion {
            shared: Some(shared),
            seq,
            position,
        }
    }

    /// Hands in the fetched sample; a pool thread computes it.
    pub fn fetched(mut self, fetched: W::Fetched) {
        if let Some(shared) = self.shared.take() {
            shared.fetched(self.seq, self.position, fetched);
        }
    }

    /// Fails the sample.
    pub fn failed(mut self, error: Error) {
        self.fail(error);
    }

    fn fail(&mut self, error: Error) {
        if let Some(shared) = self.shared.take() {
            shared.failed(self.seq, self.position, error);
        }
    }
}

impl<W: Work> Drop for Completion<W> {
    fn drop(&mut self) {
        self.fail(Error::Abandoned);
    }
}
