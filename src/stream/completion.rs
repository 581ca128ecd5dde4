//! Completes a sample from an executor that is not a pool thread.

use crate::error::Error;
use crate::sync::Arc;

use super::shared::Shared;
use super::work::Work;

/// The right, and the duty, to complete one sample; from any thread, once.
///
/// Dropping it fails the sample with [`Error::Abandoned`], so no batch waits forever.
pub struct Completion<W: Work> {
    /// None once the sample is completed.
    shared: Option<Arc<Shared<W>>>,
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
