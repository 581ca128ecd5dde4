//! `_lib.npy`, `_lib.npz`, `_lib.pt`, `_lib.plain` and `_lib.Audio`: columns of files with one array, or one other
//! value, each.

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use super::{blobs, tick};
use crate::Result;
use crate::column::Blobs;
use crate::format::{self, Array, Arrays, Depth, Integer, Npz, Output, RowRange, Span};
use crate::memory::{Dtype, ReadGuard};
use crate::program::Contents;
use crate::py::column::Column;
use crate::py::error::unknown;
use crate::sync::Arc;

/// Makes a column of arrays in `.npy` files.
#[pyfunction]
#[pyo3(signature = (source, rows, progress=None))]
pub(in crate::py) fn npy(
    source: &Bound<'_, PyAny>,
    rows: Vec<(Option<i64>, Option<i64>)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Column> {
    opened(source, progress, |blobs, tick| {
        Arrays::npy(blobs, &ranges(rows), tick)
    })
}

/// Makes a column of arrays in `.npz` files.
#[pyfunction]
#[pyo3(signature = (source, key, rows, progress=None))]
pub(in crate::py) fn npz(
    source: &Bound<'_, PyAny>,
    key: &str,
    rows: Vec<(Option<i64>, Option<i64>)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Column> {
    opened(source, progress, |blobs, tick| {
        Npz::open(blobs, key, &ranges(rows), tick)
    })
}

/// Makes a column of tensors in files of `torch.save`.
#[pyfunction]
#[pyo3(signature = (source, key=None, progress=None))]
pub(in crate::py) fn pt(
    source: &Bound<'_, PyAny>,
    key: Option<&str>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Column> {
    opened(source, progress, |blobs, tick| Arrays::pt(blobs, key, tick))
}

/// Makes a column of files with one value each: bytes, a text, a number in digits.
#[pyfunction]
pub(in crate::py) fn plain(source: &Bound<'_, PyAny>, what: &str) -> PyResult<Column> {
    let blobs = blobs(source)?;
    let core = match what {
        "bytes" => Contents::bytes(blobs),
        "text" => Contents::texts(blobs),
        "integer" => Contents::arrays(blobs, Integer),
        _ => return Err(unknown("content", what)),
    };
    Ok(Column::over(Arc::new(core), [source]))
}

/// Makes a column of the arrays that `open` finds in files.
fn opened<A: Array + 'static>(
    source: &Bound<'_, PyAny>,
    progress: Option<Py<PyAny>>,
    open: impl FnOnce(&Blobs, &mut dyn FnMut(usize) -> Result<()>) -> Result<(A, Blobs)> + Send,
) -> PyResult<Column> {
    let blobs = blobs(source)?;
    let mut tick = tick(progress.as_ref(), blobs.len());
    let _guard = ReadGuard::take();
    let (array, blobs) = source.py().detach(|| open(&blobs, &mut tick))?;
    let core = Contents::arrays(blobs, array);
    Ok(Column::over(Arc::new(core), [source]))
}

fn ranges(rows: Vec<(Option<i64>, Option<i64>)>) -> Vec<RowRange> {
    let ranges = rows.into_iter();
    ranges
        .map(|(start, stop)| RowRange { start, stop })
        .collect()
}

/// Recordings in audio files.
#[pyclass(frozen, extends = Column, module = "fastload._lib")]
pub(in crate::py) struct Audio {
    rates: Box<[Option<u32>]>,
}

/// Start and length of samples: in seconds, or in frames.
#[derive(FromPyObject)]
enum Spans {
    Frames(Vec<(i64, Option<u64>)>),
    Seconds(Vec<(f64, Option<f64>)>),
}

impl From<Spans> for Vec<Span> {
    fn from(spans: Spans) -> Vec<Span> {
        match spans {
            Spans::Frames(frames) => frames
                .into_iter()
                .map(|(start, count)| Span::Frames { start, count })
                .collect(),
            Spans::Seconds(seconds) => seconds
                .into_iter()
                .map(|(offset, duration)| Span::Seconds { offset, duration })
                .collect(),
        }
    }
}

#[pymethods]
impl Audio {
    #[new]
    #[pyo3(signature = (source, spans, dtype, mono, sample_rate=None, progress=None))]
    fn new(
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        spans: Spans,
        dtype: &str,
        mono: bool,
        sample_rate: Option<u32>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Audio>> {
        let depth = Dtype::from_name(dtype).and_then(Depth::of);
        let depth = depth.ok_or_else(|| {
            PyValueError::new_err(format!("samples of a recording are not {dtype:?}"))
        })?;
        let output = Output { depth, mono };
        let blobs = blobs(source)?;
        let mut tick = tick(progress.as_ref(), blobs.len());
        let _guard = ReadGuard::take();
        let (audio, blobs) = py
            .detach(|| format::Audio::open(&blobs, spans.into(), output, sample_rate, &mut tick))?;
        let rates = audio.rates().collect();
        let column = Column::over(Arc::new(Contents::arrays(blobs, audio)), [source]);
        Ok(PyClassInitializer::from(column).add_subclass(Audio { rates }))
    }

    /// Returns the sample rate of a recording; None if its file cannot be used.
    fn sample_rate(&self, index: usize) -> PyResult<Option<u32>> {
        let rate = self.rates.get(index).copied();
        rate.ok_or_else(|| PyIndexError::new_err("no such recording"))
    }
}
