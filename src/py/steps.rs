//! The steps of a training, and the spans of threads and workers, as Python reads them.

use std::time::Instant;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::fork::Uninherited;
use crate::pool::Thread;
use crate::spans::{self, Span, Stage};
use crate::steps::Steps;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Steps that are kept.
const KEPT: usize = 1 << 14;

/// See the stub.
#[pyclass(frozen, subclass, module = "fastload._lib")]
pub(super) struct StepClocks {
    steps: Steps,
    asks_at: AtomicU64,
    looks: AtomicBool,
}

#[pymethods]
impl StepClocks {
    #[new]
    #[pyo3(signature = (*_arguments, **_options))]
    fn new(_arguments: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> StepClocks {
        StepClocks {
            steps: Steps::new(KEPT),
            asks_at: AtomicU64::new(u64::MAX),
            looks: AtomicBool::new(false),
        }
    }

    pub(super) fn asked(slf: &Bound<'_, Self>) -> PyResult<()> {
        let this = slf.get();
        if this.steps.ask() >= this.asks_at.load(Ordering::Relaxed) {
            slf.call_method0(intern!(slf.py(), "_ask"))?;
        }
        Ok(())
    }

    pub(super) fn returned(slf: &Bound<'_, Self>, batch: &Bound<'_, PyAny>) -> PyResult<()> {
        let this = slf.get();
        this.steps.give();
        if this.looks.load(Ordering::Relaxed) {
            slf.call_method1(intern!(slf.py(), "_look"), (batch,))?;
        }
        Ok(())
    }

    fn forget(&self) {
        self.steps.forget();
    }

    fn now_ns(&self) -> u64 {
        self.steps.now_ns()
    }

    fn since<'py>(&self, py: Python<'py>, first: u64) -> (u64, Bound<'py, PyBytes>) {
        let (first, steps) = self.steps.since(first);
        let numbers = steps
            .iter()
            .flat_map(|step| [step.asked_ns, step.returned_ns, step.end_ns, step.rows]);
        let bytes: Vec<u8> = numbers.flat_map(u64::to_ne_bytes).collect();
        (first, PyBytes::new(py, &bytes))
    }

    #[getter]
    fn count(&self) -> u64 {
        self.steps.count()
    }

    #[getter]
    fn asked_ns(&self) -> Option<u64> {
        self.steps.asked_ns()
    }

    #[getter]
    fn returned_ns(&self) -> u64 {
        self.steps.returned_ns()
    }

    #[getter]
    fn in_step(&self) -> bool {
        self.steps.in_step()
    }

    #[setter(_rows)]
    fn set_rows(&self, rows: u64) {
        self.steps.set_rows(rows);
    }

    #[setter(_asks_at)]
    fn set_asks_at(&self, count: u64) {
        self.asks_at.store(count, Ordering::Relaxed);
    }

    #[setter(_looks)]
    fn set_looks(&self, looks: bool) {
        self.looks.store(looks, Ordering::Relaxed);
    }
}

/// See the stub.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Spans(pub(super) Uninherited<Arc<spans::Spans>>);

#[pymethods]
impl Spans {
    #[classattr]
    const STAGES: [&str; Stage::NAMES.len()] = Stage::NAMES;

    #[new]
    fn new(capacity: usize) -> Spans {
        Spans(Uninherited::new(Arc::new(spans::Spans::new(capacity))))
    }

    fn now_ns(&self) -> PyResult<u64> {
        Ok(self.0.here()?.ns(Instant::now()))
    }

    fn add(
        &self,
        worker: (u32, u32),
        batch: u64,
        epoch: u32,
        begin_ns: u64,
        end_ns: u64,
    ) -> PyResult<()> {
        let (number, id) = worker;
        self.0.here()?.add(Span {
            begin_ns,
            end_ns,
            batch,
            epoch,
            thread: Thread { number, id },
            stage: Stage::Make,
        });
        Ok(())
    }

    fn since<'py>(&self, py: Python<'py>, first: u64) -> PyResult<(Bound<'py, PyBytes>, u64)> {
        let core = self.0.here()?;
        let (bytes, next) = py.detach(|| {
            let (spans, next) = core.since(first);
            (to_bytes(&spans), next)
        });
        Ok((PyBytes::new(py, &bytes), next))
    }
}

/// Returns the records of spans, as the stub describes them.
fn to_bytes(spans: &[Span]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(40 * spans.len());
    for span in spans {
        for long in [span.begin_ns, span.end_ns, span.batch] {
            bytes.extend_from_slice(&long.to_ne_bytes());
        }
        let Thread { number, id } = span.thread;
        for short in [span.epoch, number, id, span.stage as u32] {
            bytes.extend_from_slice(&short.to_ne_bytes());
        }
    }
    bytes
}
