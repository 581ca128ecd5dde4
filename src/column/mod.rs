//! Columns: where the values of a dataset are.
//!
//! Owns storage, and how one sample is read from it. What its bytes mean, and what is done to them, is
//! the [`program`](crate::program)'s. A new kind of storage is one file here.

mod blobs;
mod cast;
mod numbers;
mod paths;
mod ragged;
mod rows;
mod text;

pub use blobs::{Blobs, Place};
pub use cast::Cast;
pub use numbers::Numbers;
pub use paths::Paths;
pub use ragged::Ragged;
pub use rows::{Rows, Scratch};
pub use text::Text;
