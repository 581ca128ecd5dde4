//! Memory whose size a file decides: it is had, or refused with an error. It never ends the process.
//!
//! `Vec::push`, `vec![]` and `collect` abort where the allocator gives nothing. What grows with the bytes of a
//! file grows through these functions instead; what a library allocates for them is asked for beforehand with
//! [`expect_room`].
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed};
use std::collections::TryReserveError;

use crate::error::{Error, Result};

/// Less than this is not asked for beforehand: that would cost more than it tells.
const SMALL: usize = 1 << 20;

/// Makes room for exactly `more` elements behind those of `values`.
///
/// # Errors
///
/// [`Error::Memory`], without a path.
pub fn reserve<T>(values: &mut Vec<T>, more: usize) -> Result<()> {
    refused::<T>(values.len(), more, values.try_reserve_exact(more))
}

/// Makes room for `more` elements, and for others that follow one by one.
///
/// # Errors
///
/// [`Error::Memory`], without a path.
pub fn reserve_growing<T>(values: &mut Vec<T>, more: usize) -> Result<()> {
    refused::<T>(values.len(), more, values.try_reserve(more))
}

/// Adds one element.
///
/// # Errors
///
/// [`Error::Memory`], without a path.
pub fn push<T>(values: &mut Vec<T>, value: T) -> Result<()> {
    if values.len() == values.capacity() {
        reserve_growing(values, 1)?;
    }
    values.push(value);
    Ok(())
}

/// Gives `bytes` a length; what is new is zero.
///
/// # Errors
///
/// [`Error::Memory`], without a path.
pub fn resize(bytes: &mut Vec<u8>, len: usize) -> Result<()> {
    reserve(bytes, len.saturating_sub(bytes.len()))?;
    bytes.resize(len, 0);
    Ok(())
}

/// Returns `len` zeros. Fresh pages of the system are not touched.
///
/// # Errors
///
/// [`Error::Memory`], without a path.
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

/// Collects at most `most` values.
///
/// # Errors
///
/// [`Error::Memory`], without a path; the first error of `values`.
pub fn collect<T>(most: usize, values: impl Iterator<Item = Result<T>>) -> Result<Vec<T>> {
    let mut all = Vec::new();
    reserve(&mut all, most)?;
    for value in values.take(most) {
        all.push(value?);
    }
    Ok(all)
}

/// Copies bytes.
///
/// # Errors
///
/// [`Error::Memory`], without a path.
pub fn boxed(bytes: &[u8]) -> Result<Box<[u8]>> {
    let mut copy = Vec::new();
    reserve(&mut copy, bytes.len())?;
    copy.extend_from_slice(bytes);
    Ok(copy.into_boxed_slice())
}

/// Gives up the room behind the last of `bytes`.
///
/// # Errors
///
/// [`Error::Memory`], without a path.
pub fn shrunk(bytes: Vec<u8>) -> Result<Box<[u8]>> {
    if bytes.len() < bytes.capacity() {
        return boxed(&bytes);
    }
    Ok(bytes.into_boxed_slice())
}

/// Checks that a library can allocate `bytes` bytes, which it would abort for otherwise.
///
/// # Errors
///
/// [`Error::Memory`], without a path.
pub fn expect_room(bytes: usize) -> Result<()> {
    if bytes < SMALL {
        return Ok(());
    }
    reserve(&mut Vec::<u8>::new(), bytes)
}

/// The error of `bytes` bytes that cannot be had.
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
    fn zeros_are_as_many_as_asked_for() {
        for len in [0, 1, 100_000] {
            let mut zeros = zeroed(len).unwrap();
            assert_eq!(zeros, vec![0; len]);
            zeros.push(1);
        }
    }

    #[cfg(not(miri))] // whose own memory ends first
    #[test]
    fn what_cannot_be_had_is_an_error_with_its_size() {
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
        let many = reserve(&mut vec![1_u64], usize::MAX / 16);
        assert!(matches!(many, Err(Error::Memory { bytes, .. }) if bytes > usize::MAX / 4));
    }

    #[test]
    fn an_error_of_what_is_collected_comes_first() {
        let values = [Ok(1), Err(Error::Abandoned), Ok(2)];
        assert!(matches!(
            collect(3, values.into_iter()),
            Err(Error::Abandoned)
        ));
    }
}
