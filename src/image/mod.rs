//! Operations on decoded images, bit for bit as Pillow and torchvision.
//!
//! Owns the steps between the decoder's pixels and a sample in its slot. Refuses operations whose result
//! would differ from theirs. Invariant: a sample depends only on the encoded bytes and the operations, not on
//! the CPU's instructions nor on previous images.

pub mod action;
mod affine;
mod colour;
pub mod erasure;
mod frame;
mod gaussian_blur;
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
mod vector;
mod weights;

pub use crate::draws::{Draws, Key};
pub use action::{Action, Kernel, SourceBox};
pub use affine::{Affine, Interpolation};
pub(crate) use colour::luma as pillow_luma;
pub use frame::Frame;
pub use gaussian_blur::GaussianBlur;
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
