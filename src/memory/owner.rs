//! Memory that tensors can be made over: bytes that stay in place until their owner is dropped.
#![allow(unsafe_code)]

use super::lease::Lease;

/// Owner of memory.
///
/// # Safety
///
/// `as_mut_ptr` is valid for `len` initialised bytes as long as the owner lives, even if the owner is moved.
/// Nothing else writes them without the consent of the code that has the owner.
pub unsafe trait Owner: Send {
    /// Returns the number of bytes.
    fn len(&self) -> usize;

    /// Returns true if there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the address of the first byte, to write through.
    fn as_mut_ptr(&mut self) -> *mut u8;
}

// SAFETY: a lease is the exclusive use of its bytes, which do not move with it.
unsafe impl Owner for Lease {
    fn len(&self) -> usize {
        Lease::len(self)
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        Lease::as_mut_ptr(self)
    }
}
