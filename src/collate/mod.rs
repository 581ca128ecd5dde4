//! Makes one field of a batch out of samples.
//!
//! Owns the memory of a field while it is being made. Samples whose shape is known beforehand are written
//! straight to the batch's memory; others are kept until all are there, then copied once. Stacks as torch's
//! `default_collate` does, where unequal shapes are an error; or pads, joins, packs or separates samples by a
//! [`Rule`].

mod array;
mod dense;
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

use crate::error::{Mismatch, Result};
use crate::memory::{Dtype, Lease};

pub use array::{Array, Side, copy, packed_strides};
pub use dense::{Dense, Shape, bytes_of, int64s, sizes};
pub use fill::{Element, Fill};
pub use pack::{Bins, Overlong, Packing, check_aligned, lengths};
pub use packed::{PackedColumn, PackedField, Packs, Rows};
pub use pad::{Layout, Pad, Sizes};
pub use padded::{Labels, PaddedField};
pub use ragged::{JoinedField, RaggedLayout};
pub use rule::{Mask, Method, Padding, Rule};
pub use sample_mut::SampleMut;
pub use slot::Slot;

use dense::transpose_lists;

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
    pub(super) fn cast(self, to: Dtype) -> Result<Field> {
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
