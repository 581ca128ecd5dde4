//! Pages that nobody can write for a while.
//!
//! Owns a userfaultfd (`ioctl_userfaultfd(2)`) by which writers are held back: a thread that writes such a page
//! sleeps until it is let go, and then writes to whatever lies at the address. Refuses to hold back readers.
//! Invariant: when it is dropped, nobody is held back any more.
#![allow(unsafe_code)]

use std::io::{Error, Result};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::mm::{UserfaultfdFlags, userfaultfd};

/// Versions and features, as `UFFDIO_API` takes them.
const API: u64 = 0xAA;
/// Writes can be held back; also of pages that do not exist yet (Linux 6.4).
const FEATURES: u64 = (1 << 0) | (1 << 13);
/// `UFFD_USER_MODE_ONLY`: what every process may have. System calls that write then fail with `EFAULT`.
const USER_MODE_ONLY: u32 = 1;
/// `UFFDIO_REGISTER_MODE_WP`.
const REGISTER: u64 = 1 << 1;
/// `UFFDIO_WRITEPROTECT_MODE_WP`.
const PROTECT: u64 = 1 << 0;

/// `struct uffdio_api`.
#[repr(C)]
struct Handshake {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_register`, and, up to its mode, `struct uffdio_writeprotect` and `struct uffdio_range`.
#[repr(C)]
struct Request {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}

/// Numbers of requests, as `_IOC` makes them: direction, size, kind, number.
const fn number(direction: u64, size: u64, number: u64) -> u64 {
    (direction << 30) | (size << 16) | (0xAA << 8) | number
}

const UFFDIO_API: u64 = number(3, 24, 0x3F);
const UFFDIO_REGISTER: u64 = number(3, 32, 0x00);
const UFFDIO_WAKE: u64 = number(2, 16, 0x02);
const UFFDIO_WRITEPROTECT: u64 = number(3, 24, 0x06);

/// Holds writers back from some pages.
#[derive(Debug)]
pub(super) struct Userfault(OwnedFd);

impl Userfault {
    /// Registers pages, from which nobody is held back yet.
    ///
    /// # Errors
    ///
    /// A system that is too old or forbids it, or pages that somebody else watches.
    pub(super) fn new(pages: &Range<usize>) -> Result<Self> {
        let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK;
        let lesser = flags | UserfaultfdFlags::from_bits_retain(USER_MODE_ONLY);
        // SAFETY: it makes a descriptor and touches no memory.
        let descriptor = unsafe { userfaultfd(flags) };
        // SAFETY: as above.
        let descriptor = descriptor.or_else(|_| unsafe { userfaultfd(lesser) })?;
        let this = Self(descriptor);
        let mut handshake = Handshake {
            api: API,
            features: FEATURES,
            ioctls: 0,
        };
        // SAFETY: the request takes, and fills, a structure of this layout.
        let done = unsafe { libc::ioctl(this.0.as_raw_fd(), UFFDIO_API as _, &raw mut handshake) };
        check(done)?;
        this.request(UFFDIO_REGISTER, pages, REGISTER)?;
        Ok(this)
    }

    /// Holds writers back from pages.
    pub(super) fn hold(&self, pages: &Range<usize>) -> Result<()> {
        self.request(UFFDIO_WRITEPROTECT, pages, PROTECT)
    }

    /// Lets go who waits for pages that have been replaced.
    pub(super) fn wake(&self, pages: &Range<usize>) -> Result<()> {
        self.request(UFFDIO_WAKE, pages, 0)
    }

    fn request(&self, number: u64, pages: &Range<usize>, mode: u64) -> Result<()> {
        let mut request = Request {
            start: pages.start as u64,
            len: pages.len() as u64,
            mode,
            ioctls: 0,
        };
        // SAFETY: each of these requests takes a structure that begins like this one and is no longer.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), number as _, &raw mut request) })
    }
}

fn check(done: i32) -> Result<()> {
    if done == 0 {
        Ok(())
    } else {
        Err(Error::last_os_error())
    }
}
