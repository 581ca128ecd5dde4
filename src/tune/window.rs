//! The measurements of one window: some time of an epoch.

use std::fmt;

/// Means, medians and extremes of the batches taken in a window. Times are seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// Its length.
    pub elapsed_s: f64,
    /// Batches taken.
    pub batches: f64,
    /// Samples in them.
    pub samples: f64,
    /// The training's own time per batch, from the return of `next` to the next call; the median.
    pub step_s: f64,
    /// The time that the training waited per batch; the mean.
    pub wait_s: f64,
    /// The time that workers spent on a batch, computing or waiting for files; the mean.
    pub work_s: f64,
    /// The share of it on a CPU, in seconds; the mean.
    pub cpu_s: f64,
    /// The share of it in which a worker was ready to run but no core was free, in seconds; the mean.
    pub queued_s: f64,
    /// The share of it that only one worker can do at a time, such as holding a shared interpreter, in
    /// seconds; the mean.
    pub serial_s: f64,
    /// Reading encoded bytes, included in `work_s`; the mean.
    pub read_s: f64,
    /// Collating samples, included in `work_s`; the mean.
    pub collate_s: f64,
    /// The time by which the slowest batches took longer than the mean.
    pub tail_s: f64,
    /// Minimum of the batches that `next` found ready.
    pub least_ready: f64,
    /// Maximum of the batches that `next` found ready.
    pub most_ready: f64,
    /// Bytes of the largest batch.
    pub batch_bytes: f64,
    /// Memory that a worker takes by itself, in bytes; 0 for threads.
    pub worker_bytes: f64,
    /// Used share of the memory that this process may use, 0 to 1.
    pub memory_share: f64,
    /// The state of the machine during the window.
    pub machine: Machine,
}

/// The state of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Memory that may still be allocated, in bytes.
    pub free_bytes: f64,
    /// Share of the time in which everything waited for memory, 0 to 1.
    pub memory_stall: f64,
    /// Share of the time in which a quota kept this process from the CPU, 0 to 1.
    pub throttled: f64,
}

impl Default for Machine {
    /// No shortage.
    fn default() -> Machine {
        Machine {
            free_bytes: f64::INFINITY,
            memory_stall: 0.0,
            throttled: 0.0,
        }
    }
}

/// The bottleneck of a loader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bottleneck {
    /// Nothing: the training never waits.
    Training,
    /// Files or remote storage.
    Reading,
    /// Decoding and transforming.
    Decoding,
    /// Collating samples into batches.
    Collation,
    /// The interpreter that workers share.
    Interpreter,
    /// Memory: fewer batches are made ahead than would help.
    Memory,
}

impl Window {
    /// Returns the window with impossible numbers set to 0.
    pub(super) fn sane(&self) -> Window {
        let sane = |value: f64| {
            if value.is_finite() {
                value.max(0.0)
            } else {
                0.0
            }
        };
        Window {
            elapsed_s: sane(self.elapsed_s),
            batches: sane(self.batches),
            samples: sane(self.samples),
            step_s: sane(self.step_s),
            wait_s: sane(self.wait_s),
            work_s: sane(self.work_s),
            cpu_s: sane(self.cpu_s).min(sane(self.work_s)),
            queued_s: sane(self.queued_s).min(sane(self.work_s)),
            serial_s: sane(self.serial_s).min(sane(self.work_s)),
            read_s: sane(self.read_s).min(sane(self.work_s)),
            collate_s: sane(self.collate_s).min(sane(self.work_s)),
            tail_s: sane(self.tail_s),
            least_ready: sane(self.least_ready),
            most_ready: sane(self.most_ready),
            batch_bytes: sane(self.batch_bytes),
            worker_bytes: sane(self.worker_bytes),
            memory_share: sane(self.memory_share),
            machine: Machine {
                free_bytes: self.machine.free_bytes.max(0.0), // NaN is 0, too
                memory_stall: sane(self.machine.memory_stall),
                throttled: sane(self.machine.throttled),
            },
        }
    }

    /// Merges this window with a later one of the same settings.
    #[must_use]
    pub fn merged(&self, later: &Window) -> Window {
        let batches = self.batches + later.batches;
        let mean = |of: fn(&Window) -> f64| {
            (of(self) * self.batches + of(later) * later.batches) / batches.max(1.0)
        };
        Window {
            elapsed_s: self.elapsed_s + later.elapsed_s,
            batches,
            samples: self.samples + later.samples,
            step_s: mean(|window| window.step_s),
            wait_s: mean(|window| window.wait_s),
            work_s: mean(|window| window.work_s),
            cpu_s: mean(|window| window.cpu_s),
            queued_s: mean(|window| window.queued_s),
            serial_s: mean(|window| window.serial_s),
            read_s: mean(|window| window.read_s),
            collate_s: mean(|window| window.collate_s),
            tail_s: self.tail_s.max(later.tail_s),
            least_ready: self.least_ready.min(later.least_ready),
            most_ready: self.most_ready.max(later.most_ready),
            batch_bytes: self.batch_bytes.max(later.batch_bytes),
            worker_bytes: self.worker_bytes.max(later.worker_bytes),
            memory_share: later.memory_share,
            machine: later.machine,
        }
    }

    /// Samples per second.
    pub fn rate(&self) -> f64 {
        ratio(self.samples, self.elapsed_s)
    }

    /// Returns the share of its time that the training waits, 0 to 1.
    pub fn waiting(&self) -> f64 {
        ratio(self.wait_s, self.step_s + self.wait_s)
    }

    /// Returns the share of the time in which a loader thread held the interpreter, 0 to 1.
    pub fn interpreter_share(&self) -> f64 {
        ratio(self.serial_s * self.batches, self.elapsed_s).min(1.0)
    }

    /// Returns how much longer workers are at work than they could run, at least 1; 1 if unknown.
    pub(super) fn blocked(&self) -> f64 {
        if self.cpu_s > 0.0 {
            (self.work_s / (self.cpu_s + self.queued_s)).max(1.0)
        } else {
            1.0
        }
    }

    /// Returns true if memory is short.
    pub(super) fn is_short_of_memory(&self) -> bool {
        self.memory_share > super::PRESSURE || self.machine.memory_stall > super::STALLED
    }

    /// Returns the bottleneck of the loader.
    pub fn bottleneck(&self) -> Bottleneck {
        if self.is_short_of_memory() {
            Bottleneck::Memory
        } else if self.waiting() < super::WAITS {
            Bottleneck::Training
        } else if self.serial_s > self.work_s / 2.0 {
            Bottleneck::Interpreter
        } else if self.read_s > self.work_s / 2.0 || self.blocked() > 2.0 {
            Bottleneck::Reading
        } else if self.collate_s > self.work_s / 2.0 {
            Bottleneck::Collation
        } else {
            Bottleneck::Decoding
        }
    }
}

/// Returns the ratio of two numbers; 0 if the second is not above 0.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Bottleneck::Training => "the training itself",
            Bottleneck::Reading => "reading",
            Bottleneck::Decoding => "decoding",
            Bottleneck::Collation => "collation",
            Bottleneck::Interpreter => "the interpreter",
            Bottleneck::Memory => "memory",
        })
    }
}
