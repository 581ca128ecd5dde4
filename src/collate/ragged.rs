//! Samples of different lengths, one after the other in one array, and the offsets between them.

use super::array::{Array, copy};
use super::{Mismatch, Shape};

/// The shape of the values of one batch, and where each sample begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flat {
    /// `(sum of lengths, ...)`.
    pub shape: Shape,
    /// One more than there are samples; the first is 0.
    pub offsets: Vec<usize>,
}

impl Flat {
    /// Finds them for samples of these shapes, which differ in the first dimension alone.
    pub fn of<'a>(shapes: impl Iterator<Item = &'a [usize]>) -> Result<Flat, Mismatch> {
        let mut first: Option<&[usize]> = None;
        let mut offsets = vec![0];
        let mut end = 0_usize;
        for (position, shape) in shapes.enumerate() {
            let first = *first.get_or_insert(shape);
            if shape.len() != first.len() {
                return Err(Mismatch::Rank {
                    position,
                    shape: shape.to_vec(),
                    first: first.to_vec(),
                });
            }
            let Some(&len) = shape.first() else {
                return Err(Mismatch::Dim {
                    dim: 0,
                    shape: Vec::new(),
                });
            };
            if let Some(dim) = (1..shape.len()).find(|&dim| shape[dim] != first[dim]) {
                return Err(Mismatch::Size {
                    position,
                    dim,
                    shape: shape.to_vec(),
                    first: first.to_vec(),
                });
            }
            end = end.saturating_add(len); // no memory has so many, which the lease finds
            offsets.push(end);
        }
        let inner = first.unwrap_or_default().iter().skip(1).copied();
        let shape = std::iter::once(end).chain(inner).collect();
        Ok(Flat { shape, offsets })
    }

    /// Returns the shortest and the longest length; zeros without samples.
    pub fn extremes(&self) -> (usize, usize) {
        let lengths = self.offsets.windows(2).map(|pair| pair[1] - pair[0]);
        let least = lengths.clone().min().unwrap_or(0);
        (least, lengths.max().unwrap_or(0))
    }

    /// Writes the values of the samples.
    pub fn write<'a>(
        &self,
        samples: impl Iterator<Item = Array<'a>>,
        itemsize: usize,
        mut out: &mut [u8],
    ) {
        for sample in samples {
            let bytes = sample.shape.iter().product::<usize>() * itemsize;
            let (place, rest) = std::mem::take(&mut out).split_at_mut(bytes);
            copy(sample, itemsize, place);
            out = rest;
        }
    }
}
