//! The allocator of the extension module: mimalloc, and the system's in forked children.
//!
//! A batch is made by one thread and freed by another, and glibc locks the maker's arena for that: for small
//! batches this was a tenth of the time (`benches/padding.py`). Nothing outside the module is allocated by it,
//! and neither are batches, which have memory of their own.
//!
//! mimalloc has locks, and waits for what other threads are about to do, when threads begin and end and when it asks
//! the system for memory; it handles no fork, so that a child may wait for ever. The system's allocator does. Invariant: a
//! child neither allocates from mimalloc nor frees what it inherited: that is leaked.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;

use mimalloc::MiMalloc;

use crate::fork;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

struct Allocator;

unsafe extern "C" {
    /// Tells mimalloc's memory from others'. It reads a table, and takes no lock.
    fn mi_is_in_heap_region(pointer: *const c_void) -> bool;
}

/// Returns true in a forked child.
fn is_child() -> bool {
    fork::inherited(0)
}

/// Returns true for memory that a child has from its parent.
fn is_inherited(pointer: *mut u8) -> bool {
    // SAFETY: any address may be asked for.
    unsafe { mi_is_in_heap_region(pointer.cast()) }
}

// SAFETY: both allocators keep the contract, and each is given back what it has allocated: in a child, what is not
// mimalloc's is the system's.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_child() {
            // SAFETY: by the caller's promise.
            unsafe { System.alloc(layout) }
        } else {
            // SAFETY: as above.
            unsafe { MiMalloc.alloc(layout) }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_child() {
            // SAFETY: by the caller's promise.
            unsafe { System.alloc_zeroed(layout) }
        } else {
            // SAFETY: as above.
            unsafe { MiMalloc.alloc_zeroed(layout) }
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if !is_child() {
            // SAFETY: by the caller's promise; this process has allocated nothing elsewhere.
            unsafe { MiMalloc.dealloc(pointer, layout) }
        } else if !is_inherited(pointer) {
            // SAFETY: as above, and it is the system's.
            unsafe { System.dealloc(pointer, layout) }
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_child() {
            // SAFETY: by the caller's promise.
            return unsafe { MiMalloc.realloc(pointer, layout, size) };
        }
        if !is_inherited(pointer) {
            // SAFETY: as above, and it is the system's.
            return unsafe { System.realloc(pointer, layout, size) };
        }
        // SAFETY: the caller promises a size that fits the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: its size is not zero, by the caller's promise.
        let moved = unsafe { System.alloc(wanted) };
        if !moved.is_null() {
            let kept = size.min(layout.size());
            // SAFETY: both have as many bytes, and the new memory is nobody else's.
            unsafe { std::ptr::copy_nonoverlapping(pointer, moved, kept) };
        }
        moved
    }
}
