//! Columns: the storage of a dataset's values.
//!
//! Owns storage, and the reading of one sample. The [`program`](crate::program) knows what the bytes mean,
//! and what is done to them. A new kind of storage is one file here.

mod binary;
mod blobs;
mod cast;
mod convert;
mod documents;
mod files;
mod flat;
mod lines;
mod numbers;
mod offsets;
mod paths;
mod ragged;
mod rows;
mod spans;
mod stamp;
mod table;
mod windows;

pub use binary::Binary;
pub use blobs::{BlobSource, Blobs, Look};
pub use cast::Cast;
pub use documents::Documents;
pub use files::{Files, Opened};
pub use flat::Flat;
pub use lines::{Lines, Reader};
pub use numbers::Numbers;
pub use offsets::Offsets;
pub use paths::Paths;
pub use ragged::Ragged;
pub use rows::{Rows, Scratch};
pub use spans::{Span, Spans};
pub use stamp::Stamp;
pub use table::{Table, Values};
pub use windows::Windows;
