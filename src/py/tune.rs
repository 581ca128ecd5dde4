//! The tuner, as Python measures for it and asks it.

use std::time::Instant;

use pyo3::prelude::*;

use crate::stats::Stats;
use crate::sync::{Mutex, lock};
use crate::tune::{self, Bounds, History, Settings};

/// The counters of a stream at some time.
pub(super) struct Moment {
    at: Instant,
    stats: Stats,
    batch_bytes: u64,
}

impl Moment {
    pub(super) fn now(stats: Stats, batch_bytes: u64) -> Moment {
        Moment {
            at: Instant::now(),
            stats,
            batch_bytes,
        }
    }

    /// Returns what was measured since `last`.
    pub(super) fn since(&self, last: &Moment, cpu_s: f64, memory_share: f64) -> Window {
        let (now, then) = (&self.stats, &last.stats);
        let batches = now.batches.saturating_sub(then.batches) as f64;
        let per_batch = |seconds: f64| seconds / batches.max(1.0);
        let elapsed_s = (self.at - last.at).as_secs_f64();
        let stage = |of: fn(&Stats) -> std::time::Duration| {
            per_batch(of(now).saturating_sub(of(then)).as_secs_f64())
        };
        let wait_s = per_batch(elapsed_s - now.marks.stepped.as_secs_f64());
        let (least_ready, most_ready) = now.marks.ready;
        Window(tune::Window {
            elapsed_s,
            batches,
            samples: now.taken.saturating_sub(then.taken) as f64,
            step_s: now.marks.step().as_secs_f64(),
            wait_s,
            work_s: stage(|stats| stats.busy),
            cpu_s: per_batch(cpu_s),
            serial_s: 0.0,
            read_s: stage(|stats| stats.stages.read),
            collate_s: stage(|stats| stats.stages.collate),
            tail_s: (now.marks.longest_wait.as_secs_f64() - wait_s).max(0.0),
            least_ready: least_ready.min(most_ready) as f64,
            most_ready: most_ready as f64,
            batch_bytes: self.batch_bytes as f64,
            memory_share,
        })
    }
}

/// See the stub.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Window(tune::Window);

#[pymethods]
impl Window {
    #[new]
    #[pyo3(signature = (*, elapsed_s, batches, samples, step_s, wait_s, work_s, cpu_s=0.0, serial_s=0.0,
                        read_s=0.0, collate_s=0.0, tail_s=0.0, least_ready=0.0, most_ready=0.0,
                        batch_bytes=0.0, memory_share=0.0))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        elapsed_s: f64,
        batches: f64,
        samples: f64,
        step_s: f64,
        wait_s: f64,
        work_s: f64,
        cpu_s: f64,
        serial_s: f64,
        read_s: f64,
        collate_s: f64,
        tail_s: f64,
        least_ready: f64,
        most_ready: f64,
        batch_bytes: f64,
        memory_share: f64,
    ) -> Window {
        Window(tune::Window {
            elapsed_s,
            batches,
            samples,
            step_s,
            wait_s,
            work_s,
            cpu_s,
            serial_s,
            read_s,
            collate_s,
            tail_s,
            least_ready,
            most_ready,
            batch_bytes,
            memory_share,
        })
    }

    #[getter]
    fn elapsed_s(&self) -> f64 {
        self.0.elapsed_s
    }

    #[getter]
    fn batches(&self) -> f64 {
        self.0.batches
    }

    #[getter]
    fn step_s(&self) -> f64 {
        self.0.step_s
    }

    #[getter]
    fn wait_s(&self) -> f64 {
        self.0.wait_s
    }

    #[getter]
    fn rate(&self) -> f64 {
        self.0.rate()
    }

    #[getter]
    fn bottleneck(&self) -> String {
        self.0.bottleneck().to_string()
    }

    fn joined(&self, later: &Window) -> Window {
        Window(self.0.joined(&later.0))
    }
}

/// See the stub.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Tuner {
    bounds: Bounds,
    history: Mutex<History>,
}

#[pymethods]
impl Tuner {
    #[new]
    #[pyo3(signature = (*, cores, most_workers, most_depth, budget_bytes, whole_batches, workers_are_fixed,
                        depth_is_fixed))]
    #[allow(clippy::fn_params_excessive_bools)]
    fn new(
        cores: f64,
        most_workers: usize,
        most_depth: usize,
        budget_bytes: usize,
        whole_batches: bool,
        workers_are_fixed: bool,
        depth_is_fixed: bool,
    ) -> Tuner {
        Tuner {
            bounds: Bounds {
                cores,
                most_workers,
                most_depth,
                budget_bytes: budget_bytes as f64,
                whole_batches,
                workers_are_fixed,
                depth_is_fixed,
            },
            history: Mutex::default(),
        }
    }

    fn next(&self, window: &Window, workers: usize, depth: usize) -> (usize, usize, String, bool) {
        let settings = Settings { workers, depth };
        let decision = tune::decide(&window.0, settings, &mut lock(&self.history), &self.bounds);
        (
            decision.settings.workers,
            decision.settings.depth,
            decision.reason.to_string(),
            decision.reason.is_news(),
        )
    }
}
