//! `RandomErasing`: a rectangle of the finished sample that is overwritten.

use super::Part;
use crate::image::erasure::{Erasure, Value};
use crate::image::{Draws, Plan, Region};

/// Tries before nothing is erased.
const TRIES: usize = 10;

/// Overwrites a part of some samples.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomErasing {
    /// Between 0 and 1.
    pub p: f64,
    /// The part; its ratio is height by width.
    pub part: Part,
    /// The elements of each channel; None draws each from the standard normal distribution.
    pub value: Option<Box<[u8]>>,
}

impl RandomErasing {
    /// Draws the part: torchvision's `RandomErasing.get_params`. It is smaller than the image, on
    /// both sides.
    pub(crate) fn plan(&self, mut draws: Draws, plan: &mut Plan) {
        if !draws.happens(self.p) {
            return;
        }
        let (rows, columns) = (plan.shape().height, plan.shape().width);
        let mut tries = (0..TRIES).map(|_| self.part.draw(&mut draws, rows * columns));
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
