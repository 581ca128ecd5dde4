//! Integers of one array: indices, and offsets.

use super::{Column, Rows};
use crate::memory::Dtype;

/// The numbers of a one-dimensional array, shared with its owner.
///
/// The owner may change them at any time, so every use of a number checks it again.
#[derive(Clone, Debug)]
pub struct Numbers(Rows);

impl Numbers {
    /// Takes an array; None unless its rows are single int32 or int64 numbers.
    pub fn new(rows: Rows) -> Option<Numbers> {
        let whole = matches!(rows.dtype(), Dtype::Int32 | Dtype::Int64) && !rows.is_cast();
        (whole && rows.row_shape().is_empty()).then_some(Numbers(rows))
    }

    /// Returns the length.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all of them if they are contiguous int64: faster for reading many.
    pub fn int64s(&self) -> Option<&[[u8; 8]]> {
        self.0.elements()
    }

    /// Prefetches the number at `place`, which is read soon.
    pub fn prefetch(&self, place: usize) {
        self.0.prefetch(place);
    }

    /// Returns the number at `place`, which must be below [`Numbers::len`].
    #[inline]
    pub fn get(&self, place: usize) -> i64 {
        let bytes = self.0.row(place);
        match (bytes.first_chunk(), bytes.first_chunk()) {
            (Some(long), _) => i64::from_ne_bytes(*long),
            (None, Some(short)) => i64::from(i32::from_ne_bytes(*short)),
            (None, None) => unreachable!("a number has 4 or 8 bytes, by `new`"),
        }
    }
}
