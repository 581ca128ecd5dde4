//! Operations with random parameters: torchvision's distributions, draws of our own.
//!
//! Each draws its parameters from a [`Draws`](super::Draws) and adds actions to a
//! [`Plan`](super::Plan); none sees a pixel.

mod flip;
mod resized_crop;

pub use flip::RandomFlip;
pub use resized_crop::RandomResizedCrop;
