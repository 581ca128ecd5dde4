//! Parquet files as tables: row groups are decoded when their rows are wanted, and kept for a while.
//!
//! Owns which column of which row group is decoded when, and how long it is kept: a column that fits the
//! cache is decoded once and then read without a lock; of others the row groups used last stay. Decoding
//! is the `parquet` crate's, to Arrow arrays, and so is what damaged bytes are read as where no checksum tells;
//! its panics are errors that name the file. What it allocates is bounded beforehand by the bytes that are there.
//! Refuses nulls, and whatever is no number, text or bytes, or a list of numbers.
//!
//! Invariant: no two threads decode the same column of the same row group at once.

mod column;
mod decode;
mod pages;
mod part;
mod schema;
mod tables;
mod thrift;
mod whole;

pub use column::Parquet;
pub use tables::Tables;
