//! Makes one field of a batch out of samples.
//!
//! Owns the fields of a finished batch and their conversions, and the memory of a field while it is being made.
//! Samples whose shape is known beforehand are written straight to the batch's memory; others are kept until all are
//! there, then copied once. Stacks as torch's `default_collate` does, where unequal shapes are an error; or pads,
//! joins, packs or separates samples by a [`Rule`].

mod array;
mod fill;
mod pack;
mod packed;
mod pad;
mod padded;
mod ragged;
mod rule;
mod sample_mut;
mod slot;
mod split;

use smallvec::SmallVec;

use crate::error::{Mismatch, Result};
use crate::memory::{Cast, Destination, Dtype, Lease, lease};

pub use array::{Array, Side, copy, packed_strides};
pub use fill::{Element, Fill};
pub use pack::{Bins, Overlong, Packing, check_aligned, lengths};
pub use packed::{PackedColumn, PackedField, Packs, Rows};
pub use pad::{Layout, Pad, Sizes};
pub use padded::{Labels, PaddedField};
pub use ragged::{JoinedField, RaggedLayout};
pub use rule::{Mask, Method, Padding, Rule};
pub use sample_mut::SampleMut;
pub use slot::Slot;

/// Side of the square of elements that is transposed at once, so that both sides stay in the cache.
const BLOCK: usize = 32;

/// Sizes of the dimensions of a sample.
pub type Shape = SmallVec<[usize; 4]>;

/// Returns `(rows, *row_shape)`.
#[inline]
pub fn sizes(rows: usize, row_shape: &[usize]) -> Shape {
    let mut shape = Shape::from_buf_and_len([rows, 0, 0, 0], 1);
    if !row_shape.is_empty() {
        shape.extend_from_slice(row_shape);
    }
    shape
}

/// One field of a finished batch.
#[derive(Debug)]
pub enum Field {
    /// Numbers.
    Dense(Dense),
    /// One text for each sample.
    Texts(Vec<Box<str>>),
    /// The bytes of each sample.
    Bytes(Vec<Box<[u8]>>),
    /// Samples that are lists: one field for each position in the list.
    Lists(Vec<Field>),
    /// Samples that were padded.
    Padded(PaddedField),
    /// Samples that were joined along the first dimension.
    Joined(JoinedField),
    /// Samples that were packed.
    Packed(PackedField),
    /// One field for each sample.
    Separate(Vec<Field>),
}

impl Field {
    /// Returns the bytes of its values.
    pub fn bytes(&self) -> usize {
        match self {
            Field::Dense(dense) => dense.memory.len(),
            Field::Texts(texts) => texts.iter().map(|text| text.len()).sum(),
            Field::Bytes(all) => all.iter().map(|bytes| bytes.len()).sum(),
            Field::Lists(parts) | Field::Separate(parts) => parts.iter().map(Field::bytes).sum(),
            Field::Padded(padded) => {
                let mask = padded.mask.as_ref().map_or(0, |mask| mask.memory.len());
                padded.values.memory.len() + mask
            }
            Field::Joined(joined) => joined.values.memory.len(),
            Field::Packed(packed) => {
                let extras = packed.positions.iter().chain(&packed.segments);
                let all = packed.columns.iter().chain(extras);
                all.map(|dense| dense.memory.len()).sum()
            }
        }
    }

    /// Returns the numbers; None for any other field.
    pub fn dense(self) -> Option<Dense> {
        match self {
            Field::Dense(dense) => Some(dense),
            _ => None,
        }
    }

    /// Converts stacked or padded numbers to `to`; returns any other field unchanged.
    fn cast(self, to: Dtype) -> Result<Field> {
        match self {
            Field::Dense(dense) => dense.cast(to).map(Field::Dense),
            Field::Padded(mut padded) => {
                padded.values = padded.values.cast(to)?;
                Ok(Field::Padded(padded))
            }
            other => Ok(other),
        }
    }

    /// Transposes a batch of lists of numbers to one row for each list position, also in nested lists.
    pub fn transpose_lists(self) -> Result<Field> {
        match self {
            Field::Dense(dense) => transpose_lists(dense).map(Field::Dense),
            Field::Lists(places) => {
                let places = places.into_iter().map(Field::transpose_lists);
                places.collect::<Result<_>>().map(Field::Lists)
            }
            other => Ok(other),
        }
    }
}

/// A sample in memory of its own.
#[derive(Debug)]
pub struct Loose {
    /// Its bytes, in C order.
    pub memory: Lease,
    /// Its shape.
    pub shape: Shape,
}

/// An array in C order.
#[derive(Debug)]
pub struct Dense {
    /// Its memory.
    pub memory: Destination,
    /// Its shape; `(B, ...)` for a batch.
    pub shape: Shape,
    /// Its element type.
    pub dtype: Dtype,
}

impl Dense {
    /// Returns the values of an int64 array; negative ones as 0.
    fn int64s(&self) -> Vec<usize> {
        let (numbers, _) = self.memory.bytes().as_chunks::<8>();
        let numbers = numbers.iter().map(|&bytes| i64::from_ne_bytes(bytes));
        numbers
            .map(|number| usize::try_from(number).unwrap_or(0))
            .collect()
    }

    /// Converts the elements to `to`.
    fn cast(self, to: Dtype) -> Result<Dense> {
        let Some(cast) = Cast::new(self.dtype, to) else {
            return Ok(self);
        };
        let source = self.memory.bytes();
        let mut memory = lease(source.len() / self.dtype.itemsize() * to.itemsize())?;
        cast.run(source, &mut memory);
        Ok(Dense {
            memory: memory.into(),
            shape: self.shape,
            dtype: to,
        })
    }
}

/// Returns the bytes of an array; saturates.
pub fn bytes_of(shape: &[usize], itemsize: usize) -> usize {
    let sizes = shape.iter();
    sizes.fold(itemsize, |bytes, &size| bytes.saturating_mul(size))
}

/// Makes an int64 array.
pub fn int64s(shape: Shape, numbers: impl Iterator<Item = usize>) -> Result<Dense> {
    let mut memory = lease(bytes_of(&shape, 8))?;
    for (place, number) in memory.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
        *place = (number.cast_signed() as i64).to_ne_bytes();
    }
    Ok(Dense {
        memory: memory.into(),
        shape,
        dtype: Dtype::Int64,
    })
}

/// Transposes `(B, ...)` to `(..., B)`, so that the values of each list position are contiguous.
fn transpose_lists(field: Dense) -> Result<Dense> {
    let mut shape = field.shape;
    let samples = shape.remove(0);
    let places = shape.iter().product();
    shape.push(samples);
    let source = field.memory.bytes();
    let mut memory = lease(source.len())?;
    match field.dtype.itemsize() {
        1 => turn::<1>(source, samples, places, &mut memory),
        2 => turn::<2>(source, samples, places, &mut memory),
        4 => turn::<4>(source, samples, places, &mut memory),
        8 => turn::<8>(source, samples, places, &mut memory),
        _ => turn::<16>(source, samples, places, &mut memory),
    }
    Ok(Dense {
        memory: Destination::Lease(memory),
        shape,
        dtype: field.dtype,
    })
}

fn turn<const N: usize>(source: &[u8], rows: usize, columns: usize, out: &mut [u8]) {
    let (source, _) = source.as_chunks::<N>();
    let (out, _) = out.as_chunks_mut::<N>();
    for top in (0..rows).step_by(BLOCK) {
        for left in (0..columns).step_by(BLOCK) {
            for row in top..rows.min(top + BLOCK) {
                for column in left..columns.min(left + BLOCK) {
                    out[column * rows + row] = source[row * columns + column];
                }
            }
        }
    }
}
