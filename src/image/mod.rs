//! Operations on decoded images, bit for bit as Pillow and torchvision.
//!
//! Owns what happens between the decoder's pixels and a sample in its slot. Refuses operations
//! whose result would differ from theirs. Invariant: a sample depends on the encoded bytes and the
//! operations alone, not on the machine's instructions nor on the images before it.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod center_crop;
mod filter;
mod frame;
mod nearest;
pub mod op;
mod pass_order;
pub mod pipeline;
mod resample;
mod scalar;
mod taps;
mod write;

pub use filter::Filter;
pub use frame::Frame;
pub use op::{Op, Size};
pub use pass_order::PassOrder;
pub use pipeline::{Pipeline, Scratch};
