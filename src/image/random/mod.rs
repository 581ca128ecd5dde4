//! Operations with random parameters: torchvision's distributions, with draws of this library.
//!
//! Each draws its parameters from a [`Draws`] and adds actions to a [`Plan`]; none reads a pixel. Parameters
//! have torch's precision, so that a range of a single number gives the number that torch computes. Adding
//! one is a file, a variant here and an arm in each `match`.

mod augment;
mod colour;
mod crop;
mod movement;
pub(super) mod nested;
mod policy;

pub use augment::{Augment, Augmenter, Choice};
pub use colour::{ColorJitter, RandomBlur, RandomGrayscale};
pub(super) use crop::place;
pub use crop::{AreaRange, RandomCrop, RandomResizedCrop};
pub use movement::{RandomAffine, RandomFlip, RandomRotation};
pub use nested::Nested;
pub use policy::Policy;

pub use super::erasure::RandomErasing;
use super::{Draws, Plan};
use crate::Result;

/// One operation with random parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Random {
    /// Mirrors some images.
    Flip(RandomFlip),
    /// Crops a fixed size from a random position.
    Crop(RandomCrop),
    /// Scales a random crop.
    ResizedCrop(RandomResizedCrop),
    /// Changes colours.
    Jitter(ColorJitter),
    /// Converts some images to grey.
    Grayscale(RandomGrayscale),
    /// Blurs images.
    Blur(RandomBlur),
    /// Rotates images.
    Rotation(RandomRotation),
    /// Rotates, translates, scales and shears images.
    Affine(RandomAffine),
    /// Applies augmentations that are drawn.
    Augment(Augment),
    /// Overwrites a rectangle of some samples.
    Erasing(RandomErasing),
}

impl Random {
    /// Draws parameters and adds the actions to `plan`.
    pub(super) fn plan(&self, mut draws: Draws, plan: &mut Plan) -> Result<()> {
        match self {
            Self::Flip(flip) => flip.plan(&mut draws, plan),
            Self::Crop(crop) => crop.plan(&mut draws, plan)?,
            Self::ResizedCrop(crop) => crop.plan(&mut draws, plan),
            Self::Jitter(jitter) => jitter.plan(&mut draws, plan),
            Self::Grayscale(grayscale) => grayscale.plan(&mut draws, plan),
            Self::Blur(blur) => blur.plan(&mut draws, plan),
            Self::Rotation(rotation) => rotation.plan(&mut draws, plan),
            Self::Affine(affine) => affine.plan(&mut draws, plan),
            Self::Augment(augment) => augment.plan(&mut draws, plan),
            Self::Erasing(erasing) => erasing.plan(draws, plan),
        }
        Ok(())
    }

    /// Returns (height, width) after the operation if it depends neither on the image nor on the draws;
    /// `before` is the same for its input.
    pub(super) fn fixed_size(&self, before: Option<(usize, usize)>) -> Option<(usize, usize)> {
        match self {
            Self::Crop(RandomCrop { size, .. })
            | Self::ResizedCrop(RandomResizedCrop { size, .. }) => Some(*size),
            Self::Rotation(rotation) => rotation.fixed_size(before),
            Self::Flip(_)
            | Self::Jitter(_)
            | Self::Grayscale(_)
            | Self::Blur(_)
            | Self::Affine(_)
            | Self::Augment(_)
            | Self::Erasing(_) => before,
        }
    }
}
