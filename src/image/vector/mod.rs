//! Vector instructions of this architecture, for the passes of a resize. Others have scalar code only.
//!
//! Each has the number of rows that `across_rows` scales together, [`ROWS`], and the bytes of a vector, [`LANES`].

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "aarch64")]
mod neon;

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::*;
#[cfg(target_arch = "aarch64")]
pub(super) use neon::*;
