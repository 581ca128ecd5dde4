//! Nameless memory that processes share through a descriptor.
//!
//! Owns the differences between systems: how such memory is made, whether single pages can be freed, and what
//! backs a file that processes map privately. Refuses to map anything. Invariant: what [`create`] returns
//! never changes its size. Sources: `memfd_create(2)`; for macOS `shm_open(2)` and `bsd/kern/posix_shm.c`,
//! because the manual does not list what is refused.

#[cfg(memfd)]
mod memfd;
#[cfg(not(memfd))]
mod posix;

#[cfg(memfd)]
use memfd as system;
#[cfg(not(memfd))]
use posix as system;

pub use system::make_file;
pub(super) use system::{REMOVE, create};

/// True if the system can free single pages of shared memory.
pub(super) const FREES_SINGLE_PAGES: bool = REMOVE.is_some();

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::{FileExt, MetadataExt};

    use rustix::io::{FdFlags, fcntl_getfd};

    #[test]
    fn shared_memory_has_no_name_and_is_closed_by_exec() {
        for len in [1, 4096, 100_000] {
            let shared = create(len).unwrap();
            assert!(
                fcntl_getfd(shared.as_fd())
                    .unwrap()
                    .contains(FdFlags::CLOEXEC)
            );
            let metadata = File::from(shared).metadata().unwrap();
            // macOS counts no links of `shm_open`'s memory, and rounds sizes up.
            assert_eq!(metadata.nlink(), 0);
            assert!(
                (len..len + (64 << 10)).contains(&metadata.len()),
                "{}",
                metadata.len()
            );
        }
    }

    #[test]
    fn files_grow() {
        let file = make_file("test").unwrap();
        assert!(
            fcntl_getfd(file.as_fd())
                .unwrap()
                .contains(FdFlags::CLOEXEC)
        );
        let file = File::from(file);
        assert_eq!(file.metadata().unwrap().nlink(), 0);
        for len in [10, 100_000] {
            file.set_len(len).unwrap();
            file.write_all_at(b"last", len - 4).unwrap();
        }
        let mut read = [0; 4];
        file.read_exact_at(&mut read, 99_996).unwrap();
        assert_eq!(&read, b"last");
    }
}
