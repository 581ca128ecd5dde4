//! Operations with random parameters: torchvision's distributions, draws of our own.
//!
//! Each draws its parameters from a [`Draws`] and adds actions to a [`Plan`]; none sees a pixel.
//! Parameters have torch's precision, so that one whose range is a single number is the number that
//! torch makes of it. Adding one is a file, a variant here and an arm in each `match`.

mod affine;
mod augmentation;
mod auto_augment;
mod blur;
mod crop;
mod erasing;
mod flip;
mod grayscale;
mod jitter;
pub(super) mod nested;
mod part;
mod policy;
mod rand_augment;
mod resized_crop;
mod rotation;
mod trivial_augment;

pub use affine::RandomAffine;
pub use augmentation::Augmenter;
pub use auto_augment::AutoAugment;
pub use blur::RandomBlur;
pub use crop::RandomCrop;
pub use erasing::RandomErasing;
pub use flip::RandomFlip;
pub use grayscale::RandomGrayscale;
pub use jitter::ColorJitter;
pub use nested::Nested;
pub use part::Part;
pub use policy::Policy;
pub use rand_augment::RandAugment;
pub use resized_crop::RandomResizedCrop;
pub use rotation::RandomRotation;
pub use trivial_augment::TrivialAugmentWide;

use super::{Draws, Plan};
use crate::Result;

/// One operation with random parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Random {
    /// Mirrors some images.
    Flip(RandomFlip),
    /// Cuts a part of one size out.
    Crop(RandomCrop),
    /// Scales a part.
    ResizedCrop(RandomResizedCrop),
    /// Changes colours.
    Jitter(ColorJitter),
    /// Makes some images grey.
    Grayscale(RandomGrayscale),
    /// Blurs images.
    Blur(RandomBlur),
    /// Turns images.
    Rotation(RandomRotation),
    /// Turns, moves, scales and shears images.
    Affine(RandomAffine),
    /// Some augmentations of one strength.
    RandAugment(RandAugment),
    /// One augmentation of any strength.
    TrivialAugmentWide(TrivialAugmentWide),
    /// A pair of augmentations out of a policy.
    AutoAugment(AutoAugment),
    /// Overwrites a part of some samples.
    Erasing(RandomErasing),
}

impl Random {
    /// Adds to `plan` what is drawn for the image at its end.
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
            Self::RandAugment(augment) => augment.plan(&mut draws, plan),
            Self::TrivialAugmentWide(augment) => augment.plan(&mut draws, plan),
            Self::AutoAugment(augment) => augment.plan(&mut draws, plan),
            Self::Erasing(erasing) => erasing.plan(draws, plan),
        }
        Ok(())
    }

    /// Returns (height, width) of every result if it does not depend on the image nor on what is
    /// drawn; `before` is the same of what comes in.
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
            | Self::RandAugment(_)
            | Self::TrivialAugmentWide(_)
            | Self::AutoAugment(_)
            | Self::Erasing(_) => before,
        }
    }
}
