//! Scaling as torch scales tensors of bytes on the CPU: weights of 16 bits whose precision follows the
//! largest, across rows first, and 8 bits between the passes.
//!
//! Owns the arithmetic of torch's `interpolate` for uint8 (`UpSampleKernel.cpp`). Refuses what goes through
//! floating point there: then the order of sums decides, and the compiler with it.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod filter;
mod interpolation;
mod nearest;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
mod taps;

pub use interpolation::Interpolation;
pub(super) use taps::Taps;
