//! Actions on one image: operations whose every parameter is known.
//!
//! Adding one is a file for its pixels, a variant here and an arm in each `match`.

use super::resample::{Axis, Resampler, Scaling};
use super::{
    Affine, Filter, Frame, GaussianBlur, Luma, Pad, PassOrder, Pixels, Reduce, Region, Shape, Turn,
    blend, curve, hue, luma, torch, turn,
};
use crate::Result;
use crate::error::ImageMismatch;

/// One action on one image. An [`Op`](super::Op) becomes actions when its random parameters are drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Keeps a region, which lies inside of the image.
    Crop(Region),
    /// Scales the image.
    Resize {
        /// Rows of the result.
        height: usize,
        /// Columns of the result.
        width: usize,
        /// The kernel that weights and rounds pixels.
        kernel: Kernel,
        /// The part that is scaled, only with a kernel of Pillow's; None for the whole image.
        part: Option<SourceBox>,
    },
    /// Replaces blocks of pixels by their mean.
    Reduce(Reduce),
    /// Mirrors left and right.
    FlipHorizontal,
    /// Mirrors top and bottom.
    FlipVertical,
    /// Adds pixels around the image.
    Pad(Pad),
    /// Blends black with the image, weighted by this factor.
    Brightness(f64),
    /// Blends the mean grey with the image.
    Contrast(f64),
    /// Blends the grey image with the image.
    Saturation(f64),
    /// Rotates the hue by a share of the colour wheel, between -0.5 and 0.5.
    Hue(f64),
    /// Blends the smoothed image with the image.
    Sharpness(f64),
    /// Converts colours to grey.
    Grayscale {
        /// Channels of the result: 1, or 3 equal ones.
        channels: usize,
        /// The weights of colours.
        luma: Luma,
    },
    /// Inverts the image.
    Invert,
    /// Keeps this many high bits of each value, between 1 and 8.
    Posterize(u8),
    /// Inverts values of at least this.
    Solarize(f64),
    /// Stretches each channel to the full range.
    Autocontrast,
    /// Equalizes the histogram of each channel.
    Equalize,
    /// Rotates the image by quarter turns.
    Turn(Turn),
    /// Applies an affine map.
    Affine(Affine),
    /// Blurs with weights that fall off in all directions.
    GaussianBlur(GaussianBlur),
}

/// A rectangle of an image, whose sides may lie within pixels: the `box` of Pillow's `resize`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)] // sides, in pixels
pub struct SourceBox {
    pub left: f32,
    pub top: f32,
    pub right: f32,
    pub bottom: f32,
}

impl SourceBox {
    /// Returns true if it has a size and lies in an image of `shape`.
    pub(super) fn lies_in(self, shape: Shape) -> bool {
        let is_inside =
            |from: f32, to: f32, end: usize| 0.0 <= from && from < to && to <= end as f32;
        is_inside(self.left, self.right, shape.width)
            && is_inside(self.top, self.bottom, shape.height)
    }
}

/// The library whose arithmetic scales an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Pillow's, for images.
    Pillow(Filter, PassOrder),
    /// torch's, for tensors of bytes.
    Torch(torch::Interpolation),
}

impl Kernel {
    /// Refuses to scale to or from an image of no pixels.
    pub(super) fn check(self, from: (usize, usize), to: (usize, usize)) -> Result<()> {
        if from.0.min(from.1).min(to.0).min(to.1) > 0 {
            return Ok(());
        }
        let image_mismatch = match self {
            Self::Pillow(..) => ImageMismatch::NoPixels,
            Self::Torch(_) => ImageMismatch::NoElements { from, to },
        };
        Err(image_mismatch.into())
    }
}

impl Action {
    /// Returns the size of the result for an image of `shape`.
    pub fn shape(&self, shape: Shape) -> Shape {
        match self {
            Self::Crop(region) => shape.sized(region.height, region.width),
            Self::Resize { height, width, .. } => shape.sized(*height, *width),
            Self::Pad(pad) => {
                let (height, width) = pad.size(shape.height, shape.width);
                shape.sized(height, width)
            }
            Self::Turn(turn) => turn.shape(shape),
            Self::Reduce(reduce) => reduce.shape(shape),
            Self::Affine(affine) => shape.sized(affine.size.0, affine.size.1),
            Self::Grayscale { channels, .. } => shape.with_channels(*channels),
            Self::FlipHorizontal
            | Self::FlipVertical
            | Self::Brightness(_)
            | Self::Contrast(_)
            | Self::Saturation(_)
            | Self::Hue(_)
            | Self::Sharpness(_)
            | Self::Invert
            | Self::Posterize(_)
            | Self::Solarize(_)
            | Self::Autocontrast
            | Self::Equalize
            | Self::GaussianBlur(_) => shape,
        }
    }

    /// Returns the bytes of a result's pixel, if the action determines them; None if they are unchanged.
    pub(super) fn channels(&self) -> Option<usize> {
        match self {
            Self::Grayscale { channels, .. } => Some(*channels),
            _ => None,
        }
    }

    /// Runs the action, with its result in `target`.
    pub(super) fn run(
        &self,
        source: Pixels<'_>,
        resampler: &mut Resampler,
        target: &mut Frame,
    ) -> Result<()> {
        match self {
            Self::Crop(region) => target.copy(source.part(*region)),
            Self::Pad(pad) => pad.run(source, target),
            Self::Turn(turn) => turn.run(source, target),
            Self::Reduce(reduce) => reduce.run(source, target),
            Self::Affine(affine) => affine.run(source, target),
            Self::Resize { .. } => {
                let window = Region::whole(self.shape(source.shape()));
                match self.scaling(source.shape(), window) {
                    Some(scaling) => resampler.resize(source, &scaling, target),
                    None => target.copy(source),
                }
            }
            Self::FlipHorizontal => turn::flip_horizontal(source, target),
            Self::FlipVertical => turn::flip_vertical(source, target),
            Self::Brightness(factor) => blend::brightness(*factor, source, target),
            Self::Contrast(factor) => blend::contrast(*factor, source, target),
            Self::Saturation(factor) => blend::saturation(*factor, source, target),
            Self::Hue(factor) => hue::hue(*factor, source, target),
            Self::Sharpness(factor) => blend::sharpness(*factor, source, target),
            Self::Grayscale { channels, luma } => match luma {
                Luma::Pillow => luma::pillow_grayscale(*channels, source, target),
                Luma::Torch(sum) => luma::torch_grayscale(source, *channels, *sum, target),
            },
            Self::Invert => curve::invert(source, target),
            Self::Posterize(bits) => curve::posterize(*bits, source, target),
            Self::Solarize(threshold) => curve::solarize(*threshold, source, target),
            Self::Autocontrast => curve::autocontrast(source, target),
            Self::Equalize => curve::equalize(source, target),
            Self::GaussianBlur(blur) => blur.run(source, target),
        }
    }

    /// Returns the parameters with which a resize makes a `window` of its result; None for other actions.
    pub(super) fn scaling(&self, shape: Shape, window: Region) -> Option<Scaling> {
        let Self::Resize {
            height,
            width,
            kernel,
            part,
        } = *self
        else {
            return None;
        };
        let mut scaling = Scaling {
            height: Axis::whole(shape.height, height),
            width: Axis::whole(shape.width, width),
            kernel,
            window,
        };
        if let Some(part) = part {
            scaling.height.sides = (part.top, part.bottom);
            scaling.width.sides = (part.left, part.right);
        }
        Some(scaling)
    }
}
