//! Scaling as torch scales byte tensors on the CPU: weights of 16 bits whose precision depends on the largest
//! one, rows first, and 8 bits between the passes.
//!
//! Owns the arithmetic of torch's `interpolate` for uint8 (`UpSampleKernel.cpp`). Refuses modes that use
//! floating point there: their results depend on the order of sums, and so on the compiler.

mod filter;
mod interpolation;
mod nearest;
#[cfg(target_arch = "aarch64")]
mod neon;
mod taps;

pub use interpolation::Interpolation;
pub(super) use taps::Taps;
