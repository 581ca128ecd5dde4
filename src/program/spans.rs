//! The row ranges of a batch's samples in one array: looked up once, when the batch is begun.

use std::ops::Range;

use crate::collate::Slot;

/// The row range of each sample in one array, in batch order.
pub(super) type Spans = Vec<Range<usize>>;

/// One field of a batch while it is being made.
#[derive(Debug)]
pub(super) struct FieldSlot {
    /// The memory of its samples.
    pub(super) slot: Slot,
    /// The ranges of the samples in the source array; empty if they are not in one, or it is not needed.
    pub(super) spans: Spans,
}

impl From<Slot> for FieldSlot {
    fn from(slot: Slot) -> FieldSlot {
        let spans = Spans::new();
        FieldSlot { slot, spans }
    }
}
