//! `_lib.Audio`.

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use super::blobs;
use super::tick::tick;
use crate::format::{self, Depth, Output, Span};
use crate::memory::Dtype;
use crate::program::Contents;
use crate::py::column::Column;
use crate::sync::Arc;

/// Recordings in audio files.
#[pyclass(frozen, extends = Column, module = "fastload._lib")]
pub(super) struct Audio {
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
