//! Scaling as Pillow: weights of 22 bits, and 8 bits between the passes (`Resample.c`).

mod filter;
mod nearest;
#[cfg(target_arch = "aarch64")]
mod neon;
mod pass_order;
mod taps;

pub use filter::Filter;
pub(super) use nearest::positions;
pub use pass_order::PassOrder;
pub(super) use taps::Taps;
