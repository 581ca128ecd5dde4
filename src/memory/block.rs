//! The memory behind leases: heap for small blocks, anonymous mappings for large ones.
//!
//! Owns allocation and release, and nothing of the use: the free list and the leases see a start, a capacity
//! and initialised bytes. Another backing would be another variant here.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io::{Error, ErrorKind, Result};
use std::ptr::NonNull;

use memmap2::{MmapMut, MmapOptions};

/// Alignment of every block, in bytes: a cache line, and the widest vector register.
pub(super) const ALIGNMENT: usize = 64;

/// Gives the address of an empty block its alignment.
#[repr(align(64))]
struct Aligned;

/// Size of a huge page, in bytes, on x86-64 and with 4 KiB pages on aarch64.
const HUGE: usize = 2 << 20;

/// Memory of its own: `capacity` initialised bytes at `start`, freed when dropped.
#[derive(Debug)]
pub(super) struct Block {
    start: NonNull<u8>,
    capacity: usize,
    backing: Backing,
}

#[derive(Debug)]
enum Backing {
    Heap(Layout),
    /// Kept so that the mapping ends with the block.
    Mapped {
        _map: MmapMut,
    },
}

// SAFETY: a block owns its memory, and neither backing is tied to a thread.
unsafe impl Send for Block {}

impl Block {
    /// Takes `capacity` zeroed bytes from the system allocator.
    pub(super) fn heap(capacity: usize) -> Result<Self> {
        let layout = Layout::from_size_align(capacity, ALIGNMENT)
            .map_err(|error| Error::new(ErrorKind::OutOfMemory, error))?;
        let start = if capacity == 0 {
            NonNull::<Aligned>::dangling().cast()
        } else {
            // SAFETY: the layout's size is not zero.
            let memory = unsafe { alloc_zeroed(layout) };
            NonNull::new(memory).ok_or(ErrorKind::OutOfMemory)?
        };
        Ok(Self {
            start,
            capacity,
            backing: Backing::Heap(layout),
        })
    }

    /// Maps `capacity` bytes, zeroed by the kernel at first touch. From 2 MiB on they are aligned to huge
    /// pages, and the first `used` bytes are backed by them where the kernel can. A huge page of which less
    /// than half would be used is left to small ones, which are resident only once they are touched.
    #[cfg_attr(any(not(target_os = "linux"), miri), allow(unused_variables))] // no huge pages there
    pub(super) fn map(capacity: usize, used: usize) -> Result<Self> {
        let slack = if capacity >= HUGE { HUGE } else { 0 };
        let len = capacity.checked_add(slack).ok_or(ErrorKind::OutOfMemory)?;
        let mut map = MmapOptions::new().len(len).map_anon()?;
        let base = map.as_mut_ptr();
        let offset = if slack == 0 {
            0
        } else {
            base.align_offset(HUGE)
        };
        #[cfg(all(target_os = "linux", not(miri)))]
        if slack != 0 {
            let huge = (used + HUGE / 2) / HUGE * HUGE;
            // A kernel without huge pages refuses; the memory is as good, only slower to touch.
            let _ = map.advise_range(memmap2::Advice::HugePage, offset, huge.min(capacity));
        }
        // SAFETY: offset <= slack, so that the result and the `capacity` bytes after it lie within
        // the mapping.
        let start = unsafe { base.add(offset) };
        let start = NonNull::new(start).ok_or(ErrorKind::OutOfMemory)?;
        Ok(Self {
            start,
            capacity,
            backing: Backing::Mapped { _map: map },
        })
    }

    /// Returns the address of the first byte; valid for `capacity` bytes while the block lives.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the size, in bytes.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Backing::Heap(layout) = self.backing
            && layout.size() != 0
        {
            // SAFETY: `start` came from `alloc_zeroed` with this layout, and the block is its only user.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}

/// From this size on, in bytes, blocks are kept for reuse: zeroing a new one takes as long as filling it.
/// Smaller ones are left to the system allocator, which reuses them well.
pub(super) const SMALLEST: usize = 4 << 10;

/// From this size on, in bytes, each block is a mapping of its own: the system limits the mappings of a
/// process.
pub(super) const MAPPED: usize = 64 << 10;

/// Rounds `bytes` up to its class; None on overflow.
pub(super) fn round(bytes: usize) -> Option<usize> {
    if bytes <= SMALLEST {
        return Some(SMALLEST);
    }
    // bytes lies in (2^k, 2^(k+1)], whose classes are 2^(k-3) apart
    let step = 1 << ((bytes - 1).ilog2() - 3);
    bytes.checked_next_multiple_of(step)
}

#[cfg(all(
    test,
    target_os = "linux",
    target_arch = "x86_64",
    not(loom),
    not(miri)
))]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek, SeekFrom};

    use super::*;

    const PAGE: usize = 4096;

    /// Returns the resident bytes of a block. Format: `proc_pid_pagemap(5)`.
    fn resident(block: &Block) -> std::io::Result<usize> {
        let mut file = File::open("/proc/self/pagemap")?;
        let first = block.start().addr().get() / PAGE;
        file.seek(SeekFrom::Start(8 * first as u64))?;
        let mut entries = vec![0; 8 * block.capacity() / PAGE];
        file.read_exact(&mut entries)?;
        let present = entries.chunks_exact(8).filter(|entry| entry[7] & 0x80 != 0);
        Ok(PAGE * present.count())
    }

    #[test]
    fn what_is_resident_exceeds_what_is_used_by_half_a_huge_page_at_most() {
        let capacity = 10 * HUGE;
        for used in [9 * HUGE + HUGE / 5, 9 * HUGE + 4 * HUGE / 5, capacity] {
            let block = Block::map(capacity, used).unwrap();
            // SAFETY: `used` is at most the capacity, and the block is not shared.
            unsafe { block.start().write_bytes(1, used) };
            let resident = resident(&block).unwrap();
            assert!(resident >= used, "{resident} for {used}");
            assert!(resident <= used + HUGE / 2, "{resident} for {used}");
        }
    }
}

#[cfg(all(test, not(loom), not(miri)))]
mod size_tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn at_most_an_eighth_is_wasted(bytes in SMALLEST..1 << 40) {
            let class = round(bytes).unwrap();
            prop_assert!(class >= bytes);
            prop_assert!((class - bytes) * 8 <= bytes);
        }

        #[test]
        fn rounding_a_class_changes_nothing(bytes in 0..1_usize << 40) {
            let class = round(bytes).unwrap();
            prop_assert_eq!(round(class), Some(class));
            prop_assert_eq!(class % if class < MAPPED { 512 } else { 4096 }, 0);
        }

        #[test]
        fn order_is_kept(a in 0..1_usize << 40, b in 0..1_usize << 40) {
            prop_assert!(round(a.min(b)) <= round(a.max(b)));
        }
    }

    #[test]
    fn an_overflow_is_none() {
        assert_eq!(round(usize::MAX), None);
    }
}
