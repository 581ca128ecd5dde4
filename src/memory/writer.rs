//! Lets many threads fill one destination, each its own rows.
//!
//! Owns the claims: every row can be claimed once, ever, so that no two threads hold the same byte and
//! callers need no `unsafe`. Refuses to check that all rows were written: the bytes of unclaimed rows keep
//! their arbitrary values.
#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut, Range};
use std::slice;

use super::destination::Destination;
use crate::error::{Error, Result};
use crate::sync::atomic::{AtomicU64, Ordering};

/// A destination divided into rows of equal size.
#[derive(Debug)]
pub struct Writer {
    destination: Destination,
    start: *mut u8,
    rows: usize,
    row_bytes: usize,
    /// One bit per row, set when it is claimed.
    claimed: Box<[AtomicU64]>,
}

// SAFETY: `start` points into the destination, which is Send; it is written only through `RowsMut`, and those
// never overlap.
unsafe impl Send for Writer {}
// SAFETY: as above.
unsafe impl Sync for Writer {}

/// The exclusive use of some neighbouring rows.
#[derive(Debug)]
pub struct RowsMut<'a>(&'a mut [u8]);

impl Writer {
    /// Divides `destination` into `rows` rows of `row_bytes` bytes.
    ///
    /// # Panics
    ///
    /// If the destination is smaller than that.
    pub fn new(mut destination: Destination, rows: usize, row_bytes: usize) -> Self {
        let needed = rows.checked_mul(row_bytes);
        assert!(
            needed.is_some_and(|bytes| bytes <= destination.len()),
            "{rows} rows of {row_bytes} bytes in a destination of {} bytes",
            destination.len()
        );
        let claimed = (0..rows.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let start = destination.as_mut_ptr();
        Self {
            destination,
            start,
            rows,
            row_bytes,
            claimed,
        }
    }

    /// Claims the rows of `range` for the caller.
    ///
    /// Returns [`Error::WrittenTwice`] if the range exceeds the rows, or if one of its rows was claimed before. A
    /// refused claim leaves other rows of its range claimed.
    pub fn rows(&self, range: Range<usize>) -> Result<RowsMut<'_>> {
        if range.start > range.end || range.end > self.rows || !self.claim(&range) {
            let position = range.start;
            return Err(Error::WrittenTwice { position });
        }
        let len = range.len() * self.row_bytes;
        if len == 0 {
            return Ok(RowsMut(&mut []));
        }
        // SAFETY: range.start < self.rows, so the result lies within the destination.
        let start = unsafe { self.start.add(range.start * self.row_bytes) };
        // SAFETY: the range lies within the destination, whose bytes are initialised; only this call claimed
        // its rows, and `finish` consumes self, so every borrow is over by then.
        Ok(RowsMut(unsafe { slice::from_raw_parts_mut(start, len) }))
    }

    /// Returns the destination. Taking `self` proves that no rows are borrowed any more.
    pub fn finish(self) -> Destination {
        self.destination
    }

    /// Sets the bits of `range`; returns false if one was set.
    fn claim(&self, range: &Range<usize>) -> bool {
        let mut row = range.start;
        while row < range.end {
            let end = range.end.min((row / 64 + 1) * 64);
            let mask = (u64::MAX >> (64 - (end - row))) << (row % 64);
            // Relaxed: a bit is won by one call, and rows of different bits share no bytes.
            if self.claimed[row / 64].fetch_or(mask, Ordering::Relaxed) & mask != 0 {
                return false;
            }
            row = end;
        }
        true
    }
}

impl Deref for RowsMut<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0
    }
}

impl DerefMut for RowsMut<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::lease;

    #[allow(clippy::unwrap_used)]
    fn writer(rows: usize, row_bytes: usize) -> Writer {
        Writer::new(lease(rows * row_bytes).unwrap().into(), rows, row_bytes)
    }

    #[test]
    fn a_row_is_claimed_once() {
        let writer = writer(100, 3);
        assert_eq!(writer.rows(0..63).unwrap().len(), 189);
        assert!(writer.rows(62..65).is_err());
        assert!(writer.rows(63..64).is_err());
        assert!(writer.rows(64..100).is_ok());
        assert!(writer.rows(100..100).unwrap().is_empty());
    }

    #[test]
    #[allow(clippy::reversed_empty_ranges)]
    fn rows_beyond_the_end_are_none() {
        let writer = writer(100, 3);
        for range in [99..101, 101..101, 5..4, 0..usize::MAX] {
            assert!(writer.rows(range.clone()).is_err(), "{range:?}");
        }
        assert!(writer.rows(99..100).is_ok());
    }

    #[test]
    fn empty_rows_are_claimed_too() {
        let writer = writer(10, 0);
        assert!(writer.rows(0..10).unwrap().is_empty());
        assert!(writer.rows(3..4).is_err());
        assert!(writer.finish().is_empty());
    }

    #[test]
    #[should_panic(expected = "4 rows of 3 bytes in a destination of 11 bytes")]
    fn a_destination_has_room_for_all_rows() {
        Writer::new(lease(11).unwrap().into(), 4, 3);
    }

    #[test]
    fn threads_write_neighbouring_rows() {
        let writer = writer(200, 5);
        std::thread::scope(|scope| {
            for first in (0..200_u8).step_by(10) {
                let writer = &writer;
                scope.spawn(move || {
                    let start = usize::from(first);
                    writer.rows(start..start + 10).unwrap().fill(first);
                });
            }
        });
        let destination = writer.finish();
        let expected = (0..1000_usize).map(|at| (at / 50 * 10) as u8);
        assert!(destination.bytes().iter().copied().eq(expected));
    }
}

#[cfg(all(test, not(loom), not(miri)))]
mod property_tests {
    use super::*;
    use crate::memory::lease;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn claims_are_disjoint_and_in_place(
            rows in 1..200_usize,
            row_bytes in 0..9_usize,
            claims in prop::collection::vec((0..200_usize, 0..90_usize), 1..40),
        ) {
            let mut destination = Destination::from(lease(rows * row_bytes).unwrap());
            destination.bytes_mut().fill(0);
            let writer = Writer::new(destination, rows, row_bytes);
            let mut free = vec![true; rows];
            let mut expected = vec![0; rows * row_bytes];
            let mut granted = Vec::new();
            for (number, (start, len)) in claims.into_iter().enumerate() {
                let range = start..start + len;
                let wanted = range.end <= rows && free[range.clone()].iter().all(|&free| free);
                let claimed = writer.rows(range.clone());
                prop_assert_eq!(claimed.is_ok(), wanted);
                if let Ok(claimed) = claimed {
                    free[range.clone()].fill(false);
                    let bytes = range.start * row_bytes..range.end * row_bytes;
                    prop_assert_eq!(claimed.len(), bytes.len());
                    expected[bytes].fill(number as u8 + 1);
                    granted.push((claimed, number as u8 + 1));
                } else if range.end <= rows {
                    // a refused claim keeps the rows that it took: it stops at the first word with a row of
                    // another claim, that word included
                    let mut row = range.start;
                    while row < range.end {
                        let end = range.end.min((row / 64 + 1) * 64);
                        let was_free = free[row..end].iter().all(|&free| free);
                        free[row..end].fill(false);
                        if !was_free {
                            break;
                        }
                        row = end;
                    }
                }
            }
            for (rows, value) in &mut granted {
                rows.fill(*value);
            }
            drop(granted);
            let destination = writer.finish();
            prop_assert_eq!(destination.bytes(), expected);
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use crate::memory::External;
    use crate::sync::{explore, thread};
    use loom::sync::Arc;

    #[test]
    fn loom_overlapping_claims_have_one_winner() {
        explore(None, || {
            let mut bytes = Box::new([0_u8; 130]);
            // SAFETY: the array outlives the writer, and nothing else uses it meanwhile.
            let external = unsafe { External::new(bytes.as_mut_ptr(), 130, Box::new(())) };
            let writer = Arc::new(Writer::new(Destination::External(external), 130, 1));
            let threads = [0..70, 60..130].map(|range| {
                let writer = Arc::clone(&writer);
                thread::spawn(move || writer.rows(range).is_ok())
            });
            let won = threads.map(|thread| thread.join().unwrap());
            assert!(!(won[0] && won[1]));
            assert!(writer.rows(69..70).is_err());
        });
    }
}
