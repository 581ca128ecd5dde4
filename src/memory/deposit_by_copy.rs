//! Bytes of this process, written to a file that other processes map: there are two copies of them.
//!
//! Owns what is left of `deposit` where the system cannot hold writers back while pages are exchanged: on
//! macOS. Refuses to look at the memory of the process.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::Result;
use std::os::unix::fs::FileExt;
use std::ptr::with_exposed_provenance;
use std::slice;

/// Bytes of a live object.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    address: usize,
    len: usize,
}

impl Block {
    /// Describes bytes; who has allocated them does not matter here.
    ///
    /// # Safety
    ///
    /// The bytes are initialised and stay where they are as long as the block is used (who changes them
    /// meanwhile lays down torn values).
    pub unsafe fn new(address: usize, len: usize, _allocated: usize) -> Self {
        Self { address, len }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: by the promise of `new`.
        unsafe { slice::from_raw_parts(with_exposed_provenance(self.address), self.len) }
    }
}

/// Writes a block to a file at `at`; returns 0: the process has none of the file's pages for its own.
///
/// # Errors
///
/// The file cannot be written.
pub fn deposit(file: &File, at: u64, block: &Block, _exchange: bool, _name: &str) -> Result<usize> {
    file.write_all_at(block.bytes(), at)?;
    Ok(0)
}

/// Returns false: no block is pages of a file.
#[allow(clippy::unnecessary_wraps)] // elsewhere it looks at memory, which may fail
pub fn is_deposited(_: &File, _: u64, _: &Block) -> Result<bool> {
    Ok(false)
}

/// Returns false: it does not matter here.
#[allow(clippy::unnecessary_wraps)] // as above
pub fn is_in_heap(_: &Block) -> Result<bool> {
    Ok(false)
}
