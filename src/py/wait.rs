//! Waits for a batch: detached, in slices, with checks for signals and for the pool in between.

use std::time::{Duration, Instant};

use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;

use super::foreign::RequestQueue;
use super::interrupts::check_interrupts;
use crate::Error;
use crate::fork::Uninherited;
use crate::program::{Finished, Run};
use crate::stream::{self, Taken};

/// Longest time between two checks.
pub(super) const SLICE: Duration = Duration::from_millis(50);

/// First interval at which to check for files that a thread must be started for; it doubles.
const LOOK: Duration = Duration::from_millis(1);

/// Waits for a batch, detached, checking for signals; None if no batch is in flight.
pub(super) fn batch(
    py: Python<'_>,
    core: &Uninherited<stream::Stream<Run>>,
    requests: Option<&RequestQueue>,
    timeout_s: f64,
) -> PyResult<Option<stream::Ready<Finished>>> {
    let begun = Instant::now();
    let mut slices = LOOK;
    loop {
        let core = core.here()?; // a signal handler may fork
        let mut slice = SLICE;
        if let Some(requests) = requests.filter(|requests| requests.is_unserved()) {
            requests.serve(py)?;
            slice = slices;
            slices = SLICE.min(2 * slices);
        }
        if timeout_s > 0.0 {
            let left = timeout_s - begun.elapsed().as_secs_f64();
            if left <= 0.0 {
                let (fetching, computing) = core.activity();
                return Err(Error::Timeout {
                    timeout_s,
                    fetching,
                    computing,
                }
                .into());
            }
            slice = Duration::from_secs_f64(left.min(slice.as_secs_f64()));
        }
        match py.detach(|| core.take(slice)) {
            Taken::Ready(ready) => return Ok(Some(ready)),
            Taken::Exhausted => return Ok(None),
            Taken::Waiting => {
                check_interrupts(py)?;
                core.check().map_err(|error| quietly(py, error))?;
            }
        }
    }
}

/// Converts an error. If the threads were stopped, a daemon thread ends without an exception: the interpreter
/// is about to freeze it anyway, and would print the exception over the program's own output.
pub(super) fn quietly(py: Python<'_>, error: Error) -> PyErr {
    let is_daemon = || -> PyResult<bool> {
        let thread = py.import("threading")?.call_method0("current_thread")?;
        thread.getattr("daemon")?.extract()
    };
    match error {
        Error::Closed if is_daemon().unwrap_or(false) => PySystemExit::new_err(()),
        other => other.into(),
    }
}
