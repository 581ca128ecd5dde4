//! Completes a sample from an executor that is not a pool thread.

use crate::error::{Error, Result};
use crate::sync::Arc;

use super::shared::Shared;
use super::work::Work;

/// The right, and the duty, to complete one sample; from any thread, once.
///
/// Dropping it completes the sample with [`Error::Abandoned`], so no batch waits forever.
pub struct Completion<W: Work> {
    shared: Arc<Shared<W>>,
    batch: Option<Arc<W::Batch>>,
    seq: u64,
    position: usize,
}

impl<W: Work> std::fmt::Debug for Completion<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Completion")
            .field("seq", &self.seq)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl<W: Work> Completion<W> {
    pub(super) fn new(
        shared: Arc<Shared<W>>,
        batch: Arc<W::Batch>,
        seq: u64,
        position: usize,
    ) -> Completion<W> {
        Completion {
            shared,
            batch: Some(batch),
            seq,
            position,
        }
    }

    /// Returns the position of the sample in its batch.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the batch, for executors that write the sample into it themselves.
    pub fn batch(&self) -> Option<&W::Batch> {
        self.batch.as_deref()
    }

    /// Hands in the fetched sample; a pool thread computes it.
    pub fn fetched(mut self, fetched: W::Fetched) {
        if self.batch.take().is_some() {
            self.shared
                .fetched(self.seq, vec![(self.position, fetched)]);
        }
    }

    /// Completes the sample: it is in the batch, or it failed.
    pub fn done(mut self, outcome: Result<()>) {
        self.complete(outcome);
    }

    fn complete(&mut self, outcome: Result<()>) {
        // Drop the reference to the batch first: the thread that completes its last sample takes it by value.
        if self.batch.take().is_some() {
            let failures = outcome.err().map(|error| (self.position, error));
            self.shared
                .completed(self.seq, 1, failures.into_iter().collect());
        }
    }
}

impl<W: Work> Drop for Completion<W> {
    fn drop(&mut self) {
        self.complete(Err(Error::Abandoned));
    }
}
