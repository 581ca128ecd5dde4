//! The one error of the crate. Variants carry data; `Display` writes the sentence once.

mod context;

use std::path::PathBuf;

use crate::collate::Mismatch;
use crate::image::Misfit;
use context::{broadcast, whose};

/// The result of everything that can fail here.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, where, and with which limits.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An index outside of the dataset.
    #[error("index {index} is out of range for a dataset of {len} samples")]
    Index {
        /// The index as the sampler gave it.
        index: i64,
        /// Number of samples in the dataset.
        len: usize,
    },
    /// A file could not be opened or read. The kind of `source` decides the exception's class.
    #[error("cannot read {path:?}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A worker process cannot be reached, or what it says makes no sense.
    #[error("cannot {what} a worker process: {source}")]
    Link {
        /// A verb and a preposition: `hear from`.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not as it was when its column was made.
    #[error(
        "cannot read {path:?}: it has changed since the column was made ({then} bytes then, {now} \
         now); make the column anew"
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// Its bytes when it was looked at.
        then: u64,
        /// Its bytes now.
        now: u64,
    },
    /// The bytes are not what they should be: an image, an array, a text.
    #[error("cannot decode {path:?}: {reason}")]
    Decode {
        /// The file; empty when the bytes did not come from one.
        path: PathBuf,
        /// What the decoder found, in words.
        reason: String,
    },
    /// The bytes would take too long to decode, here and in any other library.
    #[error("cannot decode {path:?}: {reason}")]
    Endless {
        /// The file; empty when the bytes did not come from one.
        path: PathBuf,
        /// Why, and what to do, in words.
        reason: String,
    },
    /// Whoever was asked in place of native code failed.
    #[error("{source}")]
    Fallback {
        /// The failure, of a type that only the asker knows.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An image of this pipeline cannot be transformed.
    #[error("cannot {what}: {reason}")]
    Transform {
        /// The operation, as a verb phrase: `resize to 0x32`.
        what: String,
        /// Why not.
        reason: String,
    },
    /// An image that an operation of this pipeline cannot take.
    #[error("{source}")]
    Misfit {
        /// The file, which a note names; empty when the image did not come from one.
        path: PathBuf,
        /// What does not fit, in the words of the library that is meant.
        source: Misfit,
    },
    /// A batch sampler gave a batch without indices.
    #[error("a batch of no samples cannot be collated: the batch sampler gave no indices")]
    Empty,
    /// Samples of one batch have different shapes. The words are torch's.
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
    /// An image of another number of channels than there are elements for. The words are torch's.
    #[error("{}", broadcast(got, wanted))]
    Broadcast {
        /// Shape of the sample that the image would become.
        got: Vec<usize>,
        /// Shape that the elements would give it.
        wanted: Vec<usize>,
    },
    /// Some samples of one batch are tensors, and this one is a list. The words are torch's.
    #[error("expected Tensor as element {position} in argument 0, but got list")]
    NotTensor {
        /// Its position in the batch.
        position: usize,
    },
    /// Lists of one batch have different lengths. The words are torch's.
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
        /// What happened to it.
        source: Box<Error>,
    },
    /// Samples that do not make one field.
    #[error("cannot collate field {field}: {mismatch}")]
    Mismatch {
        /// The field, as Python writes its name.
        field: Box<str>,
        /// What does not fit.
        mismatch: Mismatch,
    },
    /// An error that is about one sample of the dataset.
    #[error("{source} (it is sample {index} of the dataset)")]
    OfSample {
        /// The dataset index.
        index: i64,
        /// What happened, in terms of the batch.
        source: Box<Error>,
    },
    /// A batch with a field that only its maker knows.
    #[error("only the collate function knows the type of a field of this batch")]
    UnknownField,
    /// A batch that does not fit together, which somebody else is asked for.
    #[error("{source}")]
    Declined {
        /// Its dataset indices.
        indices: Vec<i64>,
        /// What does not fit.
        source: Box<Error>,
    },
    /// A sample that does not lie within its column.
    #[error(
        "sample {index} cannot be read: by its offsets it is {start}..{end} of {len} values (are \
         they those of the column, or were they changed meanwhile?)"
    )]
    Offsets {
        /// The sample.
        index: usize,
        /// Where it begins.
        start: i64,
        /// Where it ends.
        end: i64,
        /// How many values there are.
        len: usize,
    },
    /// A sample of one shape where another was announced.
    #[error("a sample has shape {found:?}; {expected:?} was expected")]
    Shape {
        /// By the header, or by the column.
        expected: Vec<usize>,
        /// What the sample has.
        found: Vec<usize>,
    },
    /// A text that is none.
    #[error("text {index} cannot be read: {source}")]
    Utf8 {
        /// The sample.
        index: usize,
        /// What is wrong.
        source: std::str::Utf8Error,
    },
    /// A length that no sample can have.
    #[error("sample {index} has length {length}; a length is a whole number from 0 to 4294967295")]
    Length {
        /// The sample.
        index: usize,
        /// Its length.
        length: i64,
    },
    /// More samples than a plan can number.
    #[error("batches of {len} samples cannot be planned, only of fewer than 2^32")]
    Lengths {
        /// How many samples there are.
        len: usize,
    },
    /// A dtype that no column can have.
    #[error("a column cannot hold elements of dtype {name}")]
    Dtype {
        /// Its name.
        name: String,
    },
    /// Columns that cannot be put one after the other.
    #[error("cannot put {other} after {first}: the samples of one column are alike")]
    Parts {
        /// The first column, in words.
        first: String,
        /// The first that differs.
        other: String,
    },
    /// A table without the column that is wanted.
    #[error("{path:?} has no column {column:?}; it has {names}")]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// Those that it has.
        names: String,
    },
    /// A column of a table whose values cannot be samples.
    #[error(
        "column {column:?} of {path:?} holds values of type {kind}, which is no number, text or bytes, \
         nor a list of numbers; cast it before the table is written, or name the field of a struct as \
         \"struct.field\""
    )]
    Unfit {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// What the values are.
        kind: String,
    },
    /// A null where a batch has no place for it.
    #[error(
        "column {column:?} of {path:?} is null in row {row}, and a batch has no place for nulls; fill \
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
    /// Memory for a batch, or for what a file holds, could not be had.
    #[error("cannot allocate {bytes} bytes for {}: {source}", whose(path))]
    Memory {
        /// The file; empty when it is memory of the batch itself.
        path: PathBuf,
        /// What was asked for.
        bytes: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// The code of a sample panicked.
    #[error("internal error, please report it: a loading thread panicked: {message}")]
    Panic {
        /// The panic's message.
        message: String,
    },
    /// The memory of a column is not where it was, and nothing said so.
    #[error(
        "{tensor} was exchanged for other memory{}, in a way that nothing can follow; its rows may be \
         wrong, so start a new iterator afterwards",
        .seq.map(|seq| format!(" while batch {seq} was made")).unwrap_or_default()
    )]
    Moved {
        /// Which tensor, in words.
        tensor: String,
        /// The batch that is not handed over.
        seq: Option<u64>,
    },
    /// No batch came in time. The first words are torch's.
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
    /// Not one native thread can be started.
    #[error("cannot start a native thread: {source}; is the number of processes limited?")]
    Threads {
        /// What the system said.
        source: std::io::Error,
    },
    /// The native threads were stopped: the interpreter exits.
    #[error("fastload's threads are stopped: the interpreter is exiting")]
    Closed,
    /// An iterator of the parent process.
    #[error(
        "this iterator belongs to the parent process and cannot be used in a forked child: make \
         a new one there with iter(loader)"
    )]
    Inherited,
    /// The process was forked in the middle of a call, and this is the child.
    #[error(
        "the process was forked while files were read: make the column anew in the forked child"
    )]
    Forked,
    /// Two executors made the same sample.
    #[error("internal error, please report it: the sample at position {position} was made twice")]
    Twice {
        /// Position in the batch.
        position: usize,
    },
    /// An executor dropped a sample without completing it.
    #[error("internal error, please report it: a sample was dropped by its executor")]
    Abandoned,
    /// An error of one of several samples that are copied together.
    #[error("{source}")]
    Among {
        /// Its place among them.
        place: usize,
        /// What happened to it.
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
        /// What happened to the sample.
        source: Box<Error>,
    },
}
