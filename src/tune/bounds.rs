//! Between what the settings may lie.

use super::{Settings, Window};

/// The part of the free memory that new workers may take.
const SPARED: f64 = 0.5;

/// The part of a worker that is not worth trying one for.
const PART: f64 = 0.05;

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
    /// Whether nothing is left to decide.
    pub(super) fn leave_nothing(&self) -> bool {
        self.workers_are_fixed && self.depth_is_fixed
    }

    /// Returns the same bounds, for what would be decided if nobody had.
    pub(super) fn freed(&self) -> Bounds {
        Bounds {
            workers_are_fixed: false,
            depth_is_fixed: false,
            ..*self
        }
    }

    /// Returns `next` within the bounds, with what is fixed as it is in `now`.
    pub(super) fn clamp(&self, next: Settings, now: Settings, window: &Window) -> Settings {
        let workers = if self.workers_are_fixed {
            now.workers
        } else {
            next.workers.clamp(1, self.affordable(window, now))
        };
        let depth = if self.depth_is_fixed {
            self.scaled(now, workers)
        } else {
            let least = self.least_depth(workers);
            let most = self.most_depth.min(self.deepest(window));
            next.depth.clamp(least, most.max(least))
        };
        Settings { workers, depth }
    }

    /// Returns the depth that is as much for `workers` as that of `now` is for its own.
    pub(super) fn scaled(&self, now: Settings, workers: usize) -> usize {
        if self.whole_batches {
            (now.depth * workers).div_ceil(now.workers.max(1))
        } else {
            now.depth
        }
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

    /// Most workers for which there is memory: a half of what is free for new ones, and a batch in
    /// hand for each, within the budget, where one makes it alone.
    #[allow(clippy::cast_sign_loss)] // neither is negative
    fn affordable(&self, window: &Window, now: Settings) -> usize {
        let mut most = self.most_workers;
        if window.worker_bytes > 0.0 {
            let further = SPARED * window.machine.free_bytes / window.worker_bytes;
            most = most.min(now.workers.saturating_add(further as usize));
        }
        if self.whole_batches {
            let deepest = self.deepest(window);
            let in_hand = if self.depth_is_fixed {
                deepest / (now.depth / now.workers.max(1)).max(1)
            } else {
                deepest - 1
            };
            most = most.min(in_hand);
        }
        most.max(1)
    }

    /// Most workers that are of use: as many as the cores can feed, more where they wait for files
    /// rather than compute, fewer where all wait for one thing.
    #[allow(clippy::cast_sign_loss)] // not negative
    pub(super) fn useful_workers(&self, window: &Window) -> usize {
        (self.fed(window).floor() as usize).clamp(1, self.most_workers.max(1))
    }

    /// Most workers that might be: one more where the cores could feed it in part.
    #[allow(clippy::cast_sign_loss)]
    pub(super) fn promising_workers(&self, window: &Window) -> usize {
        ((self.fed(window) - PART).ceil() as usize).clamp(1, self.most_workers.max(1))
    }

    /// How many workers the cores can feed, and what they share.
    fn fed(&self, window: &Window) -> f64 {
        let fed = self.cores * window.blocked();
        if window.serial_s > 0.0 {
            fed.min((window.work_s / window.serial_s).ceil())
        } else {
            fed
        }
    }
}
