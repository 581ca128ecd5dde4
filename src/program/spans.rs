//! Where the samples of a batch lie that are parts of one array: looked up once, when the batch is begun.

use std::ops::Range;

use super::leaf::Leaf;
use crate::collate::Slot;
use crate::column::Ragged;
use crate::error::Result;

/// The rows of one array that samples are, in the order of their batch.
pub(super) type Spans = Vec<Range<usize>>;

/// One field of a batch in the making.
#[derive(Debug)]
pub(super) struct Part {
    /// Where its samples meet.
    pub(super) slot: Slot,
    /// Where they lie; empty where they are not parts of one array, or nobody needed to know.
    pub(super) spans: Spans,
}

impl From<Slot> for Part {
    fn from(slot: Slot) -> Part {
        let spans = Spans::new();
        Part { slot, spans }
    }
}

impl Leaf {
    /// The samples that this leaf's are, or are some of, if those are parts of one array.
    pub(super) fn ragged(&self) -> Option<&Ragged> {
        match self {
            Leaf::Ragged(ragged) => Some(ragged),
            Leaf::Select(select) => select.from().ragged(),
            _ => None,
        }
    }

    /// Where the samples at `indices`, each below [`Leaf::len`], lie in the values of [`Leaf::ragged`]; None
    /// where there is no such array.
    ///
    /// # Errors
    ///
    /// [`Error::Offsets`](crate::Error::Offsets), [`Error::Index`](crate::Error::Index): the owner of the
    /// offsets, or of a selection, has changed them.
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
