//! Colour operations: the pixels of `PIL.ImageEnhance`, `PIL.ImageOps` and of torchvision's functional on
//! Pillow images.
//!
//! Owns arithmetic on pixels that stay in place. Refuses factors for which Pillow's result is undefined.
//! Invariant: every byte is Pillow's; its rounding is described where it matters.
#![allow(clippy::inline_always)] // loops are compiled for the vectors of `wide` with all they call

mod blend;
mod curve;
mod grey;
mod hue;

pub(super) use blend::{brightness, contrast, saturation, sharpness};
pub(super) use curve::{autocontrast, equalize, invert, posterize, solarize};
pub(super) use grey::grayscale;
pub(crate) use grey::of as luma;
pub(super) use hue::hue;
