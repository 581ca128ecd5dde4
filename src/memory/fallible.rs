//! Allocations whose size a file decides: they succeed or return an error. They never abort the process.
//!
//! `Vec::push`, `vec![]` and `collect` abort if the allocator fails. Anything that grows with the bytes of a
//! file grows through these functions instead. Before a library allocates for a file, [`expect_room`] checks
//! that it can. What fails is [`Error::Memory`], without a path.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed};
use std::collections::TryReserveError;

use crate::error::{Error, Result};

/// Smaller sizes are not checked beforehand: the check would cost more than it is worth.
const SMALL: usize = 1 << 20;

/// Reserves room for exactly `more` elements.
pub fn reserve<T>(values: &mut Vec<T>, more: usize) -> Result<()> {
    refused::<T>(values.len(), more, values.try_reserve_exact(more))
}

/// Reserves room for `more` elements, and for others that follow one by one.
pub fn reserve_growing<T>(values: &mut Vec<T>, more: usize) -> Result<()> {
    refused::<T>(values.len(), more, values.try_reserve(more))
}

/// Appends one element.
pub fn push<T>(values: &mut Vec<T>, value: T) -> Result<()> {
    if values.len() == values.capacity() {
        reserve_growing(values, 1)?;
    }
    values.push(value);
    Ok(())
}

/// Resizes `bytes`; new bytes are zero.
pub fn resize(bytes: &mut Vec<u8>, len: usize) -> Result<()> {
    reserve(bytes, len.saturating_sub(bytes.len()))?;
    bytes.resize(len, 0);
    Ok(())
}

/// Returns `len` zeros. Pages fresh from the system are not touched.
pub fn zeroed(len: usize) -> Result<Vec<u8>> {
    let layout = Layout::array::<u8>(len).map_err(|_| missing(len))?;
    if len == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the layout has a size above 0.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return Err(missing(len));
    }
    // SAFETY: allocated just now by the global allocator for `len` bytes of alignment 1, all of them zero.
    let zeros = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, len)) };
    Ok(zeros.into_vec())
}

/// Collects at most `most` values, or returns the first error of `values`.
pub fn collect<T>(most: usize, values: impl Iterator<Item = Result<T>>) -> Result<Vec<T>> {
    let mut all = Vec::new();
    reserve(&mut all, most)?;
    for value in values.take(most) {
        all.push(value?);
    }
    Ok(all)
}

/// Copies bytes to a box.
pub fn boxed(bytes: &[u8]) -> Result<Box<[u8]>> {
    let mut copy = Vec::new();
    reserve(&mut copy, bytes.len())?;
    copy.extend_from_slice(bytes);
    Ok(copy.into_boxed_slice())
}

/// Drops the spare capacity of `bytes`.
pub fn shrunk(bytes: Vec<u8>) -> Result<Box<[u8]>> {
    if bytes.len() < bytes.capacity() {
        return boxed(&bytes);
    }
    Ok(bytes.into_boxed_slice())
}

/// Checks that a library can allocate `bytes` bytes; without them it would abort.
pub fn expect_room(bytes: usize) -> Result<()> {
    if bytes < SMALL {
        return Ok(());
    }
    reserve(&mut Vec::<u8>::new(), bytes)
}

/// Returns the error of an allocation of `bytes` bytes that failed.
pub fn missing(bytes: usize) -> Error {
    Error::memory(bytes, std::io::ErrorKind::OutOfMemory.into())
}

fn refused<T>(
    len: usize,
    more: usize,
    reserved: std::result::Result<(), TryReserveError>,
) -> Result<()> {
    reserved.map_err(|_| missing(len.saturating_add(more).saturating_mul(size_of::<T>())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroed_memory_has_the_length_asked_for() {
        for len in [0, 1, 100_000] {
            let mut zeros = zeroed(len).unwrap();
            assert_eq!(zeros, vec![0; len]);
            zeros.push(1);
        }
    }

    #[cfg(not(miri))] // Miri's own memory would run out first
    #[test]
    fn a_failed_allocation_is_an_error_with_its_size() {
        for bytes in [usize::MAX, isize::MAX as usize, 1 << 60] {
            let errors = [
                zeroed(bytes).map(drop),
                resize(&mut Vec::new(), bytes),
                reserve(&mut Vec::<u8>::new(), bytes),
                expect_room(bytes),
                collect(bytes, std::iter::once(Ok(0_u8))).map(drop),
            ];
            for error in errors {
                assert!(matches!(error, Err(Error::Memory { bytes: asked, .. }) if asked == bytes));
            }
        }
        let huge = reserve(&mut vec![1_u64], usize::MAX / 16);
        assert!(matches!(huge, Err(Error::Memory { bytes, .. }) if bytes > usize::MAX / 4));
    }

    #[test]
    fn collect_returns_the_first_error() {
        let values = [Ok(1), Err(Error::Abandoned), Ok(2)];
        assert!(matches!(
            collect(3, values.into_iter()),
            Err(Error::Abandoned)
        ));
    }
}
