//! Process-wide functions: threads and memory.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

use crate::memory;
use crate::pool::Pool;

/// Longest wait for threads to end.
const END_LIMIT: Duration = Duration::from_secs(2);

/// Time for iterating daemon threads to notice the exit and end: frozen later, in the middle of torch's own
/// code, they would abort the process.
const DAEMON_GRACE: Duration = Duration::from_millis(20);

/// Returns how many native threads are alive now.
#[pyfunction]
pub(super) fn pool_threads() -> usize {
    Pool::global().threads()
}

/// See the stub.
#[pyfunction]
pub(super) fn pool_thread_ids() -> Vec<u32> {
    Pool::global().thread_ids()
}

/// Ends idle native threads now and waits until they are gone (before a fork).
#[pyfunction]
pub(super) fn park(py: Python<'_>) {
    py.detach(|| {
        Pool::global().park(END_LIMIT);
        memory::stop_trimming();
    });
}

/// Stops the native threads for good, with a time limit; for interpreter exit.
#[pyfunction]
pub(super) fn shutdown(py: Python<'_>) {
    py.detach(|| {
        let iterated = Pool::global().shutdown(END_LIMIT);
        memory::retire();
        if iterated {
            std::thread::sleep(DAEMON_GRACE);
        }
    });
}

/// Returns bytes leased to tensors (`leased_bytes`) and kept for reuse (`idle_bytes`), and how many blocks
/// were mapped so far (`mapped_blocks`).
#[pyfunction]
pub(super) fn memory_stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let stats = memory::stats();
    [
        ("leased_bytes", stats.leased_bytes),
        ("idle_bytes", stats.idle_bytes),
        ("mapped_blocks", stats.mapped_blocks),
    ]
    .into_py_dict(py)
}

/// Frees memory kept for reuse; returns its bytes.
#[pyfunction]
pub(super) fn trim_memory(py: Python<'_>) -> usize {
    py.detach(memory::trim)
}
