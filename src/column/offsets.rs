//! Integers of one array: indices, and the offsets between samples in the entries that they consist of.

use std::ops::Range;

use super::{Column, Rows};
use crate::error::{Error, Result};
use crate::memory::{Dtype, prefetch};

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

/// Number of samples to prefetch ahead.
const AHEAD: usize = 16;

/// One number more than there are samples: sample i is `offsets[i]..offsets[i + 1]`.
#[derive(Clone, Debug)]
pub struct Offsets {
    numbers: Numbers,
    /// Entries of the longest sample when the offsets were taken.
    longest: usize,
}

impl Offsets {
    /// Takes the offsets of samples that consist of `entries` entries in total.
    ///
    /// # Errors
    ///
    /// [`Error::Offsets`]: there is no offset, or a sample exceeds the entries.
    pub fn new(numbers: Numbers, entries: usize) -> Result<Offsets> {
        let mut offsets = Offsets {
            numbers,
            longest: 0,
        };
        if offsets.numbers.is_empty() {
            let (index, start, end, len) = (0, 0, 0, entries);
            return Err(Error::Offsets {
                index,
                start,
                end,
                len,
            });
        }
        for index in 0..offsets.len() {
            let range = offsets.range(index, entries)?;
            offsets.longest = offsets.longest.max(range.len());
        }
        Ok(offsets)
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.numbers.len() - 1
    }

    /// Returns the entries of the longest sample when the offsets were taken.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Prefetches the offsets of the sample at `index`, which must be below [`Offsets::len`].
    pub fn prefetch(&self, index: usize) {
        self.numbers.prefetch(index);
    }

    /// Returns the entries of the sample at `index`, which must be below [`Offsets::len`].
    ///
    /// # Errors
    ///
    /// [`Error::Offsets`]: the owner of the offsets has changed them since.
    #[inline]
    pub fn range(&self, index: usize, entries: usize) -> Result<Range<usize>> {
        let (start, end) = (self.numbers.get(index), self.numbers.get(index + 1));
        between(index, start, end, entries)
    }

    /// Returns the entries of the samples at `indices`, as [`Offsets::range`] does.
    ///
    /// # Errors
    ///
    /// As [`Offsets::range`].
    pub fn ranges(&self, indices: &[usize], entries: usize) -> Result<Vec<Range<usize>>> {
        let Some(int64s) = self.numbers.int64s() else {
            let ranges = indices.iter().map(|&index| self.range(index, entries));
            return ranges.collect();
        };
        let ask = |at: usize| {
            if let Some(&index) = indices.get(at) {
                prefetch(&int64s[index]);
            }
        };
        (0..AHEAD).for_each(ask);
        let mut ranges = Vec::with_capacity(indices.len());
        for (at, &index) in indices.iter().enumerate() {
            ask(at + AHEAD);
            let [start, end] = [int64s[index], int64s[index + 1]].map(i64::from_ne_bytes);
            ranges.push(between(index, start, end, entries)?);
        }
        Ok(ranges)
    }

    /// Returns the error of a sample that changed after its memory in a batch was allocated.
    #[cold]
    pub fn changed(&self, index: usize, entries: usize) -> Error {
        Error::Offsets {
            index,
            start: self.numbers.get(index),
            end: self.numbers.get(index + 1),
            len: entries,
        }
    }
}

/// Returns the range between two offsets, which must lie within `len` entries.
///
/// The caller reads each offset once, because its owner may write to it at any time: the checked value is the
/// one used.
#[inline]
fn between(index: usize, start: i64, end: i64, len: usize) -> Result<Range<usize>> {
    match (usize::try_from(start), usize::try_from(end)) {
        (Ok(first), Ok(last)) if first <= last && last <= len => Ok(first..last),
        _ => Err(Error::Offsets {
            index,
            start,
            end,
            len,
        }),
    }
}
