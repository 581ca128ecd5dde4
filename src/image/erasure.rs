//! `RandomErasing`: overwrites a random rectangle of a finished sample.

use super::random::{AreaRange, place};
use super::{Draws, Layout, Output, Plan, Region, Shape};
use crate::memory::Dtype;
use crate::{Error, Result};

/// A rectangle of a sample, and its new contents.
#[derive(Clone, Debug, PartialEq)]
pub struct Erasure {
    /// Inside of the sample.
    pub region: Region,
    /// The new contents.
    pub value: Value,
}

/// The contents of an erased rectangle.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The bytes of one element for each channel, or of one for all.
    Elements(Box<[u8]>),
    /// A draw from the standard normal distribution for each element; only for float32.
    Noise(Draws),
}

impl Erasure {
    /// Overwrites the rectangle in a sample `(C, H, W)` of an image of `shape`, with elements of `itemsize`
    /// bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`]: the elements are neither one nor one for each channel.
    pub(super) fn run(&self, shape: Shape, itemsize: usize, out: &mut [u8]) -> Result<()> {
        let elements = match &self.value {
            Value::Elements(elements) => elements.len() / itemsize,
            Value::Noise(_) => 1,
        };
        if elements != 1 && elements != shape.channels {
            return Err(Error::transform(
                format!("erase with {elements} values"),
                format!(
                    "If value is a sequence, it should have either a single value or {} (number of \
                     input channels)",
                    shape.channels
                ),
            ));
        }
        let rows = (0..shape.channels).flat_map(|channel| {
            let rows = self.region.top..self.region.top + self.region.height;
            rows.map(move |row| (channel, (channel * shape.height + row) * shape.width))
        });
        let rows = rows.map(|(channel, first)| {
            let first = (first + self.region.left) * itemsize;
            (channel, first..first + self.region.width * itemsize)
        });
        match &self.value {
            Value::Elements(bytes) => {
                for (channel, row) in rows {
                    let element = &bytes[channel.min(elements - 1) * itemsize..][..itemsize];
                    for into in out[row].chunks_exact_mut(itemsize) {
                        into.copy_from_slice(element);
                    }
                }
            }
            Value::Noise(draws) => {
                let mut draws = draws.clone();
                for (_, row) in rows {
                    for pair in out[row].chunks_mut(2 * size_of::<f32>()) {
                        let into = pair.as_chunks_mut().0.iter_mut();
                        for (into, noise) in into.zip(draws.normals()) {
                            *into = noise.to_ne_bytes();
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns why a value cannot be written to what `output` produces; None if it can.
pub(super) fn refusal(value: Option<&[u8]>, output: &Output) -> Option<&'static str> {
    let dtype = output.dtype();
    let whole = |bytes: &[u8]| !bytes.is_empty() && bytes.len().is_multiple_of(dtype.itemsize());
    if output.layout() != Layout::Chw {
        Some("convert the image to a tensor (C, H, W) before it")
    } else if value.map_or(dtype == Dtype::Float32, whole) {
        None
    } else {
        Some("give values of the sample's dtype; random values need float32")
    }
}

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
    /// sides; nothing is erased if none that is drawn is.
    pub(crate) fn plan(&self, mut draws: Draws, plan: &mut Plan) {
        if !draws.happens(self.p) {
            return;
        }
        let image = plan.shape();
        let (rows, columns) = (image.height, image.width);
        let fits = |&(height, width): &(usize, usize)| height < rows && width < columns;
        let Some(size) = self.area.find(&mut draws, rows * columns, fits) else {
            return;
        };
        let region = place(&mut draws, size, image);
        let value = match &self.value {
            Some(elements) => Value::Elements(elements.clone()),
            None => Value::Noise(draws),
        };
        plan.erased.push(Erasure { region, value });
    }
}
