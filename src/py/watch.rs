//! A call that is due after some time and some batches.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::sync::{Mutex, lock};

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
