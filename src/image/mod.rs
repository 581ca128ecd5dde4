//! Operations on decoded images, bit for bit as Pillow and torchvision.
//!
//! Owns what happens between the decoder's pixels and a sample in its slot. Refuses operations
//! whose result would differ from theirs. Invariant: a sample depends on the encoded bytes and the
//! operations alone, not on the machine's instructions nor on the images before it.

pub mod action;
#[cfg(target_arch = "x86_64")]
mod avx2;
mod center_crop;
mod draws;
mod filter;
mod flip;
mod frame;
mod nearest;
pub mod op;
pub mod output;
mod pad;
mod pass_order;
pub mod pipeline;
mod pixels;
pub mod random;
mod resample;
mod scalar;
mod shape;
mod taps;

pub use action::{Action, Kernel};
pub use draws::{Draws, Key};
pub use filter::Filter;
pub use frame::Frame;
pub use op::{Op, Plan, Size};
pub use output::{Layout, Output, Table};
pub use pad::Pad;
pub use pass_order::PassOrder;
pub use pipeline::{Pipeline, Scratch};
pub use pixels::Pixels;
pub use shape::{Region, Shape};
