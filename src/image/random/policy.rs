//! The policies of `AutoAugment` as torchvision has them: Cubuk et al., "Learning augmentation policies
//! from data", 2019.

use super::augment::Augmentation;

/// A step of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) what: Augmentation,
    /// Its probability, in tenths.
    pub(super) tenths: u8,
    /// Its magnitude, of ten levels; 0 where there are none.
    pub(super) level: u32,
}

/// The dataset that a policy was learned on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum Policy {
    ImageNet,
    Cifar10,
    Svhn,
}

type Pairs = [[Step; 2]; 25];

impl Policy {
    /// Returns the policy that torchvision's `AutoAugmentPolicy` calls `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "imagenet" => Self::ImageNet,
            "cifar10" => Self::Cifar10,
            "svhn" => Self::Svhn,
            _ => return None,
        })
    }

    pub(super) fn pairs(self) -> &'static Pairs {
        match self {
            Self::ImageNet => &IMAGENET,
            Self::Cifar10 => &CIFAR10,
            Self::Svhn => &SVHN,
        }
    }
}

const fn step(what: Augmentation, tenths: u8, level: u32) -> Step {
    Step {
        what,
        tenths,
        level,
    }
}

use Augmentation::{
    AutoContrast, Brightness, Color, Contrast, Equalize, Invert, Posterize, Rotate, Sharpness,
    ShearX, ShearY, Solarize, TranslateX, TranslateY,
};

#[rustfmt::skip]
const IMAGENET: Pairs = [
    [step(Posterize, 4, 8), step(Rotate, 6, 9)],
    [step(Solarize, 6, 5), step(AutoContrast, 6, 0)],
    [step(Equalize, 8, 0), step(Equalize, 6, 0)],
    [step(Posterize, 6, 7), step(Posterize, 6, 6)],
    [step(Equalize, 4, 0), step(Solarize, 2, 4)],
    [step(Equalize, 4, 0), step(Rotate, 8, 8)],
    [step(Solarize, 6, 3), step(Equalize, 6, 0)],
    [step(Posterize, 8, 5), step(Equalize, 10, 0)],
    [step(Rotate, 2, 3), step(Solarize, 6, 8)],
    [step(Equalize, 6, 0), step(Posterize, 4, 6)],
    [step(Rotate, 8, 8), step(Color, 4, 0)],
    [step(Rotate, 4, 9), step(Equalize, 6, 0)],
    [step(Equalize, 0, 0), step(Equalize, 8, 0)],
    [step(Invert, 6, 0), step(Equalize, 10, 0)],
    [step(Color, 6, 4), step(Contrast, 10, 8)],
    [step(Rotate, 8, 8), step(Color, 10, 2)],
    [step(Color, 8, 8), step(Solarize, 8, 7)],
    [step(Sharpness, 4, 7), step(Invert, 6, 0)],
    [step(ShearX, 6, 5), step(Equalize, 10, 0)],
    [step(Color, 4, 0), step(Equalize, 6, 0)],
    [step(Equalize, 4, 0), step(Solarize, 2, 4)],
    [step(Solarize, 6, 5), step(AutoContrast, 6, 0)],
    [step(Invert, 6, 0), step(Equalize, 10, 0)],
    [step(Color, 6, 4), step(Contrast, 10, 8)],
    [step(Equalize, 8, 0), step(Equalize, 6, 0)],
];

#[rustfmt::skip]
const CIFAR10: Pairs = [
    [step(Invert, 1, 0), step(Contrast, 2, 6)],
    [step(Rotate, 7, 2), step(TranslateX, 3, 9)],
    [step(Sharpness, 8, 1), step(Sharpness, 9, 3)],
    [step(ShearY, 5, 8), step(TranslateY, 7, 9)],
    [step(AutoContrast, 5, 0), step(Equalize, 9, 0)],
    [step(ShearY, 2, 7), step(Posterize, 3, 7)],
    [step(Color, 4, 3), step(Brightness, 6, 7)],
    [step(Sharpness, 3, 9), step(Brightness, 7, 9)],
    [step(Equalize, 6, 0), step(Equalize, 5, 0)],
    [step(Contrast, 6, 7), step(Sharpness, 6, 5)],
    [step(Color, 7, 7), step(TranslateX, 5, 8)],
    [step(Equalize, 3, 0), step(AutoContrast, 4, 0)],
    [step(TranslateY, 4, 3), step(Sharpness, 2, 6)],
    [step(Brightness, 9, 6), step(Color, 2, 8)],
    [step(Solarize, 5, 2), step(Invert, 0, 0)],
    [step(Equalize, 2, 0), step(AutoContrast, 6, 0)],
    [step(Equalize, 2, 0), step(Equalize, 6, 0)],
    [step(Color, 9, 9), step(Equalize, 6, 0)],
    [step(AutoContrast, 8, 0), step(Solarize, 2, 8)],
    [step(Brightness, 1, 3), step(Color, 7, 0)],
    [step(Solarize, 4, 5), step(AutoContrast, 9, 0)],
    [step(TranslateY, 9, 9), step(TranslateY, 7, 9)],
    [step(AutoContrast, 9, 0), step(Solarize, 8, 3)],
    [step(Equalize, 8, 0), step(Invert, 1, 0)],
    [step(TranslateY, 7, 9), step(AutoContrast, 9, 0)],
];

#[rustfmt::skip]
const SVHN: Pairs = [
    [step(ShearX, 9, 4), step(Invert, 2, 0)],
    [step(ShearY, 9, 8), step(Invert, 7, 0)],
    [step(Equalize, 6, 0), step(Solarize, 6, 6)],
    [step(Invert, 9, 0), step(Equalize, 6, 0)],
    [step(Equalize, 6, 0), step(Rotate, 9, 3)],
    [step(ShearX, 9, 4), step(AutoContrast, 8, 0)],
    [step(ShearY, 9, 8), step(Invert, 4, 0)],
    [step(ShearY, 9, 5), step(Solarize, 2, 6)],
    [step(Invert, 9, 0), step(AutoContrast, 8, 0)],
    [step(Equalize, 6, 0), step(Rotate, 9, 3)],
    [step(ShearX, 9, 4), step(Solarize, 3, 3)],
    [step(ShearY, 8, 8), step(Invert, 7, 0)],
    [step(Equalize, 9, 0), step(TranslateY, 6, 6)],
    [step(Invert, 9, 0), step(Equalize, 6, 0)],
    [step(Contrast, 3, 3), step(Rotate, 8, 4)],
    [step(Invert, 8, 0), step(TranslateY, 0, 2)],
    [step(ShearY, 7, 6), step(Solarize, 4, 8)],
    [step(Invert, 6, 0), step(Rotate, 8, 4)],
    [step(ShearY, 3, 7), step(TranslateX, 9, 3)],
    [step(ShearX, 1, 6), step(Invert, 6, 0)],
    [step(Solarize, 7, 2), step(TranslateY, 6, 7)],
    [step(ShearY, 8, 4), step(Invert, 8, 0)],
    [step(ShearX, 7, 9), step(TranslateY, 8, 3)],
    [step(ShearY, 8, 5), step(AutoContrast, 7, 0)],
    [step(ShearX, 7, 2), step(Invert, 1, 0)],
];
