//! The one error of the crate. Variants carry data; `Display` writes the sentence once.

mod fault;
mod mismatch;

use std::path::{Path, PathBuf};

pub use fault::{Fault, Reason};
pub use mismatch::{ImageMismatch, Mismatch};

/// The result of a fallible function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure with its data: the file or the sample, the limits, the reason.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // fields whose names say it
pub enum Error {
    /// An index outside of the dataset.
    #[error("index {index} is out of range for a dataset of {len} samples")]
    Index { index: i64, len: usize },
    /// A file could not be opened or read. The kind of `source` decides the exception's class.
    #[error("cannot read {path:?}: {source}")]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    /// A worker process cannot be reached, or sent a malformed message.
    #[error("cannot {what} a worker process: {source}")]
    Link {
        /// A verb, with its preposition: `hear from`.
        what: &'static str,
        source: std::io::Error,
    },
    /// A file has changed since its column was made.
    #[error(
        "cannot read {path:?}: it has changed since the column was made (from {then} to {now} \
         bytes); make the column again"
    )]
    Changed { path: PathBuf, then: u64, now: u64 },
    /// The bytes are not a valid image, array or text.
    #[error("cannot decode {path:?}: {reason}")]
    Decode {
        /// The file; empty when the bytes did not come from one.
        path: PathBuf,
        /// The decoder's finding, in words.
        reason: String,
    },
    /// The bytes would take too long to decode, in any library.
    #[error("cannot decode {path:?}: {reason}")]
    TooSlow {
        /// The file; empty when the bytes did not come from one.
        path: PathBuf,
        /// The reason and the remedy, in words.
        reason: String,
    },
    /// The Python fallback failed.
    #[error("{source}")]
    Fallback {
        /// Its exception, opaque to the core.
        source: Box<dyn std::error::Error + Send + Sync>,
        fault: Fault,
    },
    /// An operation or an output cannot be applied.
    #[error("cannot {what}: {reason}")]
    Transform {
        /// The operation, as a verb phrase: `resize to 0x32`.
        what: String,
        reason: String,
    },
    /// An image is neither grey nor RGB, and is to be transformed.
    #[error(
        "cannot transform an image of {channels} channels: only grey and RGB are transformed \
         natively; decode to RGB"
    )]
    Channels { channels: usize },
    /// An operation cannot be applied to this image. The message is that of the library.
    #[error("{source}")]
    ImageMismatch {
        /// The file, which a note names; empty when the image did not come from one.
        path: PathBuf,
        source: ImageMismatch,
    },
    /// The batch sampler returned an empty batch.
    #[error("a batch of no samples cannot be collated: the batch sampler gave no indices")]
    Empty,
    /// Samples of one batch have different shapes. The message is torch's.
    #[error(
        "stack expects each tensor to be equal size, but got {first:?} at entry 0 and {other:?} \
         at entry {position}"
    )]
    Unequal {
        first: Vec<usize>,
        other: Vec<usize>,
        position: usize,
    },
    /// An image has another number of channels than the output has elements for. The message is torch's.
    #[error("{}", broadcast(got, wanted))]
    Broadcast {
        /// Shape of the sample that the image would become.
        got: Vec<usize>,
        /// Shape that the elements would require.
        wanted: Vec<usize>,
    },
    /// Some samples of one batch are tensors, and this one is a list. The message is torch's.
    #[error("expected Tensor as element {position} in argument 0, but got list")]
    NotTensor { position: usize },
    /// Lists of one batch have different lengths. The message is torch's.
    #[error("each element in list of batch should be of equal size")]
    UnequalLists {
        first: Vec<usize>,
        other: Vec<usize>,
    },
    /// An error of one field of a batch.
    #[error("{source}")]
    Leaf { leaf: usize, source: Box<Error> },
    /// Samples that do not form one field.
    #[error("cannot collate field {field}: {mismatch}")]
    Mismatch {
        /// The field, as Python writes its name.
        field: Box<str>,
        mismatch: Mismatch,
    },
    /// An error about one sample of the dataset.
    #[error("{source} (it is sample {index} of the dataset)")]
    OfSample {
        index: i64,
        /// The error, in terms of the batch.
        source: Box<Error>,
    },
    /// A field of a batch whose type only the user's collate function knows.
    #[error("only the collate function knows the type of a field of this batch")]
    UnknownField,
    /// A batch that native code cannot collate, and Python does.
    #[error("{source}")]
    Declined {
        indices: Vec<i64>,
        /// Position of its first sample in the iterator's stream of samples.
        first: u64,
        source: Box<Error>,
    },
    /// A sample that exceeds its column.
    #[error(
        "sample {index} cannot be read: by its offsets it is {start}..{end} of {len} values (are \
         they those of the column, or were they changed meanwhile?)"
    )]
    Offsets {
        index: usize,
        start: i64,
        end: i64,
        len: usize,
    },
    /// A sample with another shape than expected.
    #[error("a sample has shape {found:?}; {expected:?} was expected")]
    Shape {
        /// Its shape by the header, or by the column.
        expected: Vec<usize>,
        found: Vec<usize>,
    },
    /// A text that is not valid UTF-8.
    #[error("text {index} cannot be read: {source}")]
    Utf8 {
        index: usize,
        source: std::str::Utf8Error,
    },
    /// An invalid length.
    #[error("sample {index} has length {length}; a length is an integer from 0 to 4294967295")]
    Length { index: usize, length: i64 },
    /// More samples than a plan supports.
    #[error("cannot plan batches of a dataset of {len} samples; the limit is 2^32 - 1")]
    Lengths { len: usize },
    /// A dtype that columns do not support.
    #[error("a column cannot hold elements of dtype {name}")]
    Dtype { name: String },
    /// Columns that cannot be concatenated.
    #[error(
        "cannot concatenate {first} and {other}: samples of a column have one kind, dtype and number of dimensions"
    )]
    Parts {
        /// The first column, in words.
        first: String,
        /// The first that differs.
        other: String,
    },
    /// A table without the requested column.
    #[error("{path:?} has no column {column:?}; it has {names}")]
    NoColumn {
        path: PathBuf,
        column: String,
        names: String,
    },
    /// A column of a table whose values cannot be samples.
    #[error(
        "column {column:?} of {path:?} holds values of type {kind}, which are neither numbers, text, bytes \
         nor lists of numbers; cast it before the table is written, or name the field of a struct as \
         \"struct.field\""
    )]
    Unfit {
        path: PathBuf,
        column: String,
        /// The type of the values.
        kind: String,
    },
    /// A null, which a batch cannot hold.
    #[error(
        "column {column:?} of {path:?} is null in row {row}, and a batch cannot hold nulls; fill \
         them before the table is written, or drop their rows"
    )]
    Null {
        path: PathBuf,
        column: String,
        /// The row, in the file.
        row: usize,
    },
    /// An array whose shape and strides do not describe its memory.
    #[error("an array of shape {shape:?} with byte strides {strides:?} cannot be a column")]
    Layout {
        shape: Vec<usize>,
        /// Its strides, in bytes.
        strides: Vec<isize>,
    },
    /// Memory for a batch, or for the contents of a file, could not be allocated.
    #[error("cannot allocate {bytes} bytes for {}: {source}", whose(path))]
    Memory {
        /// The file; empty for memory of the batch itself.
        path: PathBuf,
        bytes: usize,
        source: std::io::Error,
    },
    /// The code of a sample panicked.
    #[error("internal error, please report it: a loading thread panicked: {message}")]
    Panic { message: String },
    /// The memory of a column was exchanged without notice.
    #[error(
        "{tensor} was moved to other memory{}, in a way that cannot be tracked; its rows may be \
         wrong: start a new iterator after the move",
        .seq.map(|seq| format!(" while batch {seq} was made")).unwrap_or_default()
    )]
    Moved {
        /// Which tensor, in words.
        tensor: String,
        /// The batch that is discarded.
        seq: Option<u64>,
    },
    /// No batch came in time. The message begins as torch's.
    #[error(
        "DataLoader timed out after {timeout_s} seconds: {fetching} threads are reading and \
         {computing} are decoding; raise timeout, or num_workers if they are busy rather than stuck"
    )]
    Timeout {
        timeout_s: f64,
        /// Threads that read.
        fetching: usize,
        /// Threads that decode, transform or copy.
        computing: usize,
    },
    /// No native thread can be started.
    #[error("cannot start a native thread: {source}; is the number of processes limited?")]
    Threads { source: std::io::Error },
    /// The native threads were stopped, because the interpreter exits.
    #[error("fastload's threads are stopped: the interpreter is exiting")]
    Closed,
    /// An iterator of the parent process was used in a forked child.
    #[error(
        "this iterator belongs to the parent process and cannot be used in a forked child: make \
         a new one there with iter(loader)"
    )]
    Inherited,
    /// The process was forked during a call, and this is the child.
    #[error(
        "the process was forked while files were read: make the column again in the forked child"
    )]
    Forked,
    /// Two executors made the same sample.
    #[error("internal error, please report it: the sample at position {position} was made twice")]
    WrittenTwice { position: usize },
    /// An executor dropped a sample without completing it.
    #[error("internal error, please report it: a sample was dropped by its executor")]
    Abandoned,
    /// An error of one of several samples copied together.
    #[error("{source}")]
    AtPosition { place: usize, source: Box<Error> },
    /// An error of one sample of a batch.
    #[error("{source} (sample {index}, position {position} of batch {seq})")]
    Sample {
        index: i64,
        position: usize,
        seq: u64,
        source: Box<Error>,
    },
}

impl Error {
    /// Makes the error of a file that cannot be read.
    pub fn read(path: &Path, source: std::io::Error) -> Error {
        Error::Read {
            path: path.to_owned(),
            source,
        }
    }

    /// Makes torch's error of samples of different shapes, or of lists of different lengths.
    pub fn unequal(first: &[usize], other: &[usize], position: usize, are_lists: bool) -> Error {
        let (first, other) = (first.to_vec(), other.to_vec());
        if are_lists {
            return Error::UnequalLists { first, other };
        }
        Error::Unequal {
            first,
            other,
            position,
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
    pub fn of_file(mut self, file: &Path) -> Error {
        if let Error::Memory { path, .. }
        | Error::Decode { path, .. }
        | Error::TooSlow { path, .. }
        | Error::ImageMismatch { path, .. } = &mut self
            && path.as_os_str().is_empty()
        {
            file.clone_into(path);
        }
        self
    }
}

/// Returns what memory is for: a file, or a batch.
fn whose(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        "a batch".into()
    } else {
        format!("{:?}", path.to_string_lossy())
    }
}

/// Returns torch's message for in-place arithmetic on tensors of these shapes.
fn broadcast(got: &[usize], wanted: &[usize]) -> String {
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
