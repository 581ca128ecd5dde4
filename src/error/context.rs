//! Constructors of errors, and the addition of the file or sample that they are about.

use std::path::{Path, PathBuf};

use super::Error;

impl Error {
    /// Makes the error of a file that cannot be read.
    pub fn read(path: &Path, source: std::io::Error) -> Error {
        Error::Read {
            path: path.to_owned(),
            source,
        }
    }

    /// Makes the error of a failed allocation; [`Error::of_file`] adds the file.
    pub fn memory(bytes: usize, source: std::io::Error) -> Error {
        Error::Memory {
            path: PathBuf::new(),
            bytes,
            source,
        }
    }

    /// Adds the position of the sample among several; a position that it has already is counted from `place`.
    #[must_use]
    pub fn at(self, place: usize) -> Error {
        let (before, source) = self.placed();
        Error::AtPosition {
            place: place + before,
            source: Box::new(source),
        }
    }

    /// Returns the position of the sample among several, and the error itself.
    pub fn placed(self) -> (usize, Error) {
        match self {
            Error::AtPosition { place, source } => (place, *source),
            other => (0, other),
        }
    }

    /// Makes the error of bytes that cannot be decoded; [`Error::of_file`] adds the file.
    pub fn decode(reason: impl Into<String>) -> Error {
        Error::Decode {
            path: PathBuf::new(),
            reason: reason.into(),
        }
    }

    /// Makes the error of an operation that cannot be applied; `what` is a verb phrase.
    pub fn transform(what: impl Into<String>, reason: impl Into<String>) -> Error {
        Error::Transform {
            what: what.into(),
            reason: reason.into(),
        }
    }

    /// Adds the file to an error about its contents that names none.
    #[must_use]
    pub fn of_file(self, file: &Path) -> Error {
        match self {
            Error::Memory {
                path,
                bytes,
                source,
            } if path.as_os_str().is_empty() => Error::Memory {
                path: file.to_owned(),
                bytes,
                source,
            },
            Error::Decode { path, reason } if path.as_os_str().is_empty() => Error::Decode {
                path: file.to_owned(),
                reason,
            },
            Error::TooSlow { path, reason } if path.as_os_str().is_empty() => Error::TooSlow {
                path: file.to_owned(),
                reason,
            },
            Error::ImageMismatch { path, source } if path.as_os_str().is_empty() => {
                Error::ImageMismatch {
                    path: file.to_owned(),
                    source,
                }
            }
            other => other,
        }
    }
}

/// Returns what memory is for: a file, or a batch.
pub(super) fn whose(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        "a batch".into()
    } else {
        format!("{:?}", path.to_string_lossy())
    }
}

/// Returns torch's message for in-place arithmetic on tensors of these shapes.
pub(super) fn broadcast(got: &[usize], wanted: &[usize]) -> String {
    let sizes = got.iter().zip(wanted).enumerate();
    let differs = sizes.into_iter().find(|(_, (got, wanted))| got != wanted);
    match differs {
        Some((at, (got, wanted))) if *got != 1 => format!(
            "The size of tensor a ({got}) must match the size of tensor b ({wanted}) at \
             non-singleton dimension {at}"
        ),
        _ => format!("output with shape {got:?} doesn't match the broadcast shape {wanted:?}"),
    }
}
