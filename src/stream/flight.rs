//! One task in flight, and the work that a thread can take from it.

use std::ops::Range;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::sync::Arc;

use super::work::{Chunk, Work};

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
