//! Random areas and aspect ratios of rectangles.

use crate::image::Draws;

/// The ranges that rectangles are drawn from. Each range is (least, most).
#[derive(Clone, Debug, PartialEq)]
pub struct AreaRange {
    /// The rectangle's area as a share of the image's.
    pub scale: (f64, f64),
    /// The aspect ratio.
    pub ratio: (f64, f64),
}

impl AreaRange {
    /// Draws the sides of a rectangle in an image of `area` pixels, the dividend of the ratio first.
    ///
    /// Uses the precision of torchvision's `RandomResizedCrop.get_params`: the ratio and its logarithm are
    /// single, the rest is double.
    #[allow(clippy::cast_sign_loss)] // areas and ratios are positive
    pub(super) fn draw(&self, draws: &mut Draws, area: usize) -> (usize, usize) {
        let area = area as f64 * draws.uniform(self.scale.0, self.scale.1);
        let log = |ratio: f64| f64::from(ratio as f32).ln();
        let ratio = draws.uniform(log(self.ratio.0), log(self.ratio.1)).exp();
        let ratio = f64::from(ratio as f32);
        let side = |square: f64| square.sqrt().round_ties_even() as usize;
        (side(area * ratio), side(area / ratio))
    }
}
