//! Where one sample is written: its bytes in C order, whatever becomes of them in the batch.

use std::ops::{Deref, DerefMut, Range};

use super::packed::Packed;
use super::padded::Padded;
use super::{Loose, Slot};
use crate::memory::{Lease, RowsMut};

/// The bytes of one sample, to be written and then left.
pub struct Seat<'a>(Place<'a>);

enum Place<'a> {
    /// Rows of the batch, or a part of them.
    Within(RowsMut<'a>, Range<usize>),
    /// Memory of its own, from which it is copied to its row.
    Around(&'a Padded, usize, RowsMut<'a>, Lease),
    /// The places of its pieces, and memory of its own, from which it is copied there; without that it
    /// is written to the first of them.
    Pieces(&'a Packed, usize, Vec<RowsMut<'a>>, Option<Lease>),
    /// Memory of its own, which the slot keeps.
    Loose(&'a Slot, usize, Loose),
}

impl<'a> Seat<'a> {
    pub(super) fn row(row: RowsMut<'a>) -> Seat<'a> {
        let all = 0..row.len();
        Seat::within(row, all)
    }

    pub(super) fn within(row: RowsMut<'a>, body: Range<usize>) -> Seat<'a> {
        Seat(Place::Within(row, body))
    }

    pub(super) fn around(
        padded: &'a Padded,
        position: usize,
        row: RowsMut<'a>,
        memory: Lease,
    ) -> Seat<'a> {
        Seat(Place::Around(padded, position, row, memory))
    }

    pub(super) fn packed(
        packed: &'a Packed,
        position: usize,
        places: Vec<RowsMut<'a>>,
        memory: Option<Lease>,
    ) -> Seat<'a> {
        Seat(Place::Pieces(packed, position, places, memory))
    }

    pub(super) fn loose(slot: &'a Slot, position: usize, loose: Loose) -> Seat<'a> {
        Seat(Place::Loose(slot, position, loose))
    }

    /// Hands the sample over, all of whose bytes are written.
    pub fn leave(self) {
        match self.0 {
            Place::Within(..) => {}
            Place::Around(padded, position, mut row, memory) => {
                padded.place(position, &memory, &mut row);
            }
            Place::Pieces(packed, position, mut places, memory) => {
                packed.place(position, &mut places, memory.as_deref());
            }
            Place::Loose(slot, position, loose) => slot.keep(position, loose),
        }
    }
}

impl Deref for Seat<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Place::Within(row, body) => &row[body.clone()],
            Place::Around(_, _, _, memory) | Place::Pieces(_, _, _, Some(memory)) => memory,
            Place::Pieces(_, _, places, None) => places.first().map_or(&[], |place| place),
            Place::Loose(_, _, loose) => &loose.memory,
        }
    }
}

impl DerefMut for Seat<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Place::Within(row, body) => &mut row[body.clone()],
            Place::Around(_, _, _, memory) | Place::Pieces(_, _, _, Some(memory)) => memory,
            Place::Pieces(_, _, places, None) => places.first_mut().map_or(&mut [], |place| place),
            Place::Loose(_, _, loose) => &mut loose.memory,
        }
    }
}
