//! What was measured over a stretch of an epoch.

use std::fmt;

/// Means, medians and marks of the batches that were taken in a window. Times are seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// How long it was.
    pub elapsed_s: f64,
    /// Batches taken.
    pub batches: f64,
    /// Samples in them.
    pub samples: f64,
    /// The training's own time for a batch: from the return of `next` to the next call; the median.
    pub step_s: f64,
    /// What the training waited for a batch; the mean.
    pub wait_s: f64,
    /// What workers spent at a batch, whether computing or waiting for files; the mean.
    pub work_s: f64,
    /// The part of it on a processor; the mean.
    pub cpu_s: f64,
    /// The part of it in which a worker could have run, but no processor was free; the mean.
    pub queued_s: f64,
    /// The part of it that only one worker can do at a time, such as holding an interpreter that
    /// all share; the mean.
    pub serial_s: f64,
    /// Reading encoded bytes, a part of `work_s`; the mean.
    pub read_s: f64,
    /// Joining samples, a part of `work_s`; the mean.
    pub collate_s: f64,
    /// How much longer than the mean the slowest batches were in the making.
    pub tail_s: f64,
    /// Fewest batches that `next` found ready.
    pub least_ready: f64,
    /// Most batches that `next` found ready.
    pub most_ready: f64,
    /// Bytes of a batch; the largest.
    pub batch_bytes: f64,
    /// Memory that a worker takes by itself, in bytes; 0 for threads.
    pub worker_bytes: f64,
    /// Part of the memory that this process may use which is used, 0 to 1.
    pub memory_share: f64,
    /// What the machine said meanwhile.
    pub machine: Machine,
}

/// What a machine says of itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Memory that may still be taken, in bytes.
    pub free_bytes: f64,
    /// Part of the time in which everything waited for memory, 0 to 1.
    pub memory_stall: f64,
    /// Part of the time in which a quota kept this process from processors, 0 to 1.
    pub throttled: f64,
}

impl Default for Machine {
    /// Nothing is known to be short.
    fn default() -> Machine {
        Machine {
            free_bytes: f64::INFINITY,
            memory_stall: 0.0,
            throttled: 0.0,
        }
    }
}

/// What a loader is held up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bottleneck {
    /// Nothing: the training never waits.
    Training,
    /// Files, or a store, that workers wait for.
    Reading,
    /// Decoding and transforming.
    Decoding,
    /// Joining samples into batches.
    Collation,
    /// The interpreter that workers share.
    Interpreter,
    /// Memory: less is made ahead than would help.
    Memory,
}

impl Window {
    /// Returns it with numbers that no clock can have given set to 0.
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

    /// Returns this window and one of the same settings after it as one.
    #[must_use]
    pub fn joined(&self, later: &Window) -> Window {
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
        if self.elapsed_s > 0.0 {
            self.samples / self.elapsed_s
        } else {
            0.0
        }
    }

    /// The part of its time that the training waits, 0 to 1.
    pub fn waiting(&self) -> f64 {
        let whole = self.step_s + self.wait_s;
        if whole > 0.0 {
            self.wait_s / whole
        } else {
            0.0
        }
    }

    /// The part of the time in which somebody held the interpreter for the loader, 0 to 1.
    pub fn interpreter_share(&self) -> f64 {
        if self.elapsed_s > 0.0 {
            (self.serial_s * self.batches / self.elapsed_s).min(1.0)
        } else {
            0.0
        }
    }

    /// How much longer workers are at work than they could run, at least 1; 1 where that is not known.
    pub(super) fn blocked(&self) -> f64 {
        if self.cpu_s > 0.0 {
            (self.work_s / (self.cpu_s + self.queued_s)).max(1.0)
        } else {
            1.0
        }
    }

    /// Whether memory is short.
    pub(super) fn is_short_of_memory(&self) -> bool {
        self.memory_share > super::PRESSURE || self.machine.memory_stall > super::STALLED
    }

    /// What holds the loader up.
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
