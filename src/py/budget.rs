//! Plans how much of a stream's budget each batch takes.
//!
//! Owns the estimate for batches of unknown shapes, from the batches made so far. Inspects samples only when
//! the budget may be exceeded.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::order::Indices;
use crate::program::{Planned, Program};
use crate::sync::{Mutex, lock};

/// The budget of a stream.
pub(super) struct Budget {
    bytes: usize,
    /// Maximum of batches in flight.
    depth: AtomicUsize,
    /// A number of samples, and the maximum planned size of a batch of so many, if it is known.
    most: Mutex<(usize, Option<usize>)>,
    /// Size of the largest batch so far, in bytes.
    largest_bytes: AtomicU64,
    /// Number of batches planned to take more than the whole budget.
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

    /// Plans the size of a batch. Inspects its samples only if the batches in flight might exceed the budget.
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

    /// Returns the bytes that a batch counts for. With unknown shapes: half of the budget until one was made,
    /// so that two are in flight at first; then twice the largest so far, because its samples are copied once
    /// at the end.
    pub(super) fn bytes(&self, planned: Planned) -> usize {
        if planned.is_whole {
            return planned.bytes;
        }
        match self.largest_bytes() as usize {
            0 => planned.bytes.max(self.bytes / 2),
            largest => planned.bytes.max(largest.saturating_mul(2)),
        }
    }

    /// Counts a batch that is admitted for `bytes`.
    pub(super) fn count(&self, bytes: usize) {
        let is_oversize = bytes > self.bytes;
        self.oversize
            .fetch_add(u64::from(is_oversize), Ordering::Relaxed);
    }

    /// Records the size of a finished batch.
    pub(super) fn took(&self, bytes: usize) {
        self.largest_bytes
            .fetch_max(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn largest_bytes(&self) -> u64 {
        self.largest_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of batches planned to take more than the whole budget.
    pub(super) fn oversize(&self) -> u64 {
        self.oversize.load(Ordering::Relaxed)
    }
}
