//! A call that is due after some time and some batches.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::sync::{Mutex, lock};

/// Holds what is called next, if anything is.
#[derive(Default)]
pub(super) struct Watch(Mutex<Option<Due>>);

struct Due {
    from: Instant,
    batches: i64,
    call: Py<PyAny>,
}

impl Watch {
    /// Has `call` called once, after `seconds` and `batches` at the earliest, in place of any other.
    pub(super) fn set(&self, seconds: f64, batches: i64, call: Py<PyAny>) {
        // What is no time of a clock is due at once.
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let from = Instant::now() + wait.min(Duration::from_secs(u32::MAX.into()));
        let due = Due {
            from,
            batches,
            call,
        };
        let old = lock(&self.0).replace(due);
        drop(old);
    }

    /// Counts a batch, and calls what is due.
    pub(super) fn tick(&self, py: Python<'_>) -> PyResult<()> {
        let mut due = lock(&self.0);
        let Some(next) = due.as_mut() else {
            return Ok(());
        };
        next.batches -= 1;
        if next.batches > 0 || Instant::now() < next.from {
            return Ok(());
        }
        let now = due.take();
        drop(due);
        now.map_or(Ok(()), |due| due.call.call0(py).map(drop))
    }

    /// Calls nothing any more.
    pub(super) fn clear(&self) {
        let old = lock(&self.0).take();
        drop(old);
    }
}
