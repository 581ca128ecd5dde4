//! The exclusive use of some bytes of the slab pool, until dropped.
#![allow(unsafe_code)]

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::slice;

use super::block::Block;
use super::slab;
use crate::fork;
use crate::planted::{Bug, planted};

/// Exactly `len` initialised bytes, 64-byte aligned, with no other user.
///
/// Their values are arbitrary: zeros, or what a former lease wrote. Dropping it returns the memory, from any
/// thread; in a forked child, dropping an inherited lease does nothing.
#[derive(Debug)]
pub struct Lease {
    block: ManuallyDrop<Block>,
    len: usize,
    birth: u64,
}

// SAFETY: shared, a lease gives out only `&[u8]`.
unsafe impl Sync for Lease {}

impl Lease {
    /// Leases the first `len` bytes of `block`, made in generation `birth`.
    pub(super) fn new(block: Block, len: usize, birth: u64) -> Self {
        assert!(
            len <= block.capacity(),
            "a lease of {len} bytes of a smaller block"
        );
        Self {
            block: ManuallyDrop::new(block),
            len,
            birth,
        }
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the address of the first byte.
    pub fn as_ptr(&self) -> *const u8 {
        self.block.start().as_ptr()
    }

    /// Returns the address of the first byte, to write through.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.block.start().as_ptr()
    }
}

impl Deref for Lease {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the block owns at least `len` initialised bytes, and only `&mut self` writes.
        unsafe { slice::from_raw_parts(self.as_ptr(), self.len) }
    }
}

impl DerefMut for Lease {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` excludes every other use.
        unsafe { slice::from_raw_parts_mut(self.as_mut_ptr(), self.len) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if planted(Bug::LeakedLease) {
            return;
        }
        if fork::inherited(self.birth) {
            return; // the parent still uses the memory, and the pool's locks are the parent's
        }
        // SAFETY: `block` is not used again: this is drop.
        let block = unsafe { ManuallyDrop::take(&mut self.block) };
        slab::give_back(block);
    }
}

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
