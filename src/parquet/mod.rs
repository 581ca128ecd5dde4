//! Parquet files as tables: row groups are decoded when their rows are wanted, and kept for a while.
//!
//! Owns which column of which row group is decoded when, and how long it is kept: a column that fits the
//! cache is decoded once and then read without a lock; of others the row groups used last stay. Decoding
//! is the `parquet` crate's; what it makes of damaged bytes, a panic too, is an error that names the file.
//! Refuses nulls, and whatever is no number, text or bytes, or a list of numbers.
//!
//! Invariant: no two threads decode the same column of the same row group at once.

mod cache;
mod checked;
mod column;
mod decode;
mod delta;
mod levels;
mod pages;
mod part;
mod runs;
mod schema;
mod tables;
mod thrift;
mod whole;

pub use column::Parquet;
pub use tables::Tables;
