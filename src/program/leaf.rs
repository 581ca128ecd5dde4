//! A leaf of a sample: a column, and what is done to its values.

use super::image::Image;
use crate::column::{Blobs, Rows};
use crate::memory::Dtype;

/// One leaf. Adding a kind is one arm per `match` below.
#[derive(Debug)]
pub enum Leaf {
    /// Rows of an array, as they are.
    Rows(Rows),
    /// Images, decoded and transformed.
    Image(Image),
}

impl Leaf {
    /// Number of samples.
    pub fn len(&self) -> usize {
        match self {
            Leaf::Rows(rows) => rows.len(),
            Leaf::Image(image) => image.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element type of a sample.
    pub fn dtype(&self) -> Dtype {
        match self {
            Leaf::Rows(rows) => rows.dtype(),
            Leaf::Image(image) => image.pipeline().dtype(),
        }
    }

    /// Shape of every sample, if it is known before a sample is decoded.
    pub fn fixed_shape(&self) -> Option<Vec<usize>> {
        match self {
            Leaf::Rows(rows) => Some(rows.row_shape().to_vec()),
            Leaf::Image(image) => image.pipeline().fixed_shape(),
        }
    }

    /// The encoded bytes behind the leaf, if it has some.
    pub fn blobs(&self) -> Option<&Blobs> {
        match self {
            Leaf::Rows(_) => None,
            Leaf::Image(image) => image.blobs(),
        }
    }

    /// Whether samples depend on the key of their draws.
    pub fn is_random(&self) -> bool {
        match self {
            Leaf::Rows(_) => false,
            Leaf::Image(image) => image.pipeline().is_random(),
        }
    }
}
