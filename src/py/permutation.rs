//! Permutations, as Python draws them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::dlpack;
use super::interrupts::SLICE;
use crate::memory::{Dtype, lease};
use crate::order;
use crate::sync::{Mutex, lock};

/// See the stub.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Permutation(Mutex<order::Permutation>);

#[pymethods]
impl Permutation {
    #[new]
    #[pyo3(signature = (length, seed, skip=0, ranks=1))]
    fn new(
        py: Python<'_>,
        length: usize,
        seed: u64,
        skip: usize,
        ranks: u32,
    ) -> PyResult<Permutation> {
        let made = py.detach(|| order::Permutation::new(length, seed, skip, ranks));
        let made = made.ok_or_else(|| {
            let most = order::Permutation::MOST;
            PyValueError::new_err(format!("no permutation of {length}; at most of {most}"))
        })?;
        Ok(Permutation(Mutex::new(made)))
    }

    #[classattr]
    const MOST: u32 = order::Permutation::MOST;

    fn draw(&self, py: Python<'_>, count: usize) -> PyResult<Py<PyAny>> {
        // Waits without this lock, which a thread holds only while it is attached.
        let awaited = lock(&self.0).awaited(count);
        if let Some(rest) = awaited {
            while !py.detach(|| rest.wait(SLICE)) {
                py.check_signals()?;
            }
        }
        let mut permutation = lock(&self.0);
        let count = count.min(permutation.left());
        let mut memory = lease(8 * count)?;
        permutation.draw(memory.as_chunks_mut().0);
        drop(permutation);
        dlpack::tensor(py, memory, &[count], Dtype::Int64)
    }
}
