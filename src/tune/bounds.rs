//! Between what the settings may lie.

use super::{Settings, Window};

/// What the machine and the user leave to decide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Processors that this process may fill.
    pub cores: f64,
    /// Most workers.
    pub most_workers: usize,
    /// Most batches in flight.
    pub most_depth: usize,
    /// Bytes that batches in flight may take.
    pub budget_bytes: f64,
    /// Whether a batch is made by one worker alone: fewer batches in flight leave some without one.
    pub whole_batches: bool,
    /// The number of workers is the user's.
    pub workers_are_fixed: bool,
    /// The depth is the user's.
    pub depth_is_fixed: bool,
}

impl Bounds {
    /// Returns `next` within the bounds, with what is fixed as it is in `now`.
    pub(super) fn clamp(&self, next: Settings, now: Settings) -> Settings {
        let workers = if self.workers_are_fixed {
            now.workers
        } else {
            next.workers.clamp(1, self.most_workers.max(1))
        };
        let depth = if self.depth_is_fixed {
            now.depth
        } else {
            let least = self.least_depth(workers);
            next.depth.clamp(least, self.most_depth.max(least))
        };
        Settings { workers, depth }
    }

    /// Fewest batches in flight with which `workers` are at work while one is handed over.
    pub(super) fn least_depth(&self, workers: usize) -> usize {
        let least = if self.whole_batches { workers + 1 } else { 2 };
        least.min(self.most_depth.max(1))
    }

    /// Most batches in flight that the budget holds.
    #[allow(clippy::cast_sign_loss)] // neither is negative
    pub(super) fn deepest(&self, window: &Window) -> usize {
        let held = self.budget_bytes / window.batch_bytes.max(1.0);
        (held as usize).clamp(1, self.most_depth.max(1))
    }

    /// Most workers that can be of use: as many as the cores can feed, more where they wait for files
    /// rather than compute, fewer where all wait for one thing.
    #[allow(clippy::cast_sign_loss)]
    pub(super) fn useful_workers(&self, window: &Window) -> usize {
        let blocked = if window.cpu_s > 0.0 {
            window.work_s / window.cpu_s
        } else {
            1.0
        };
        let mut most = (self.cores * blocked).floor();
        if window.serial_s > 0.0 {
            most = most.min((window.work_s / window.serial_s).ceil());
        }
        (most as usize).clamp(1, self.most_workers.max(1))
    }
}
