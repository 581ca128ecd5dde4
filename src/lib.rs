//! The native core of fastload: read, decode, transform and collate samples on threads that never
//! touch an interpreter.
//!
//! Arrows point one way: `py` → `program` → `collate`/`image`/`decode` → `column` → `memory`.
//! `pool` and `stream` know neither batches nor Python; `py` is the only module that names PyO3.

pub mod decode;
pub mod error;
pub mod image;
pub mod memory;
pub mod sync;

pub use error::{Error, Result};
