//! How samples become one field of a batch.
//!
//! Owns the place where a field is put together. Samples whose shape is known before they are made
//! are written straight into the batch's memory; others are kept apart until all of them are there,
//! then copied once. Stacks as torch's `default_collate` does, where unequal shapes are an error; or
//! pads, joins, packs or keeps samples by a [`Rule`].

mod array;
mod fill;
mod joined;
mod labels;
mod list;
mod mask;
mod mismatch;
mod pack;
mod packed;
mod packing;
mod pad;
mod padded;
mod ragged;
mod retype;
mod rule;
mod seat;
mod shape;
mod slot;
mod split;

use crate::error::Result;
use crate::memory::{Destination, Dtype, Lease, lease};

pub use array::{Array, Side, copy};
pub use fill::{Element, Fill};
pub use joined::JoinedField;
pub use labels::Labels;
pub use mismatch::Mismatch;
pub use pack::Bins;
pub use packed::{PackedColumn, PackedField, Packs, Rows};
pub use packing::{Overlong, Packing};
pub use pad::{Layout, Pad, Sizes};
pub use padded::PaddedField;
pub use ragged::Flat;
pub use rule::{How, Mask, Padding, Rule};
pub use seat::Seat;
pub use shape::{Shape, sizes};
pub use slot::Slot;

use list::by_place;

/// One field of a finished batch.
#[derive(Debug)]
pub enum Field {
    /// Numbers.
    Dense(Dense),
    /// A text for each sample.
    Texts(Vec<Box<str>>),
    /// Bytes for each sample.
    Bytes(Vec<Box<[u8]>>),
    /// Samples that are lists: a field for each place in them.
    Lists(Vec<Field>),
    /// Samples that were padded.
    Padded(PaddedField),
    /// Samples one after the other.
    Joined(JoinedField),
    /// Samples that were packed.
    Packed(PackedField),
    /// A field for each sample.
    Apart(Vec<Field>),
}

impl Field {
    /// Bytes of its values.
    pub fn bytes(&self) -> usize {
        match self {
            Field::Dense(dense) => dense.memory.len(),
            Field::Texts(texts) => texts.iter().map(|text| text.len()).sum(),
            Field::Bytes(all) => all.iter().map(|bytes| bytes.len()).sum(),
            Field::Lists(parts) | Field::Apart(parts) => parts.iter().map(Field::bytes).sum(),
            Field::Padded(padded) => {
                let mask = padded.mask.as_ref().map_or(0, |mask| mask.memory.len());
                padded.values.memory.len() + mask
            }
            Field::Joined(joined) => joined.values.memory.len(),
            Field::Packed(packed) => {
                let told = packed.positions.iter().chain(&packed.segments);
                let all = packed.columns.iter().chain(told);
                all.map(|dense| dense.memory.len()).sum()
            }
        }
    }

    /// Returns the numbers, if it is nothing else.
    pub fn dense(self) -> Option<Dense> {
        match self {
            Field::Dense(dense) => Some(dense),
            _ => None,
        }
    }

    /// Turns a batch of lists of numbers into the numbers of each place, also in lists of lists.
    pub fn by_place(self) -> Result<Field> {
        match self {
            Field::Dense(dense) => by_place(dense).map(Field::Dense),
            Field::Texts(_)
            | Field::Bytes(_)
            | Field::Padded(_)
            | Field::Joined(_)
            | Field::Packed(_)
            | Field::Apart(_) => Ok(self),
            Field::Lists(places) => {
                let places = places.into_iter().map(Field::by_place);
                places.collect::<Result<_>>().map(Field::Lists)
            }
        }
    }
}

/// Numbers in C order.
#[derive(Debug)]
pub struct Dense {
    /// Their memory.
    pub memory: Destination,
    /// Their shape; `(B, ...)` for a batch.
    pub shape: Shape,
    /// Their type.
    pub dtype: Dtype,
}

impl Dense {
    /// Reads int64 numbers that are no less than 0.
    fn longs(&self) -> Vec<usize> {
        let (numbers, _) = self.memory.bytes().as_chunks::<8>();
        let numbers = numbers.iter().map(|&bytes| i64::from_ne_bytes(bytes));
        numbers
            .map(|number| usize::try_from(number).unwrap_or(0))
            .collect()
    }
}

/// A sample that is kept apart.
#[derive(Debug)]
pub struct Loose {
    /// Its bytes, in C order.
    pub memory: Lease,
    /// Its shape.
    pub shape: Shape,
}

/// Bytes of an array; of one that no memory can hold, more than there is.
fn bytes_of(shape: &[usize], itemsize: usize) -> usize {
    if shape.contains(&0) {
        return 0;
    }
    let sizes = shape.iter();
    sizes.fold(itemsize, |bytes, &size| bytes.saturating_mul(size))
}

/// Makes an int64 field.
fn longs(shape: Shape, numbers: impl Iterator<Item = usize>) -> Result<Dense> {
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
