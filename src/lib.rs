//! The native core of fastload: read, decode, transform and collate samples on threads that never
//! touch an interpreter.
//!
//! Arrows point one way: `py` → `program`/`parquet` → `format`/`column` → `collate`/`image` → `decode` → `memory`.
//! `link`, the way between a process and its workers, knows `memory` alone. `plan`, `order` and `tune` know
//! only numbers, `order` also the threads of the `pool`; `pool` and `stream` know neither batches nor Python; `py` is
//! the only module that names PyO3. Under the model checker only what threads share is built, and none of the libraries
//! that read files.
#![cfg_attr(loom, allow(dead_code))] // used by the rest

#[cfg(not(loom))]
pub mod archive;
pub mod cache;
mod caught;
#[cfg(not(loom))]
pub mod collate;
#[cfg(not(loom))]
pub mod column;
pub mod copying;
#[cfg(not(loom))]
pub mod decode;
pub mod draws;
pub mod error;
pub mod fork;
#[cfg(not(loom))]
pub mod format;
#[cfg(not(loom))]
pub mod image;
pub mod interrupts;
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub mod link;
pub mod memory;
pub mod order;
pub mod parallel;
#[cfg(not(loom))]
pub mod parquet;
pub mod plan;
mod planted;
pub mod pool;
#[cfg(not(loom))]
pub mod program;
pub mod quantiles;
pub mod scan;
pub mod spans;
pub mod stats;
pub mod steps;
pub mod stream;
pub mod sync;
pub mod tune;
mod wanted;
mod whole_file;
mod wide;

#[cfg(feature = "python")]
mod py;

pub use error::{Error, Result};
