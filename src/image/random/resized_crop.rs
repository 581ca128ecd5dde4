//! `RandomResizedCrop`: a part of random area and proportion, scaled to one size.

use crate::image::action::Kernel;
use crate::image::{Action, Draws, Plan, Region};

/// Tries before the largest part of an allowed proportion is taken from the middle.
const TRIES: usize = 10;

/// Scales a random part of an image to `size`.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomResizedCrop {
    /// (rows, columns) of the result.
    pub size: (usize, usize),
    /// Least and largest part of the image's area.
    pub scale: (f64, f64),
    /// Least and largest width by height.
    pub ratio: (f64, f64),
    /// How the part is scaled.
    pub kernel: Kernel,
}

impl RandomResizedCrop {
    pub(crate) fn plan(&self, draws: &mut Draws, plan: &mut Plan) {
        let region = self.region(draws, plan.shape().height, plan.shape().width);
        plan.push(Action::Crop(region));
        plan.push(Action::Resize {
            height: self.size.0,
            width: self.size.1,
            kernel: self.kernel,
        });
    }

    /// Draws the part: torchvision's `RandomResizedCrop.get_params`.
    #[allow(clippy::cast_sign_loss)] // areas and proportions are positive
    fn region(&self, draws: &mut Draws, height: usize, width: usize) -> Region {
        let area = (height * width) as f64;
        let (low, high) = (self.ratio.0.ln(), self.ratio.1.ln());
        for _ in 0..TRIES {
            let target = area * draws.uniform(self.scale.0, self.scale.1);
            let ratio = draws.uniform(low, high).exp();
            let w = (target * ratio).sqrt().round_ties_even() as usize;
            let h = (target / ratio).sqrt().round_ties_even() as usize;
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
        let (h, w) = if proportion < self.ratio.0 {
            let h = (width as f64 / self.ratio.0).round_ties_even();
            (h as usize, width)
        } else if proportion > self.ratio.1 {
            let w = (height as f64 * self.ratio.1).round_ties_even();
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
