//! `RandomResizedCrop`: a crop of random area and aspect ratio, scaled to one size.

use super::AreaRange;
use crate::image::action::Kernel;
use crate::image::{Action, Draws, Plan, Region};

/// Number of tries before the largest central crop of an allowed aspect ratio is taken.
const TRIES: usize = 10;

/// Scales a random crop of an image to `size`.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomResizedCrop {
    /// (rows, columns) of the result.
    pub size: (usize, usize),
    /// The range of crops; the ratio is width by height.
    pub area: AreaRange,
    /// The kernels that scale the crop, equally likely.
    pub kernels: Vec<Kernel>,
}

impl RandomResizedCrop {
    pub(crate) fn plan(&self, draws: &mut Draws, plan: &mut Plan) {
        let region = self.region(draws, plan.shape().height, plan.shape().width);
        let kernel = match self.kernels[..] {
            [kernel] => kernel,
            ref kernels => draws.one_of(kernels),
        };
        plan.push(Action::Crop(region));
        plan.push(Action::Resize {
            height: self.size.0,
            width: self.size.1,
            kernel,
            part: None,
        });
    }

    /// Draws the crop: torchvision's `RandomResizedCrop.get_params`.
    #[allow(clippy::cast_sign_loss)] // sides and ratios are positive
    fn region(&self, draws: &mut Draws, height: usize, width: usize) -> Region {
        for _ in 0..TRIES {
            let (w, h) = self.area.draw(draws, height * width);
            if (1..=width).contains(&w) && (1..=height).contains(&h) {
                return Region {
                    top: draws.below((height - h + 1) as u32) as usize,
                    left: draws.below((width - w + 1) as u32) as usize,
                    height: h,
                    width: w,
                };
            }
        }
        let proportion = width as f64 / height as f64;
        let (least, most) = self.area.ratio;
        let (h, w) = if proportion < least {
            let h = (width as f64 / least).round_ties_even();
            (h as usize, width)
        } else if proportion > most {
            let w = (height as f64 * most).round_ties_even();
            (height, w as usize)
        } else {
            (height, width)
        };
        Region {
            top: (height - h) / 2,
            left: (width - w) / 2,
            height: h,
            width: w,
        }
    }
}
