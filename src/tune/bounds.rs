//! The bounds of the settings.

use super::{Settings, Window};

/// The share of the free memory that new workers may take.
const SPARED: f64 = 0.5;

/// The share of a worker below which adding one is not worth a trial.
const PART: f64 = 0.05;

/// The limits of the machine, and the settings that the user has fixed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Cores that this process may use.
    pub cores: f64,
    /// Maximum of workers.
    pub most_workers: usize,
    /// Maximum of batches in flight.
    pub most_depth: usize,
    /// Maximum bytes of the batches in flight.
    pub budget_bytes: f64,
    /// True if one worker makes a whole batch: fewer batches in flight than workers leave some idle.
    pub whole_batches: bool,
    /// True if the user has set the number of workers.
    pub workers_are_fixed: bool,
    /// True if the user has set the depth.
    pub depth_is_fixed: bool,
}

impl Bounds {
    /// Returns true if nothing is left to decide.
    pub(super) fn leave_nothing(&self) -> bool {
        self.workers_are_fixed && self.depth_is_fixed
    }

    /// Returns the same bounds without the user's settings.
    pub(super) fn freed(&self) -> Bounds {
        Bounds {
            workers_are_fixed: false,
            depth_is_fixed: false,
            ..*self
        }
    }

    /// Returns `next` within the bounds, with fixed settings taken from `now`.
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

    /// Returns the depth for `workers` that has as many batches per worker as `now` has.
    pub(super) fn scaled(&self, now: Settings, workers: usize) -> usize {
        if self.whole_batches {
            (now.depth * workers).div_ceil(now.workers.max(1))
        } else {
            now.depth
        }
    }

    /// Returns the minimum of batches in flight with which `workers` stay busy while one is handed over.
    pub(super) fn least_depth(&self, workers: usize) -> usize {
        let least = if self.whole_batches { workers + 1 } else { 2 };
        least.min(self.most_depth.max(1))
    }

    /// Returns the maximum of batches in flight that the budget allows.
    #[allow(clippy::cast_sign_loss)] // neither is negative
    pub(super) fn deepest(&self, window: &Window) -> usize {
        let held = self.budget_bytes / window.batch_bytes.max(1.0);
        (held as usize).clamp(1, self.most_depth.max(1))
    }

    /// Returns the maximum of workers for which there is memory: half of the free memory for new ones, and,
    /// if each makes a whole batch, one batch per worker within the budget.
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

    /// Returns the maximum of workers that are of use: as many as the cores can feed, more if they wait for
    /// files rather than compute, fewer if all wait for one lock.
    #[allow(clippy::cast_sign_loss)] // not negative
    pub(super) fn useful_workers(&self, window: &Window) -> usize {
        (self.fed(window).floor() as usize).clamp(1, self.most_workers.max(1))
    }

    /// Returns the maximum of workers that may be of use: one more if the cores could feed it in part.
    #[allow(clippy::cast_sign_loss)]
    pub(super) fn promising_workers(&self, window: &Window) -> usize {
        ((self.fed(window) - PART).ceil() as usize).clamp(1, self.most_workers.max(1))
    }

    /// Returns the number of workers that the cores, and what workers share, can feed.
    fn fed(&self, window: &Window) -> f64 {
        let fed = self.cores * window.blocked();
        if window.serial_s > 0.0 {
            fed.min((window.work_s / window.serial_s).ceil())
        } else {
            fed
        }
    }
}
