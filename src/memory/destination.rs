//! The memory that a field of a batch is written to: a lease, or memory that torch owns.
#![allow(unsafe_code)]

use std::any::Any;
use std::slice;

use super::lease::Lease;
use super::slab::lease;
use crate::error::Result;

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
            _ => lease(bytes).map(Self::Lease),
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
