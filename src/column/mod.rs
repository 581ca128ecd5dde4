//! Columns: where the values of a dataset are.
//!
//! Owns storage, and how one sample is read from it. What its bytes mean, and what is done to them, is
//! the [`program`](crate::program)'s. A new kind of storage is one file here.

mod blobs;
mod paths;
mod rows;

pub use blobs::Blobs;
pub use paths::Paths;
pub use rows::Rows;
