//! What is done to one image: operations whose every parameter is known.
//!
//! Adding one is a file with its pixels, a variant here and an arm in each `match`.

use super::resample::{Resampler, Scaling};
use super::{Filter, Frame, Pad, PassOrder, Pixels, Region, Shape, flip};
use crate::Result;

/// One operation on one image. What an [`Op`](super::Op) becomes when its random parameters are drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Keeps a part, which lies inside of the image.
    Crop(Region),
    /// Scales the image.
    Resize {
        /// Rows of the result.
        height: usize,
        /// Columns of the result.
        width: usize,
        /// How pixels are weighted and rounded.
        kernel: Kernel,
    },
    /// Mirrors left and right.
    FlipHorizontal,
    /// Mirrors top and bottom.
    FlipVertical,
    /// Adds pixels around the image.
    Pad(Pad),
}

/// Whose arithmetic scales an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Pillow's, for images.
    Pillow(Filter, PassOrder),
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
            Self::FlipHorizontal | Self::FlipVertical => shape,
        }
    }

    /// Makes the result in `target`.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`](crate::Error::Transform): an image that the operation cannot take, or no
    /// memory.
    pub(super) fn run(
        &self,
        source: Pixels<'_>,
        resampler: &mut Resampler,
        target: &mut Frame,
    ) -> Result<()> {
        match self {
            Self::Crop(region) => copy(source.part(*region), target),
            Self::Pad(pad) => pad.run(source, target),
            Self::Resize { .. } => {
                let window = Region::whole(self.shape(source.shape()));
                match self.scaling(source.shape(), window) {
                    Some(scaling) => resampler.resize(source, &scaling, target),
                    None => copy(source, target),
                }
            }
            Self::FlipHorizontal => flip::horizontal(source, target),
            Self::FlipVertical => flip::vertical(source, target),
        }
    }

    /// Returns how a resize makes a `window` of its result; None for other actions.
    pub(super) fn scaling(&self, shape: Shape, window: Region) -> Option<Scaling> {
        let Self::Resize {
            height,
            width,
            kernel: Kernel::Pillow(filter, order),
        } = *self
        else {
            return None;
        };
        Some(Scaling {
            from: (shape.height, shape.width),
            to: (height, width),
            filter,
            order,
            window,
        })
    }
}

fn copy(source: Pixels<'_>, target: &mut Frame) -> Result<()> {
    target.reset(source.shape())?;
    for (row, into) in source.rows().zip(target.rows_mut()) {
        into.copy_from_slice(row);
    }
    Ok(())
}
