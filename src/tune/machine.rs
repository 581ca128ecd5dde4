//! A simulated machine to tune on: a loader and a training, by operational analysis.

use super::{Bounds, Decision, History, Settings, Window, decide};

/// Samples of a batch.
const BATCH: f64 = 64.0;

/// Windows after which the tuner must have settled: a minute, at two seconds each.
pub(super) const MINUTE: usize = 30;

/// Returns the initial settings of a loader on so many cores.
pub(super) fn start(cores: usize) -> Settings {
    Settings {
        workers: cores,
        depth: 2 * cores,
    }
}

/// A pipeline, the training after it, and the cores under both. Times are seconds per batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    /// Number of cores.
    pub(super) cores: f64,
    /// Computing.
    pub(super) cpu_s: f64,
    /// Waiting for files.
    pub(super) blocked_s: f64,
    /// Holding a lock that all workers share.
    pub(super) serial_s: f64,
    /// The work that each further worker adds to that of all, as a share of it.
    pub(super) contention: f64,
    /// The training's own time.
    pub(super) step_s: f64,
    /// Cores that the training computes on; 0 for one that waits for an accelerator.
    pub(super) step_cores: f64,
    /// Variation of the windows, as a share.
    pub(super) noise: f64,
}

impl Machine {
    /// Returns a machine without files, locks or contention.
    pub(super) fn with(cores: f64, cpu_s: f64, step_s: f64) -> Machine {
        Machine {
            cores,
            cpu_s,
            step_s,
            blocked_s: 0.0,
            serial_s: 0.0,
            contention: 0.0,
            step_cores: 0.0,
            noise: 0.0,
        }
    }

    /// Returns the time of a step next to this many workers, and the batches per second.
    fn pace(&self, workers: usize) -> (f64, f64) {
        let workers = workers as f64;
        let work = (self.cpu_s + self.blocked_s) * (1.0 + self.contention * (workers - 1.0));
        let cores = self.cores / (self.cpu_s * (1.0 + self.contention * (workers - 1.0)));
        let serial = if self.serial_s > 0.0 {
            1.0 / self.serial_s
        } else {
            f64::INFINITY
        };
        let loader = (workers / work).min(cores).min(serial);
        let busy = (loader.min(1.0 / self.step_s) * self.cpu_s).min(workers);
        let crowded = (busy + self.step_cores - self.cores).max(0.0);
        let step = self.step_s * (1.0 + crowded / self.cores);
        (step, loader.min(1.0 / step))
    }

    /// Returns samples per second.
    pub(super) fn rate(&self, workers: usize) -> f64 {
        BATCH * self.pace(workers).1
    }

    /// Returns the training's time per batch next to this many workers, in seconds.
    pub(super) fn step(&self, workers: usize) -> f64 {
        self.pace(workers).0
    }

    /// Returns the best rate that does not slow the training's step, next to `workers`, by more than it
    /// gains.
    pub(super) fn best_from(&self, workers: usize, bounds: &Bounds) -> f64 {
        let (step, rate) = (self.step(workers), self.rate(workers));
        let fair = |n: &usize| {
            let slower = self.step(*n) / step;
            slower <= 1.03 || slower <= self.rate(*n) / rate
        };
        let rates = (1..=bounds.most_workers).filter(fair);
        rates.map(|n| self.rate(n)).fold(0.0, f64::max)
    }

    /// Returns a window of two seconds with these settings; `luck` from -1 to 1.
    pub(super) fn window(&self, settings: Settings, luck: f64) -> Window {
        let (step_s, pace) = self.pace(settings.workers);
        let pace = pace * (1.0 + self.noise * luck);
        let wait_s = (1.0 / pace - step_s).max(0.0);
        let waits = wait_s > 0.01 * step_s;
        let work = (self.cpu_s + self.blocked_s)
            * (1.0 + self.contention * (settings.workers as f64 - 1.0));
        Window {
            elapsed_s: 2.0,
            batches: 2.0 * pace,
            samples: 2.0 * pace * BATCH,
            step_s,
            wait_s,
            work_s: if waits {
                settings.workers as f64 / pace
            } else {
                work
            },
            cpu_s: self.cpu_s,
            serial_s: self.serial_s,
            least_ready: if waits { 0.0 } else { settings.depth as f64 },
            most_ready: if waits { 0.0 } else { settings.depth as f64 },
            batch_bytes: 1e6,
            memory_share: 0.3,
            ..Window::default()
        }
    }

    /// Returns the smallest number of workers within 2 % of the best rate, and that rate.
    pub(super) fn best(&self, bounds: &Bounds) -> (usize, f64) {
        let most = (1..=bounds.most_workers).map(|n| self.rate(n));
        let most = most.fold(0.0, f64::max);
        let fewest = (1..=bounds.most_workers).find(|&n| self.rate(n) >= 0.98 * most);
        (fewest.unwrap_or(bounds.most_workers), most)
    }
}

/// A run of the tuner on a machine.
pub(super) struct Run {
    pub(super) settings: Settings,
    pub(super) history: History,
    pub(super) decisions: Vec<Decision>,
    luck: u64,
}

impl Run {
    pub(super) fn from(settings: Settings) -> Run {
        Run {
            settings,
            history: History::default(),
            decisions: Vec::new(),
            luck: 1,
        }
    }

    /// Runs the tuner for some windows.
    pub(super) fn go(&mut self, machine: &Machine, bounds: &Bounds, windows: usize) {
        for _ in 0..windows {
            // Steele and Vigna's multiplier for 64-bit congruential generators
            self.luck = self
                .luck
                .wrapping_mul(0xd134_2543_de82_ef95)
                .wrapping_add(1);
            let luck = (self.luck >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
            let window = machine.window(self.settings, luck);
            let decision = decide(&window, self.settings, &mut self.history, bounds);
            self.settings = decision.settings;
            self.decisions.push(decision);
        }
    }
}
