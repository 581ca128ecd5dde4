//! `RandomErasing`: overwrites a random rectangle of the finished sample.

use super::AreaRange;
use crate::image::erasure::{Erasure, Value};
use crate::image::{Draws, Plan, Region};

/// Number of tries before nothing is erased.
const TRIES: usize = 10;

/// Overwrites a rectangle of some samples.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomErasing {
    /// Probability, between 0 and 1.
    pub p: f64,
    /// The range of rectangles; the ratio is height by width.
    pub area: AreaRange,
    /// The elements of each channel; None draws each from the standard normal distribution.
    pub value: Option<Box<[u8]>>,
}

impl RandomErasing {
    /// Draws the rectangle: torchvision's `RandomErasing.get_params`. It is smaller than the image on both
    /// sides.
    pub(crate) fn plan(&self, mut draws: Draws, plan: &mut Plan) {
        if !draws.happens(self.p) {
            return;
        }
        let (rows, columns) = (plan.shape().height, plan.shape().width);
        let mut tries = (0..TRIES).map(|_| self.area.draw(&mut draws, rows * columns));
        let Some((height, width)) = tries.find(|&(height, width)| height < rows && width < columns)
        else {
            return;
        };
        let region = Region {
            top: draws.below((rows - height + 1) as u32) as usize,
            left: draws.below((columns - width + 1) as u32) as usize,
            height,
            width,
        };
        let value = match &self.value {
            Some(elements) => Value::Elements(elements.clone()),
            None => Value::Noise(draws),
        };
        plan.erase(Erasure { region, value });
    }
}
