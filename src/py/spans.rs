//! The spans of threads and workers, as Python reads them.

use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::Error;
use crate::fork::Uninherited;
use crate::pool::Thread;
use crate::spans::{self, Span, Stage};
use crate::sync::Arc;

/// See the stub.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Spans(Uninherited<Arc<spans::Spans>>);

#[pymethods]
impl Spans {
    #[classattr]
    const STAGES: [&str; Stage::NAMES.len()] = Stage::NAMES;

    #[new]
    fn new(capacity: usize) -> Spans {
        Spans(Uninherited::new(Arc::new(spans::Spans::new(capacity))))
    }

    fn now_ns(&self) -> PyResult<u64> {
        Ok(self.core()?.ns(Instant::now()))
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
        self.core()?.add(Span {
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
        let core = self.core()?;
        let (bytes, next) = py.detach(|| {
            let (spans, next) = core.since(first);
            (to_bytes(&spans), next)
        });
        Ok((PyBytes::new(py, &bytes), next))
    }
}

impl Spans {
    /// Returns the spans; an error in a forked child, where the lock may be held by a thread that does not exist.
    pub(super) fn core(&self) -> crate::Result<&Arc<spans::Spans>> {
        self.0.get().ok_or(Error::Inherited)
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
