//! The memory that a field of a batch is written to: a lease, which is the exclusive use of some bytes of the slab pool
//! until it is dropped, or memory that torch owns.
#![allow(unsafe_code)]

use std::any::Any;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::slice;

use super::block::Block;
use super::slab;
use crate::error::Result;
use crate::fork;
use crate::planted::{Bug, planted};

/// Bytes that are written once, and then belong to a tensor.
#[derive(Debug)]
pub enum Destination {
    /// Memory of the slab pool; the tensor made over it will own it.
    Lease(Lease),
    /// Memory of an existing tensor, for example page-locked memory of torch's own allocator.
    External(External),
}

impl Destination {
    /// Returns the given memory if it has exactly `bytes` bytes, otherwise a new lease of that size.
    pub fn or_lease(given: Option<Destination>, bytes: usize) -> Result<Destination> {
        match given {
            Some(given) if given.len() == bytes => Ok(given),
            _ => slab::lease(bytes).map(Self::Lease),
        }
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Lease(lease) => lease.len(),
            Self::External(external) => external.len,
        }
    }

    /// Returns true if there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the address of the first byte, to write through.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        match self {
            Self::Lease(lease) => lease.as_mut_ptr(),
            Self::External(external) => external.ptr,
        }
    }

    /// Returns all bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Lease(lease) => lease,
            Self::External(external) => external.bytes(),
        }
    }

    /// Returns all bytes, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Lease(lease) => lease,
            Self::External(external) => external.bytes_mut(),
        }
    }
}

impl From<Lease> for Destination {
    fn from(lease: Lease) -> Self {
        Self::Lease(lease)
    }
}

/// Bytes that another object owns, exclusively ours to write while `owner` is held.
#[derive(Debug)]
pub struct External {
    ptr: *mut u8,
    len: usize,
    owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: `new` requires exclusive bytes, which any thread may write; the owner is Send itself.
unsafe impl Send for External {}
// SAFETY: shared, it gives out only `&[u8]`.
unsafe impl Sync for External {}

impl External {
    /// Borrows the `len` bytes at `ptr`; `ptr` may be anything when `len` is 0.
    ///
    /// # Safety
    ///
    /// The bytes are initialised and stay in place until `owner` is dropped or taken out, and until then
    /// nothing else reads or writes them.
    pub unsafe fn new(ptr: *mut u8, len: usize, owner: Box<dyn Any + Send + Sync>) -> Self {
        Self { ptr, len, owner }
    }

    /// Ends the borrow, and returns the owner of the bytes: the tensor.
    pub fn into_owner(self) -> Box<dyn Any + Send + Sync> {
        self.owner
    }

    fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: initialised, alive and exclusive by the promise of `new`, and only `&mut self`
        // writes.
        unsafe { slice::from_raw_parts(self.ptr, self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: initialised, alive and exclusive by the promise of `new`.
        unsafe { slice::from_raw_parts_mut(self.ptr, self.len) }
    }
}

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
