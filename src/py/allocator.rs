//! The allocator of the extension module: mimalloc, and the system's in forked children.
//!
//! One thread makes a batch and another frees it, and glibc locks the first thread's arena for that: for
//! small batches this took a tenth of the time (`benches/padding.py`). It serves only this module, and not
//! the batches, which have memory of their own.
//!
//! mimalloc takes locks, and waits for other threads, when threads begin and end and when it asks the system
//! for memory. It handles no fork, so a child could wait forever. The system's allocator handles forks.
//!
//! mimalloc asks for huge pages where Linux leaves that to the program. Its blocks of different sizes lie far
//! apart, so that each decoding thread had several huge pages of which it used a part: 30 MB in place of 5.
//!
//! Invariant: a child neither allocates from mimalloc nor frees memory that it inherited, which is leaked.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{c_int, c_long, c_void};

use mimalloc::MiMalloc;

use crate::fork;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

struct Allocator;

/// `mi_option_allow_thp` of mimalloc's `enum mi_option_e`.
const ALLOW_HUGE_PAGES: c_int = 43;

unsafe extern "C" {
    /// Returns true for mimalloc's memory. Reads a table, and takes no lock.
    fn mi_is_in_heap_region(pointer: *const c_void) -> bool;

    fn mi_option_set(option: c_int, value: c_long);
}

/// Has mimalloc take pages of the usual size, from its next mapping on; called before it has one. The
/// environment's `MIMALLOC_ALLOW_THP=0` is no substitute: it denies huge pages to the whole process.
pub(super) fn use_small_pages() {
    // SAFETY: writes an entry of mimalloc's table of options, which it reads when it maps memory.
    unsafe { mi_option_set(ALLOW_HUGE_PAGES, 0) }
}

fn is_child() -> bool {
    fork::inherited(0)
}

/// Returns true for memory that a child inherited from its parent.
fn is_inherited(pointer: *mut u8) -> bool {
    // SAFETY: any address is allowed.
    unsafe { mi_is_in_heap_region(pointer.cast()) }
}

// SAFETY: both allocators keep the contract, and each gets back what it allocated: in a child, memory that is
// not mimalloc's is the system's.
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
            // SAFETY: by the caller's promise; this process allocates only from mimalloc.
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
            // SAFETY: both have as many bytes, and the new memory has no other user.
            unsafe { std::ptr::copy_nonoverlapping(pointer, moved, kept) };
        }
        moved
    }
}
