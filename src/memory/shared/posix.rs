//! Shared memory by `shm_open(2)`: macOS, and Linux with the feature `posix_shm`.
//!
//! Avoids everything that macOS refuses for such memory. Its size is set once, and rounded up to pages. It is
//! mapped shared, and accessed in no other way. Its pages stay until the last mapping ends. Nothing seals it:
//! the process that maps it checks its size, and both sides are this library. A file that is mapped privately
//! must therefore be a temporary file: unlinked, but the system may write it to a disk.

use std::fs::{OpenOptions, remove_file};
use std::io::{ErrorKind, Result};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;

use memmap2::UncheckedAdvice;
use rustix::fs::{Mode, ftruncate};
use rustix::io::Errno;
use rustix::shm;

use crate::whole_file::unguessable;

/// The system frees all pages together, after the last mapping ends.
pub(in crate::memory) const REMOVE: Option<UncheckedAdvice> = None;

/// Makes memory of `len` bytes.
///
/// It has a name for a moment, while it is still empty: a process killed then leaves only the name behind.
pub(in crate::memory) fn create(len: u64) -> Result<OwnedFd> {
    let flags = shm::OFlags::CREATE | shm::OFlags::EXCL | shm::OFlags::RDWR;
    let descriptor = loop {
        let name = format!("/{}", random_name());
        match shm::open(name.as_str(), flags, Mode::RUSR | Mode::WUSR) {
            Ok(descriptor) => {
                shm::unlink(name.as_str())?;
                break descriptor;
            }
            Err(Errno::EXIST | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    ftruncate(&descriptor, len)?;
    Ok(descriptor)
}

/// Makes an empty file, which grows on `ftruncate` and writes, and may be mapped privately. `name` is not
/// used.
pub fn make_file(_name: &str) -> Result<OwnedFd> {
    loop {
        let path = std::env::temp_dir().join(random_name());
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        match options.open(&path) {
            Ok(file) => {
                remove_file(path)?;
                return Ok(file.into());
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns an unguessable name of at most 31 bytes, a leading slash included (macOS's `PSHMNAMLEN`).
fn random_name() -> String {
    format!("fastload-{:016x}", unguessable())
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_differ() {
        let (first, second) = (random_name(), random_name());
        assert_ne!(first, second);
        assert!(first.len() < 31);
    }
}
