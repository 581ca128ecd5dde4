//! Masks of padded fields: which elements belong to a sample, and which are padding.

use super::Shape;
use super::array::{Array, PaddedRow, Side, fill};
use super::pad::Layout;

const ONE: [u8; 8] = 1_i64.to_ne_bytes();

impl Layout {
    /// Returns the shape of the mask of one sample. It has the sizes of the padded dimensions. A `rank` above
    /// that adds ones in place of the field's other dimensions, the last ones first, and beyond the field's
    /// own rank ones in front.
    ///
    /// `rank` counts the batch dimension; None adds no ones. The error is the smallest possible rank.
    pub fn mask_shape(&self, rank: Option<usize>) -> Result<Shape, usize> {
        let least = self.dims.len();
        let rank = rank.map_or(Some(least), |rank| rank.checked_sub(1));
        let Some(mut spare) = rank.and_then(|rank| rank.checked_sub(least)) else {
            return Err(least + 1);
        };
        let mut shape = Shape::new();
        for (dim, &size) in self.shape.iter().enumerate().rev() {
            if self.dims.contains(&dim) {
                shape.push(size);
            } else if spare > 0 {
                shape.push(1);
                spare -= 1;
            }
        }
        shape.extend(std::iter::repeat_n(1, spare));
        shape.reverse();
        Ok(shape)
    }

    /// Writes the masks of samples of these shapes: 1 for elements of the sample, 0 for padding, in integers
    /// of `itemsize` bytes, 1 or 8.
    pub fn write_masks<'a>(
        &self,
        shapes: impl Iterator<Item = &'a [usize]>,
        side: Side,
        itemsize: usize,
        out: &mut [u8],
    ) {
        if let [dim] = self.dims[..] {
            let lengths = shapes.map(|shape| shape[dim].min(self.kept[dim]));
            return write_rows(lengths, self.shape[dim], side, itemsize, out);
        }
        let mut dims = self.dims.clone();
        dims.sort_unstable();
        let padded: Vec<usize> = dims.iter().map(|&dim| self.shape[dim]).collect();
        let bytes = padded.iter().product::<usize>() * itemsize;
        if bytes == 0 {
            return;
        }
        let one = if itemsize == 1 { &[1][..] } else { &ONE };
        let strides = vec![0; dims.len()];
        let row = PaddedRow {
            shape: &padded,
            side,
            fill: &[0; 8][..itemsize],
        };
        let mut sizes = Vec::new();
        for (shape, place) in shapes.zip(out.chunks_exact_mut(bytes)) {
            sizes.clear();
            sizes.extend(dims.iter().map(|&dim| shape[dim].min(self.kept[dim])));
            let ones = Array {
                bytes: one,
                first: 0,
                shape: &sizes,
                strides: &strides,
            };
            row.write(ones, place);
        }
    }
}

/// Writes rows of `size` integers, of which `length` are 1, one row for each of `lengths`.
fn write_rows(
    lengths: impl Iterator<Item = usize>,
    size: usize,
    side: Side,
    itemsize: usize,
    out: &mut [u8],
) {
    if size == 0 {
        return;
    }
    let one = if itemsize == 1 { &[1][..] } else { &ONE };
    for (length, row) in lengths.zip(out.chunks_exact_mut(size * itemsize)) {
        let (ones, zeros) = match side {
            Side::Right => row.split_at_mut(length * itemsize),
            Side::Left => {
                let (zeros, ones) = row.split_at_mut((size - length) * itemsize);
                (ones, zeros)
            }
        };
        fill(one, ones);
        zeros.fill(0);
    }
}
