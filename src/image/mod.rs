//! Operations on decoded images, bit for bit as Pillow and torchvision.
//!
//! Owns the steps between the decoder's pixels and a sample in its slot. Refuses operations whose result
//! would differ from theirs. Invariant: a sample depends only on the encoded bytes and the operations, not on
//! the CPU's instructions nor on previous images.
#![allow(clippy::inline_always)] // loops are compiled for the vectors of `wide` with all they call

pub mod action;
mod affine;
mod blend;
mod curve;
pub mod erasure;
mod frame;
mod gaussian_blur;
mod hue;
mod interpolation;
mod luma;
mod movement;
mod nearest;
pub mod op;
pub mod output;
mod pad;
mod pillow;
pub mod pipeline;
mod pixels;
pub mod random;
mod reduce;
mod resample;
mod shape;
mod to_byte;
pub mod torch;
mod turn;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod vector;
mod weights;

pub use crate::draws::{Draws, Key};
pub use action::{Action, Kernel, SourceBox};
pub use affine::{Affine, Interpolation};
pub use frame::Frame;
pub use gaussian_blur::GaussianBlur;
pub(crate) use luma::pillow_luma;
pub use luma::{Luma, Sum};
pub use movement::{Movement, Rotation};
pub use op::{Op, Plan, Size};
pub use output::{Layout, Output, Table};
pub use pad::{Pad, Padding};
pub use pillow::{Filter, PassOrder};
pub use pipeline::{Pipeline, Scratch};
pub use pixels::Pixels;
pub use reduce::Reduce;
pub use shape::{Region, Shape};
pub use turn::Turn;
