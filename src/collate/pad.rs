//! Pads samples of different sizes to one shape.
//!
//! Owns the shape that the samples of a batch get, and their writing: each byte of the field is written once,
//! by the sample or by the padding. Refuses samples of different ranks, sizes that differ in a dimension that
//! is not padded, and sizes above a limit unless they may be truncated.

use super::array::{Array, PaddedRow, Side, fill};
use super::{Fill, Mismatch, Shape, sizes};

/// The padding of a field.
#[derive(Clone, Debug)]
pub struct Pad {
    /// The padding value.
    pub fill: Fill,
    /// The side that is padded.
    pub side: Side,
    /// The dimensions that are padded, negative ones from the end; None for those that vary.
    pub dims: Option<Vec<isize>>,
    /// True if the user named this field. Then, if none of its dimensions varies in a batch, the first one
    /// counts as varying; otherwise that holds only for one-dimensional samples.
    pub named: bool,
    /// The padded sizes.
    pub sizes: Sizes,
}

/// The rule by which the padded sizes follow from those of the samples.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    /// Exact sizes: one for all padded dimensions or one for each; empty for the size of the largest sample.
    pub to: Vec<usize>,
    /// Maximum size of a sample.
    pub max_length: Option<usize>,
    /// True to cut longer samples at their end.
    pub truncate: bool,
    /// Buckets, ascending: a size becomes the next one; above the last, the next multiple of the last.
    pub rungs: Vec<usize>,
    /// Sizes are rounded up to multiples of this; 0 and 1 change nothing.
    pub multiple_of: usize,
}

/// The shape that the samples of one batch get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The padded shape.
    pub shape: Shape,
    /// The maximum size that is kept of a sample, in each dimension.
    pub kept: Shape,
    /// The dimensions whose sizes are reported as lengths.
    pub dims: Shape,
}

impl Pad {
    /// Returns the layout for samples of these shapes, at least one.
    pub fn layout<'a, I>(&self, mut shapes: I) -> Result<Layout, Mismatch>
    where
        I: Iterator<Item = &'a [usize]> + Clone,
    {
        let all = shapes.clone();
        let first = shapes.next().unwrap_or_default();
        let (mut low, mut high) = (Shape::from_slice(first), Shape::from_slice(first));
        for (position, shape) in all.clone().enumerate() {
            if shape.len() != first.len() {
                return Err(Mismatch::Rank {
                    position,
                    shape: shape.to_vec(),
                    first: first.to_vec(),
                });
            }
            for ((low, high), &size) in low.iter_mut().zip(&mut high).zip(shape) {
                *low = size.min(*low);
                *high = size.max(*high);
            }
        }
        let dims = self.dims(&low, &high)?;
        let is_fixed = |dim: &usize| !dims.contains(dim);
        if let Some(dim) = (0..first.len())
            .filter(is_fixed)
            .find(|&dim| low[dim] != high[dim])
        {
            let differs = |(_, shape): &(usize, &[usize])| shape[dim] != first[dim];
            let found = all.enumerate().find(differs);
            let (position, shape) = found.unwrap_or((0, first));
            return Err(Mismatch::Size {
                position,
                dim,
                shape: shape.to_vec(),
                first: first.to_vec(),
            });
        }
        let (mut shape, mut kept) = (high.clone(), high);
        for (place, &dim) in dims.iter().enumerate() {
            let longest = shape[dim];
            (kept[dim], shape[dim]) =
                self.sizes.of(longest, place).map_err(|(option, limit)| {
                    let (position, shape) = all
                        .clone()
                        .enumerate()
                        .find(|(_, shape)| shape[dim] > limit)
                        .unwrap_or((0, first));
                    Mismatch::TooLong {
                        position,
                        dim,
                        shape: shape.to_vec(),
                        option,
                        limit,
                    }
                })?;
        }
        let dims = if dims.is_empty() && self.dims.is_none() && !shape.is_empty() {
            Shape::from_slice(&[0])
        } else {
            dims
        };
        Ok(Layout { shape, kept, dims })
    }

    fn dims(&self, low: &[usize], high: &[usize]) -> Result<Shape, Mismatch> {
        let rank = high.len();
        let Some(dims) = &self.dims else {
            let mut varying: Shape = (0..rank).filter(|&dim| low[dim] != high[dim]).collect();
            if varying.is_empty() && (self.named && rank > 0 || rank == 1) {
                varying.push(0);
            }
            return Ok(varying);
        };
        let found = dims.iter().map(|&dim| {
            let counted = if dim < 0 {
                rank.checked_add_signed(dim)
            } else {
                Some(dim.unsigned_abs())
            };
            counted
                .filter(|&counted| counted < rank)
                .ok_or(Mismatch::Dim {
                    dim,
                    shape: high.to_vec(),
                })
        });
        found.collect()
    }
}

impl Sizes {
    /// Returns the size that is kept of the longest sample in the `place`-th padded dimension, and the padded
    /// size. The error is the option that it exceeds, and its limit.
    fn of(&self, longest: usize, place: usize) -> Result<(usize, usize), (&'static str, usize)> {
        let to = self.to.get(place).or(self.to.first()).copied();
        let limits = [("max_length", self.max_length), ("to", to)];
        let mut kept = longest;
        for (option, limit) in limits {
            if let Some(limit) = limit.filter(|&limit| kept > limit) {
                if !self.truncate {
                    return Err((option, limit));
                }
                kept = limit;
            }
        }
        if let Some(to) = to {
            return Ok((kept, to));
        }
        let mut size = kept;
        if let Some(&last) = self.rungs.last() {
            let rung = self.rungs.iter().copied().find(|&rung| rung >= size);
            size = rung.unwrap_or_else(|| up(size, last));
        }
        Ok((kept, up(size, self.multiple_of)))
    }
}

/// Rounds up to a multiple; on overflow returns `size`.
fn up(size: usize, multiple_of: usize) -> usize {
    if multiple_of == 0 {
        return size;
    }
    size.checked_next_multiple_of(multiple_of).unwrap_or(size)
}

impl Layout {
    /// Returns the shape of the lengths of all samples: `(samples,)`, or `(samples, k)` with k padded dimensions.
    pub fn lengths_shape(&self, samples: usize) -> Shape {
        match self.dims.len() {
            1 => sizes(samples, &[]),
            dims => sizes(samples, &[dims]),
        }
    }

    /// Returns the lengths of a sample of `shape` in the field, one for each padded dimension.
    pub fn lengths<'a>(&'a self, shape: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
        let dims = self.dims.iter();
        dims.map(|&dim| shape[dim].min(self.kept[dim]))
    }

    /// Writes samples, one row after the other, to `out`, which must have room for exactly those.
    pub fn write<'a>(
        &self,
        samples: impl Iterator<Item = Array<'a>>,
        side: Side,
        fill: &[u8],
        out: &mut [u8],
    ) {
        let bytes = self.shape.iter().product::<usize>() * fill.len();
        if bytes == 0 {
            return;
        }
        let row = PaddedRow {
            shape: &self.shape,
            side,
            fill,
        };
        let mut shape = Vec::with_capacity(self.shape.len());
        for (sample, place) in samples.zip(out.chunks_exact_mut(bytes)) {
            shape.clear();
            let sizes = sample.shape.iter().zip(&self.kept);
            shape.extend(sizes.map(|(&size, &kept)| size.min(kept)));
            let sample = Array {
                shape: &shape,
                ..sample
            };
            row.write(sample, place);
        }
    }
}

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
