//! An encoded image that is decoded when Python needs its pixels.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList, PyTuple};

use super::error::unknown;
use super::{pad, tensor, transform};
use crate::decode::{Draft, Reading, Switches};
use crate::image::{Layout, Output, Pipeline};
use crate::program;

/// One encoded image.
#[pyclass(frozen, module = "fastload._lib")]
pub(super) struct Picture {
    core: program::Picture<PyBackedBytes>,
}

#[pymethods]
impl Picture {
    #[new]
    #[pyo3(signature = (encoded, mode, *, draft=None, max_pixels=None))]
    fn new(
        encoded: PyBackedBytes,
        mode: &str,
        draft: Option<(u32, bool)>,
        max_pixels: Option<u64>,
    ) -> PyResult<Picture> {
        let reading = Reading::from_name(mode).ok_or_else(|| unknown("mode", mode))?;
        let draft = draft.map(|(scale, luma)| {
            Draft::new(scale, luma)
                .ok_or_else(|| PyValueError::new_err(format!("unknown scale {scale}")))
        });
        let switches = Switches { max_pixels };
        let core = program::Picture::open(encoded, reading, switches, draft.transpose()?)?;
        Ok(Picture { core })
    }

    #[getter]
    fn size(&self) -> (usize, usize) {
        let shape = self.core.shape();
        (shape.width, shape.height)
    }

    #[pyo3(signature = (ops, output, *, keep=false))]
    fn tensor(
        &self,
        py: Python<'_>,
        ops: &Bound<'_, PyList>,
        output: &Bound<'_, PyTuple>,
        keep: bool,
    ) -> PyResult<Py<PyAny>> {
        let pipeline = transform::pipeline(ops, output, self.known())?;
        let plan = self.core.plan(&pipeline)?;
        let shape = pipeline.sample_shape(&plan).into();
        let mut dense = pad::field_of(shape, pipeline.dtype(), None)?;
        let out = dense.memory.bytes_mut();
        py.detach(|| self.core.write(&pipeline, &plan, keep, out))?;
        tensor::of_field(py, dense)
    }

    #[pyo3(signature = (ops, *, keep=false))]
    fn pixels<'py>(
        &self,
        py: Python<'py>,
        ops: &Bound<'_, PyList>,
        keep: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let output = Output::Bytes(Layout::Hwc);
        let pipeline = Pipeline::new(transform::parse_all(ops)?, output, self.known())?;
        let plan = self.core.plan(&pipeline)?;
        let bytes = pipeline.sample_shape(&plan).iter().product();
        PyBytes::new_with(py, bytes, |out| {
            Ok(py.detach(|| self.core.write(&pipeline, &plan, keep, out))?)
        })
    }
}

impl Picture {
    /// Returns what pipelines are told of the image: (height, width), and the channels.
    fn known(&self) -> (Option<(usize, usize)>, Option<usize>) {
        let shape = self.core.shape();
        (Some((shape.height, shape.width)), Some(shape.channels))
    }
}
