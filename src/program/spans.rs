//! Where the samples of a batch lie in one array: looked up once, when the batch is begun.

use std::ops::Range;

use super::leaf::Leaf;
use crate::collate::Slot;
use crate::column::Ragged;
use crate::error::Result;

/// The row range of each sample in one array, in batch order.
pub(super) type Spans = Vec<Range<usize>>;

/// One field of a batch while it is being made.
#[derive(Debug)]
pub(super) struct FieldSlot {
    /// The memory of its samples.
    pub(super) slot: Slot,
    /// Where the samples lie in the source array; empty if they are not in one, or it is not needed.
    pub(super) spans: Spans,
}

impl From<Slot> for FieldSlot {
    fn from(slot: Slot) -> FieldSlot {
        let spans = Spans::new();
        FieldSlot { slot, spans }
    }
}

impl Leaf {
    /// Returns the ragged array that this leaf's samples are taken from, if there is one.
    pub(super) fn ragged(&self) -> Option<&Ragged> {
        match self {
            Leaf::Ragged(ragged) => Some(ragged),
            Leaf::Select(select) => select.from().ragged(),
            _ => None,
        }
    }

    /// Returns the spans of the samples at `indices`, each below [`Leaf::len`], in the values of
    /// [`Leaf::ragged`]; None if there is no such array.
    ///
    /// # Errors
    ///
    /// [`Error::Offsets`](crate::Error::Offsets), [`Error::Index`](crate::Error::Index): the owner of the
    /// offsets, or of a selection, changed them.
    pub(super) fn spans(&self, indices: &[usize]) -> Result<Option<Spans>> {
        match self {
            Leaf::Ragged(ragged) => ragged.ranges(indices).map(Some),
            Leaf::Select(select) if self.ragged().is_some() => {
                select.from().spans(&select.indices(indices)?)
            }
            _ => Ok(None),
        }
    }
}
