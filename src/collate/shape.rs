//! The shape of one sample, kept without memory of its own.

use smallvec::SmallVec;

use super::Dense;

/// Sizes of the dimensions of a sample.
pub type Shape = SmallVec<[usize; 4]>;

/// Returns the shape of so many rows.
#[inline]
pub fn sizes(rows: usize, row_shape: &[usize]) -> Shape {
    let mut shape = Shape::from_buf_and_len([rows, 0, 0, 0], 1);
    if !row_shape.is_empty() {
        shape.extend_from_slice(row_shape);
    }
    shape
}

impl Dense {
    /// Its shape, as that of a sample.
    pub(crate) fn sizes(&self) -> Shape {
        Shape::from_slice(&self.shape)
    }
}
