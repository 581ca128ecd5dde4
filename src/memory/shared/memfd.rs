//! Shared memory by `memfd_create(2)`: Linux. Sealed, so that no process can shrink it under a mapping.

use std::io::Result;
use std::os::fd::OwnedFd;

use memmap2::UncheckedAdvice;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

/// Gives some pages back to the system; their bytes are zero afterwards.
pub(in crate::memory) const REMOVE: Option<UncheckedAdvice> = Some(UncheckedAdvice::Remove);

/// Makes memory of `len` bytes.
pub(in crate::memory) fn create(len: u64) -> Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let descriptor = memfd_create(c"fastload", flags)?;
    ftruncate(&descriptor, len)?;
    // An access beyond the end of a shrunk file would kill the process.
    fcntl_add_seals(&descriptor, SealFlags::SHRINK | SealFlags::GROW)?;
    Ok(descriptor)
}

/// Makes an empty file in memory, which grows on `ftruncate` and writes, and may be mapped privately.
pub fn make_file(name: &str) -> Result<OwnedFd> {
    Ok(memfd_create(name, MemfdFlags::CLOEXEC)?)
}
