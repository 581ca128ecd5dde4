//! Bytes of this process, laid down in a file in memory that other processes map.
//!
//! Owns the way in which that costs no second copy: whole pages of a large block are replaced, at their
//! addresses, by private mappings of the file that has the same bytes. Nobody can tell, but by looking at
//! `/proc`: reading gives the same, writing copies the page, as after a fork, and the block is freed as ever.
//! Refuses what is not known to be safe, and then there are two copies:
//!
//! - *Memory of others.* The block is the GNU C library's, as its header says: mapped for it alone, and
//!   unmapped when it is freed; or of the main heap, whose memory that library takes for anything but zeros
//!   once it was in use (`__libc_calloc`). No other allocator gives out such pages again.
//! - *Writers.* While a page is copied and replaced, threads that write it are held back by the system
//!   ([`Userfault`]), so no write is lost. Without that nothing is replaced.
//! - *Devices.* Where pages of the process are locked or pinned, nothing is replaced: a device would go on
//!   with the old pages. What CUDA has pinned is not counted there; the caller asks torch. Nor are pages
//!   into which a read with `O_DIRECT` is under way at this moment: what it brings would be lost. No loader
//!   promises anything on a dataset that is being read into while its workers start.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::Result;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::ptr::with_exposed_provenance_mut;
use std::slice;

use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::param::page_size;

use super::mappings::{Mapping, Mappings, are_unwritten, has_held_pages};
use super::userfault::Userfault;

/// Blocks of fewer bytes are not worth a mapping, of which a process may have 65,530.
const LARGE: usize = 1 << 20;

/// Bytes that writers are held back from at once: some milliseconds of copying.
const PIECE: usize = 16 << 20;

/// Bytes of the header of a chunk: two words (`malloc/malloc.c` of the GNU C library).
const WORDS: usize = 2 * size_of::<usize>();

/// Bits of a chunk's size: the chunk before is in use, it is a mapping of its own, it is of a thread's heap.
const PREVIOUS_IS_USED: usize = 0b001;
const IS_MMAPPED: usize = 0b010;
const NON_MAIN_ARENA: usize = 0b100;
const FLAGS: usize = 0b111;

/// Bytes of a live object, and where the memory begins that was allocated for it.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    address: usize,
    len: usize,
    allocated: usize,
}

impl Block {
    /// Describes bytes. `allocated` is 0 where nobody knows who has allocated them, else where their memory
    /// should begin: a header before it has to confirm that.
    ///
    /// # Safety
    ///
    /// The bytes are initialised and stay where they are as long as the block is used (who changes them
    /// meanwhile lays down torn values).
    pub unsafe fn new(address: usize, len: usize, allocated: usize) -> Self {
        Self {
            address,
            len,
            allocated,
        }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: by the promise of `new`.
        unsafe { slice::from_raw_parts(with_exposed_provenance_mut(self.address), self.len) }
    }

    /// Returns the addresses of its whole pages.
    fn pages(&self) -> Range<usize> {
        let page = page_size();
        let end = (self.address + self.len) / page * page;
        self.address.next_multiple_of(page).min(end)..end
    }

    /// Tells whether the memory is the C library's.
    fn is_of_the_c_library(&self, mappings: &Mappings) -> bool {
        self.is_mapped_alone(mappings) || self.is_in_heap(mappings)
    }

    /// Reads the two words before the memory: bytes before the chunk, or of the one before it; and its size.
    fn header(&self, mappings: &Mappings) -> Option<[usize; 2]> {
        let address = self.allocated.checked_sub(WORDS)?;
        let lies_there = self.allocated <= self.address && self.allocated.is_multiple_of(WORDS);
        let is_known = cfg!(target_env = "gnu") && lies_there;
        (is_known && mappings.of(&(address..self.allocated)).is_some()).then(|| words(address))
    }

    /// Tells whether the C library has mapped memory for this block alone.
    fn is_mapped_alone(&self, mappings: &Mappings) -> bool {
        let Some([before, size]) = self.header(mappings) else {
            return false;
        };
        let start = (self.allocated - WORDS).checked_sub(before);
        let len = before.checked_add(size & !FLAGS);
        let Some((start, len)) = start.zip(len) else {
            return false;
        };
        let page = page_size();
        let end = start.saturating_add(len);
        size & FLAGS == IS_MMAPPED
            && start.is_multiple_of(page)
            && len.is_multiple_of(page)
            && self.address + self.len <= end
            && mappings.of(&(start..end)).is_some()
    }

    /// Tells whether it lies in a chunk in use of the C library's main heap.
    fn is_in_heap(&self, mappings: &Mappings) -> bool {
        let Some(([_, size], heap)) = self.header(mappings).zip(mappings.heap()) else {
            return false;
        };
        let start = self.allocated - WORDS;
        let end = start.saturating_add(size & !FLAGS);
        size & (IS_MMAPPED | NON_MAIN_ARENA) == 0
            && heap.start <= start
            && end.is_multiple_of(WORDS)
            && end.saturating_add(WORDS) <= heap.end
            // a chunk in use has the first word of the next
            && self.address + self.len <= end + WORDS / 2
            && words(end)[1] & PREVIOUS_IS_USED != 0
    }
}

/// Reads two words at a mapped address, a multiple of their size.
fn words(address: usize) -> [usize; 2] {
    // SAFETY: mapped and aligned. It may be anything, but that it describes the very memory that it lies before,
    // is no accident.
    unsafe { *with_exposed_provenance_mut(address) }
}

/// Tells whether a block lies in the main heap: its pages may stay a file's after it is freed.
pub fn is_in_heap(block: &Block) -> Result<bool> {
    Ok(block.pages().len() >= LARGE && block.is_in_heap(&Mappings::read()?))
}

/// Writes a block to a file of memory at `at`, and, where `exchange` allows, gives the process the file's
/// pages for its own; returns how many bytes it has of them now.
///
/// The file was made by `memfd_create` under `name`, and is not written otherwise.
///
/// # Errors
///
/// The file cannot be written. That pages cannot be exchanged is none.
pub fn deposit(file: &File, at: u64, block: &Block, exchange: bool, name: &str) -> Result<usize> {
    let page = page_size();
    let pages = block.pages();
    let congruent = at % page as u64 == (block.address % page) as u64;
    let held = if exchange && congruent && pages.len() >= LARGE {
        // whatever fails here costs memory, and nothing else
        hold(block, &pages, name).ok().flatten()
    } else {
        None
    };
    let place = |address: usize| at + (address - block.address) as u64;
    let bytes = |range: Range<usize>| {
        &block.bytes()[range.start - block.address..range.end - block.address]
    };
    let Some(held) = held else {
        file.write_all_at(block.bytes(), at)?;
        return Ok(0);
    };
    file.write_all_at(bytes(block.address..pages.start), at)?;
    let mut exchanged = 0;
    let mut piece = pages.start..pages.start;
    while piece.start < pages.end {
        piece.end = pages.end.min(piece.start + PIECE);
        let is_held = held.hold(&piece).is_ok();
        file.write_all_at(bytes(piece.clone()), place(piece.start))?;
        if is_held && replace(&piece, file, place(piece.start)).is_ok() {
            exchanged += piece.len();
        }
        // those that were not replaced are let go when `held` is dropped
        let _ = held.wake(&piece);
        piece.start = piece.end;
    }
    file.write_all_at(
        bytes(pages.end..block.address + block.len),
        place(pages.end),
    )?;
    Ok(exchanged)
}

/// Makes what holds writers back, if the pages may be replaced.
fn hold(block: &Block, pages: &Range<usize>, name: &str) -> Result<Option<Userfault>> {
    let mappings = Mappings::read()?;
    let may_be_replaced = |map: &Mapping| map.is_anonymous() || map.is_heap() || map.is_memfd(name);
    let ours = mappings
        .of(pages)
        .is_some_and(|maps| maps.iter().all(may_be_replaced));
    if ours && block.is_of_the_c_library(&mappings) && !has_held_pages()? {
        Userfault::new(pages).map(Some)
    } else {
        Ok(None)
    }
}

/// Maps pages of a file, which have the same bytes, in the place of others.
fn replace(pages: &Range<usize>, file: &File, at: u64) -> Result<()> {
    let start = with_exposed_provenance_mut(pages.start);
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::FIXED;
    // SAFETY: the pages belong to one block, whose bytes are the same afterwards: they were written to the file
    // after writers had been held back, and who was held back writes to the new pages.
    unsafe { mmap(start, pages.len(), protection, flags, file.as_fd(), at) }?;
    Ok(())
}

/// Tells whether a block's large part is pages of a file, and the file has its bytes at `at`, unchanged.
pub fn is_deposited(file: &File, at: u64, block: &Block) -> Result<bool> {
    let pages = block.pages();
    if pages.len() < LARGE {
        return Ok(false);
    }
    let inode = file.metadata()?.ino();
    let mappings = Mappings::read()?;
    let is_of_file = |map: &Mapping| map.is_of(inode, block.address, at);
    let maps = mappings.of(&pages);
    if !maps.is_some_and(|maps| maps.iter().all(is_of_file)) || !are_unwritten(&pages)? {
        return Ok(false);
    }
    let end = block.address + block.len;
    for edge in [block.address..pages.start, pages.end..end] {
        let edge = edge.start - block.address..edge.end - block.address;
        let mut bytes = vec![0; edge.len()];
        file.read_exact_at(&mut bytes, at + edge.start as u64)?;
        if bytes != block.bytes()[edge] {
            return Ok(false);
        }
    }
    Ok(true)
}
