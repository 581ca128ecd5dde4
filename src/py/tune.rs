//! The tuner, as Python uses it, and calls of it that are due after some time and some batches.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::sync::{Mutex, lock};
use crate::tune::{self, Bounds, History, Machine, Settings};

/// See the stub.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Window(pub(super) tune::Window);

#[pymethods]
impl Window {
    #[new]
    #[pyo3(signature = (*, elapsed_s, batches, samples, step_s, wait_s, work_s, cpu_s=0.0, queued_s=0.0,
                        tail_s=0.0, least_ready=0.0, most_ready=0.0, batch_bytes=0.0, worker_bytes=0.0, memory_share=0.0))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        elapsed_s: f64,
        batches: f64,
        samples: f64,
        step_s: f64,
        wait_s: f64,
        work_s: f64,
        cpu_s: f64,
        queued_s: f64,
        tail_s: f64,
        least_ready: f64,
        most_ready: f64,
        batch_bytes: f64,
        worker_bytes: f64,
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
            queued_s,
            tail_s,
            least_ready,
            most_ready,
            batch_bytes,
            worker_bytes,
            memory_share,
            ..tune::Window::default()
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

    #[getter]
    fn interpreter_share(&self) -> f64 {
        self.0.interpreter_share()
    }

    fn joined(&self, later: &Window) -> Window {
        Window(self.0.merged(&later.0))
    }

    #[pyo3(signature = (*, queued_s=0.0, free_bytes=f64::INFINITY, memory_stall=0.0, throttled=0.0))]
    fn beside(&self, queued_s: f64, free_bytes: f64, memory_stall: f64, throttled: f64) -> Window {
        Window(tune::Window {
            queued_s: self.0.queued_s + queued_s / self.0.batches.max(1.0),
            machine: Machine {
                free_bytes,
                memory_stall,
                throttled,
            },
            ..self.0
        })
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
                        depth_is_fixed, is_known=false))]
    #[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)]
    fn new(
        cores: f64,
        most_workers: usize,
        most_depth: usize,
        budget_bytes: usize,
        whole_batches: bool,
        workers_are_fixed: bool,
        depth_is_fixed: bool,
        is_known: bool,
    ) -> Tuner {
        let history = if is_known {
            History::after_the_jump()
        } else {
            History::default()
        };
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
            history: Mutex::new(history),
        }
    }

    fn next(
        &self,
        window: &Window,
        workers: usize,
        depth: usize,
    ) -> (usize, usize, String, String, bool) {
        let settings = Settings { workers, depth };
        let decision = tune::decide(&window.0, settings, &mut lock(&self.history), &self.bounds);
        (
            decision.settings.workers,
            decision.settings.depth,
            decision.reason.to_string(),
            decision.reason.effect().unwrap_or_default(),
            decision.reason.is_news(),
        )
    }

    fn rearm(&self) {
        lock(&self.history).rearm();
    }
}

/// See the stub.
#[pyclass(frozen, module = "fastload._lib")]
#[derive(Default)]
pub(super) struct Watch(Mutex<Option<Due>>);

struct Due {
    from: Instant,
    batches: i64,
    look: Py<PyAny>,
}

#[pymethods]
impl Watch {
    #[new]
    fn new() -> Watch {
        Watch::default()
    }

    pub(super) fn set(&self, seconds: f64, batches: i64, look: Py<PyAny>) {
        // An invalid duration is due at once.
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let due = Due {
            from: Instant::now() + wait.min(Duration::from_secs(u32::MAX.into())),
            batches,
            look,
        };
        let old = lock(&self.0).replace(due);
        drop(old);
    }

    pub(super) fn tick(&self, py: Python<'_>) -> PyResult<bool> {
        let mut due = lock(&self.0);
        let Some(next) = due.as_mut() else {
            return Ok(false);
        };
        next.batches -= 1;
        if next.batches > 0 || Instant::now() < next.from {
            return Ok(false);
        }
        let now = due.take();
        drop(due);
        now.map_or(Ok(false), |due| due.look.call0(py).map(|_| true))
    }
}

impl Watch {
    /// Cancels the call.
    pub(super) fn clear(&self) {
        let old = lock(&self.0).take();
        drop(old);
    }
}
