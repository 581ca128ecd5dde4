//! The memory for one sample: its bytes in C order, whatever the collation method.

use std::ops::{Deref, DerefMut, Range};

use super::packed::Packed;
use super::padded::Padded;
use super::{Loose, Slot};
use crate::memory::{Lease, RowsMut};

/// The bytes of one sample, to be written and then committed.
pub struct SampleMut<'a>(pub(super) Memory<'a>);

pub(super) enum Memory<'a> {
    /// Rows of the batch, or a range in them.
    Row(RowsMut<'a>, Range<usize>),
    /// Memory of its own, from which the sample is copied to its padded row.
    Staged(&'a Padded, usize, RowsMut<'a>, Lease),
    /// The memory of its pieces, and memory of its own, from which it is copied there; without the latter it
    /// is written to the first piece.
    Pieces(&'a Packed, usize, Vec<RowsMut<'a>>, Option<Lease>),
    /// Memory of its own, which the slot keeps.
    Loose(&'a Slot, usize, Loose),
}

impl SampleMut<'_> {
    /// Hands the sample over; all of its bytes must be written.
    pub fn commit(self) {
        match self.0 {
            Memory::Row(..) => {}
            Memory::Staged(padded, position, mut row, memory) => {
                padded.place(position, &memory, &mut row);
            }
            Memory::Pieces(packed, position, mut places, memory) => {
                packed.place(position, &mut places, memory.as_deref());
            }
            Memory::Loose(slot, position, loose) => slot.keep(position, loose),
        }
    }
}

impl Deref for SampleMut<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Memory::Row(row, body) => &row[body.clone()],
            Memory::Staged(_, _, _, memory) | Memory::Pieces(_, _, _, Some(memory)) => memory,
            Memory::Pieces(_, _, places, None) => places.first().map_or(&[], |place| place),
            Memory::Loose(_, _, loose) => &loose.memory,
        }
    }
}

impl DerefMut for SampleMut<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Memory::Row(row, body) => &mut row[body.clone()],
            Memory::Staged(_, _, _, memory) | Memory::Pieces(_, _, _, Some(memory)) => memory,
            Memory::Pieces(_, _, places, None) => places.first_mut().map_or(&mut [], |place| place),
            Memory::Loose(_, _, loose) => &mut loose.memory,
        }
    }
}
