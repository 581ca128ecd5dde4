//! `RandomCrop`: a crop of fixed size from a random position, after optional padding.

use crate::Result;
use crate::error::ImageMismatch;
use crate::image::{Action, Draws, Pad, Plan, Region, Shape};

/// Crops `size` from a random position.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomCrop {
    /// (rows, columns) of the result.
    pub size: (usize, usize),
    /// Padding that is added to every image first.
    pub padding: Option<Pad>,
    /// The padding of an image that is then too small, on both sides by what is missing. Only the kind of
    /// pixels counts.
    pub if_needed: Option<Pad>,
    /// True for the operation of `transforms.v2`, whose errors have other messages.
    pub second: bool,
}

impl RandomCrop {
    /// Pads and draws the crop: torchvision's `RandomCrop.forward`.
    pub(crate) fn plan(&self, draws: &mut Draws, plan: &mut Plan) -> Result<()> {
        if let Some(padding) = &self.padding {
            plan.push(Action::Pad(padding.clone()));
        }
        if let Some(needed) = &self.if_needed {
            let across = self.size.1.saturating_sub(plan.shape().width);
            add(needed, 0, across, plan);
            let down = self.size.0.saturating_sub(plan.shape().height);
            add(needed, down, 0, plan);
        }
        let (height, width) = self.size;
        let Shape {
            height: rows,
            width: columns,
            ..
        } = plan.shape();
        if height > rows || width > columns {
            let image_mismatch = ImageMismatch::Crop {
                wanted: (height, width),
                size: (rows, columns),
                padded: self.padding.is_some(),
                second: self.second,
            };
            return Err(image_mismatch.into());
        }
        if (height, width) != (rows, columns) {
            plan.push(Action::Crop(Region {
                top: draws.below((rows - height + 1) as u32) as usize,
                left: draws.below((columns - width + 1) as u32) as usize,
                height,
                width,
            }));
        }
        Ok(())
    }
}

/// Adds rows above and below, and columns on the left and right, with the pixels of `pad`.
fn add(pad: &Pad, rows: usize, columns: usize, plan: &mut Plan) {
    if (rows, columns) != (0, 0) {
        plan.push(Action::Pad(Pad {
            left: columns,
            top: rows,
            right: columns,
            bottom: rows,
            ..pad.clone()
        }));
    }
}
