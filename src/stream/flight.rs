//! One task in flight, and what a thread may do for it.

use std::ops::Range;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::sync::Arc;

use super::work::{Chunk, Work};

/// What is known of a batch before it is finished.
pub(super) enum Body<W: Work> {
    /// Nobody has begun.
    Waiting(W::Task),
    /// A thread is making room.
    Beginning,
    /// Samples are being made.
    Begun(Arc<W::Batch>),
    /// Taken by the thread that finishes it, or without a batch.
    Over,
}

/// One task in flight.
pub(super) struct Flight<W: Work> {
    pub(super) seq: u64,
    pub(super) body: Body<W>,
    pub(super) state: Option<Box<[u8]>>,
    pub(super) bytes: usize,
    pub(super) samples: usize,
    pub(super) unclaimed: usize,
    pub(super) fetched: Vec<(usize, W::Fetched)>,
    pub(super) open: usize,
    pub(super) failures: Vec<(usize, Error)>,
    /// When a thread began with it.
    pub(super) begun: Option<Instant>,
    pub(super) result: Option<Result<W::Output>>,
}

/// What a thread may do next.
pub(super) enum Claim<W: Work> {
    Begin(u64, W::Task),
    Fetch(u64, Arc<W::Batch>, Range<usize>),
    Compute(u64, Arc<W::Batch>, Chunk<W::Fetched>),
}

/// What the thread that completed samples must do now.
pub(super) enum Next<W: Work> {
    Nothing,
    /// The last sample was completed: join them.
    Finish(W::Batch),
    /// The result of a flight is there.
    Arrived,
}
