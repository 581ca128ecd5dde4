//! Converts errors to exceptions. [`Error`] writes the messages.

use pyo3::exceptions::{
    PyIndexError, PyKeyError, PyMemoryError, PyOSError, PyRuntimeError, PySystemExit, PyTypeError,
    PyValueError,
};
use pyo3::prelude::*;

use super::foreign::Raised;
use crate::Error;
use crate::error::ImageMismatch;

impl From<Error> for PyErr {
    fn from(error: Error) -> PyErr {
        let message = error.to_string();
        match error {
            Error::Index { .. } | Error::Empty => PyIndexError::new_err(message),
            // OSError chooses its subclass (FileNotFoundError, …) by the number.
            Error::Read { path, source } => match source.raw_os_error() {
                Some(number) => {
                    let text = system_text(&source);
                    PyOSError::new_err((number, text, path.into_os_string()))
                }
                None => PyOSError::new_err(message),
            },
            Error::Fallback { source, .. } => match source.downcast::<Raised>() {
                Ok(raised) => raised.0,
                Err(_) => PyRuntimeError::new_err(message),
            },
            Error::Decode { .. }
            | Error::TooSlow { .. }
            | Error::Changed { .. }
            | Error::Link { .. } => PyOSError::new_err(message),
            Error::ImageMismatch { path, source } => {
                let inner = match source {
                    ImageMismatch::Crop { .. } | ImageMismatch::NoPixels => {
                        PyValueError::new_err(message)
                    }
                    ImageMismatch::NoElements { .. } | ImageMismatch::Reflection { .. } => {
                        PyRuntimeError::new_err(message)
                    }
                };
                if !path.as_os_str().is_empty() {
                    note(&inner, format!("while transforming '{}'", path.display()));
                }
                inner
            }
            Error::Dtype { .. } | Error::NotTensor { .. } | Error::Unfit { .. } => {
                PyTypeError::new_err(message)
            }
            Error::NoColumn { .. } => PyKeyError::new_err(message),
            Error::Transform { .. }
            | Error::Channels { .. }
            | Error::Mismatch { .. }
            | Error::OfSample { .. }
            | Error::Layout { .. }
            | Error::Parts { .. }
            | Error::Offsets { .. }
            | Error::Shape { .. }
            | Error::Length { .. }
            | Error::Lengths { .. }
            | Error::Null { .. }
            | Error::UnknownField
            | Error::Utf8 { .. } => PyValueError::new_err(message),
            Error::Memory { .. } => PyMemoryError::new_err(message),
            Error::Unequal { .. }
            | Error::Broadcast { .. }
            | Error::UnequalLists { .. }
            | Error::Panic { .. }
            | Error::Abandoned
            | Error::WrittenTwice { .. }
            | Error::Closed
            | Error::Threads { .. }
            | Error::Inherited
            | Error::Forked
            | Error::Moved { .. }
            | Error::Timeout { .. } => PyRuntimeError::new_err(message),
            Error::Leaf { source, .. }
            | Error::AtPosition { source, .. }
            | Error::Declined { source, .. } => PyErr::from(*source),
            Error::Sample {
                index, seq, source, ..
            } => {
                let inner = PyErr::from(*source);
                note(
                    &inner,
                    format!("while loading sample {index} (batch {seq})"),
                );
                inner
            }
        }
    }
}

/// Returns the error for a name that is none of those of `what`.
pub(super) fn unknown(what: &str, name: &str) -> PyErr {
    PyValueError::new_err(format!("unknown {what} {name:?}"))
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

/// Adds a note to an exception.
fn note(error: &PyErr, words: String) {
    Python::try_attach(|py| {
        // Without its note the exception is still the right one.
        let _ = error.value(py).call_method1("add_note", (words,));
    });
}

/// Returns the system's text of an error, without Rust's suffix `(os error N)`.
fn system_text(source: &std::io::Error) -> String {
    let text = source.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}
