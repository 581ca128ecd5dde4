//! What the batches of a stream are planned to take of its budget.
//!
//! Owns the estimate where shapes are not known: from the batches that were made. Looks at samples only where
//! it matters.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::order::Indices;
use crate::program::{Planned, Program};
use crate::sync::{Mutex, lock};

/// The budget of a stream.
pub(super) struct Budget {
    bytes: usize,
    /// Most batches in flight.
    depth: AtomicUsize,
    /// A number of samples, and the most that a batch of as many can be planned to take, if that is known.
    most: Mutex<(usize, Option<usize>)>,
    /// Bytes of the largest batch so far.
    largest_bytes: AtomicU64,
    /// Batches that were planned to take more than all of it.
    oversize: AtomicU64,
}

impl Budget {
    pub(super) fn new(bytes: usize, depth: usize) -> Budget {
        Budget {
            bytes,
            depth: AtomicUsize::new(depth),
            most: Mutex::new((0, Some(0))),
            largest_bytes: AtomicU64::new(0),
            oversize: AtomicU64::new(0),
        }
    }

    pub(super) fn set_depth(&self, depth: usize) {
        self.depth.store(depth, Ordering::Relaxed);
    }

    /// Returns what is known of the bytes of a batch. Its samples are only looked at where the most that
    /// batches in flight can take might be more than the budget.
    pub(super) fn plan(&self, program: &Program, indices: &Indices) -> Planned {
        let samples = indices.len();
        let mut most = lock(&self.most);
        if most.0 != samples {
            *most = (samples, program.most(samples));
        }
        let depth = self.depth.load(Ordering::Relaxed);
        let fits = |&bytes: &usize| bytes.saturating_mul(depth) <= self.bytes;
        match most.1.filter(fits) {
            Some(bytes) => Planned {
                bytes,
                is_whole: true,
            },
            None => program.planned(indices),
        }
    }

    /// Returns the bytes that a batch is let in for. Of unknown shape: half of the budget until one was seen,
    /// so that two are made at first; then twice the largest so far, for its samples are joined at the end.
    pub(super) fn bytes(&self, planned: Planned) -> usize {
        if planned.is_whole {
            return planned.bytes;
        }
        match self.largest_bytes() as usize {
            0 => planned.bytes.max(self.bytes / 2),
            largest => planned.bytes.max(largest.saturating_mul(2)),
        }
    }

    /// Counts a batch that is let in for `bytes`.
    pub(super) fn count(&self, bytes: usize) {
        let is_oversize = bytes > self.bytes;
        self.oversize
            .fetch_add(u64::from(is_oversize), Ordering::Relaxed);
    }

    /// Notes what a finished batch took.
    pub(super) fn took(&self, bytes: usize) {
        self.largest_bytes
            .fetch_max(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn largest_bytes(&self) -> u64 {
        self.largest_bytes.load(Ordering::Relaxed)
    }

    /// Batches that were planned to take more than the budget.
    pub(super) fn oversize(&self) -> u64 {
        self.oversize.load(Ordering::Relaxed)
    }
}
