//! The one error of the crate. Variants carry data; `Display` writes the sentence once.

mod context;
mod fault;
mod image_mismatch;
mod mismatch;

use std::path::PathBuf;

use context::{broadcast, whose};
pub use fault::{Fault, Reason};
pub use image_mismatch::ImageMismatch;
pub use mismatch::Mismatch;

/// The result of a fallible function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure with its data: the file or the sample, the limits, the reason.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An index outside of the dataset.
    #[error("index {index} is out of range for a dataset of {len} samples")]
    Index {
        /// The index that the sampler returned.
        index: i64,
        /// Number of samples in the dataset.
        len: usize,
    },
    /// A file could not be opened or read. The kind of `source` decides the exception's class.
    #[error("cannot read {path:?}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A worker process cannot be reached, or sent a malformed message.
    #[error("cannot {what} a worker process: {source}")]
    Link {
        /// A verb, with its preposition: `hear from`.
        what: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file has changed since its column was made.
    #[error(
        "cannot read {path:?}: it has changed since the column was made (from {then} to {now} \
         bytes); make the column again"
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// Its size then, in bytes.
        then: u64,
        /// Its size now, in bytes.
        now: u64,
    },
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
        /// The class of the error.
        fault: Fault,
    },
    /// An operation or an output cannot be applied.
    #[error("cannot {what}: {reason}")]
    Transform {
        /// The operation, as a verb phrase: `resize to 0x32`.
        what: String,
        /// The reason.
        reason: String,
    },
    /// An operation cannot be applied to this image. The message is that of the library.
    #[error("{source}")]
    ImageMismatch {
        /// The file, which a note names; empty when the image did not come from one.
        path: PathBuf,
        /// The requirement that the image does not meet.
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
        /// Shape of the first sample.
        first: Vec<usize>,
        /// Shape of the first sample that differs.
        other: Vec<usize>,
        /// Its position in the batch.
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
    NotTensor {
        /// Its position in the batch.
        position: usize,
    },
    /// Lists of one batch have different lengths. The message is torch's.
    #[error("each element in list of batch should be of equal size")]
    UnequalLists {
        /// Shape of the first sample.
        first: Vec<usize>,
        /// Shape of the first sample that differs.
        other: Vec<usize>,
    },
    /// An error of one field of a batch.
    #[error("{source}")]
    Leaf {
        /// The field's number among the leaves of the program.
        leaf: usize,
        /// Its error.
        source: Box<Error>,
    },
    /// Samples that do not form one field.
    #[error("cannot collate field {field}: {mismatch}")]
    Mismatch {
        /// The field, as Python writes its name.
        field: Box<str>,
        /// The difference between the samples.
        mismatch: Mismatch,
    },
    /// An error about one sample of the dataset.
    #[error("{source} (it is sample {index} of the dataset)")]
    OfSample {
        /// The dataset index.
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
        /// The dataset indices of the batch.
        indices: Vec<i64>,
        /// The reason.
        source: Box<Error>,
    },
    /// A sample that exceeds its column.
    #[error(
        "sample {index} cannot be read: by its offsets it is {start}..{end} of {len} values (are \
         they those of the column, or were they changed meanwhile?)"
    )]
    Offsets {
        /// The sample.
        index: usize,
        /// Its start.
        start: i64,
        /// Its end.
        end: i64,
        /// Number of values in the column.
        len: usize,
    },
    /// A sample with another shape than expected.
    #[error("a sample has shape {found:?}; {expected:?} was expected")]
    Shape {
        /// Its shape by the header, or by the column.
        expected: Vec<usize>,
        /// The shape that it has.
        found: Vec<usize>,
    },
    /// A text that is not valid UTF-8.
    #[error("text {index} cannot be read: {source}")]
    Utf8 {
        /// The sample.
        index: usize,
        /// The first invalid byte.
        source: std::str::Utf8Error,
    },
    /// An invalid length.
    #[error("sample {index} has length {length}; a length is an integer from 0 to 4294967295")]
    Length {
        /// The sample.
        index: usize,
        /// Its length.
        length: i64,
    },
    /// More samples than a plan supports.
    #[error("cannot plan batches of a dataset of {len} samples; the limit is 2^32 - 1")]
    Lengths {
        /// Number of samples.
        len: usize,
    },
    /// A dtype that columns do not support.
    #[error("a column cannot hold elements of dtype {name}")]
    Dtype {
        /// Its name.
        name: String,
    },
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
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// The columns that it has.
        names: String,
    },
    /// A column of a table whose values cannot be samples.
    #[error(
        "column {column:?} of {path:?} holds values of type {kind}, which are neither numbers, text, bytes \
         nor lists of numbers; cast it before the table is written, or name the field of a struct as \
         \"struct.field\""
    )]
    Unfit {
        /// The file.
        path: PathBuf,
        /// The column.
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
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// The row, in the file.
        row: usize,
    },
    /// An array whose shape and strides do not describe its memory.
    #[error("an array of shape {shape:?} with byte strides {strides:?} cannot be a column")]
    Layout {
        /// Its shape.
        shape: Vec<usize>,
        /// Its strides, in bytes.
        strides: Vec<isize>,
    },
    /// Memory for a batch, or for the contents of a file, could not be allocated.
    #[error("cannot allocate {bytes} bytes for {}: {source}", whose(path))]
    Memory {
        /// The file; empty for memory of the batch itself.
        path: PathBuf,
        /// The size that was requested.
        bytes: usize,
        /// The system's error.
        source: std::io::Error,
    },
    /// The code of a sample panicked.
    #[error("internal error, please report it: a loading thread panicked: {message}")]
    Panic {
        /// The panic's message.
        message: String,
    },
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
        /// The limit, in seconds.
        timeout_s: f64,
        /// Threads that read.
        fetching: usize,
        /// Threads that decode, transform or copy.
        computing: usize,
    },
    /// No native thread can be started.
    #[error("cannot start a native thread: {source}; is the number of processes limited?")]
    Threads {
        /// The system's error.
        source: std::io::Error,
    },
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
    WrittenTwice {
        /// Position in the batch.
        position: usize,
    },
    /// An executor dropped a sample without completing it.
    #[error("internal error, please report it: a sample was dropped by its executor")]
    Abandoned,
    /// An error of one of several samples copied together.
    #[error("{source}")]
    AtPosition {
        /// Its position among them.
        place: usize,
        /// Its error.
        source: Box<Error>,
    },
    /// An error of one sample of a batch.
    #[error("{source} (sample {index}, position {position} of batch {seq})")]
    Sample {
        /// The dataset index.
        index: i64,
        /// Position in the batch.
        position: usize,
        /// The batch.
        seq: u64,
        /// The error of the sample.
        source: Box<Error>,
    },
}
