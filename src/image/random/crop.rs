//! `RandomCrop` and `RandomResizedCrop`.

use crate::Result;
use crate::error::ImageMismatch;
use crate::image::action::Kernel;
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
        let (rows, columns) = (plan.shape().height, plan.shape().width);
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
            plan.push(Action::Crop(place(draws, self.size, plan.shape())));
        }
        Ok(())
    }
}

/// Draws where a rectangle of `size` (rows, columns) lies in an image.
pub(in crate::image) fn place(draws: &mut Draws, size: (usize, usize), image: Shape) -> Region {
    let (height, width) = size;
    Region::new(
        draws.below((image.height - height + 1) as u32) as usize,
        draws.below((image.width - width + 1) as u32) as usize,
        height,
        width,
    )
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

/// Number of tries to draw a rectangle that fits.
const TRIES: usize = 10;

/// The ranges that rectangles are drawn from. Each range is (least, most).
#[derive(Clone, Debug, PartialEq)]
pub struct AreaRange {
    /// The rectangle's area as a share of the image's.
    pub scale: (f64, f64),
    /// The aspect ratio.
    pub ratio: (f64, f64),
}

impl AreaRange {
    /// Draws rectangles in an image of `area` pixels until the sides of one, the dividend of the ratio first,
    /// `fit`; None after some tries.
    pub(in crate::image) fn find(
        &self,
        draws: &mut Draws,
        area: usize,
        fit: impl Fn(&(usize, usize)) -> bool,
    ) -> Option<(usize, usize)> {
        (0..TRIES).map(|_| self.draw(draws, area)).find(fit)
    }

    /// Draws the sides of a rectangle.
    ///
    /// Uses the precision of torchvision's `RandomResizedCrop.get_params`: the ratio and its logarithm are
    /// single, the rest is double.
    #[allow(clippy::cast_sign_loss)] // areas and ratios are positive
    fn draw(&self, draws: &mut Draws, area: usize) -> (usize, usize) {
        let area = area as f64 * draws.uniform(self.scale.0, self.scale.1);
        let log = |ratio: f64| f64::from(ratio as f32).ln();
        let ratio = draws.uniform(log(self.ratio.0), log(self.ratio.1)).exp();
        let ratio = f64::from(ratio as f32);
        let side = |square: f64| square.sqrt().round_ties_even() as usize;
        (side(area * ratio), side(area / ratio))
    }
}

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
        let region = self.region(draws, plan.shape());
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

    /// Draws the crop: torchvision's `RandomResizedCrop.get_params`. It is the largest central one of an allowed
    /// aspect ratio if none that is drawn fits.
    #[allow(clippy::cast_sign_loss)] // sides and ratios are positive
    fn region(&self, draws: &mut Draws, image: Shape) -> Region {
        let (height, width) = (image.height, image.width);
        let fits = |&(w, h): &(usize, usize)| (1..=width).contains(&w) && (1..=height).contains(&h);
        if let Some((w, h)) = self.area.find(draws, height * width, fits) {
            return place(draws, (h, w), image);
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
        Region::new((height - h) / 2, (width - w) / 2, h, w)
    }
}
