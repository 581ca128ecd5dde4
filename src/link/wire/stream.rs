//! A stream socket, with each piece's length and kind in front of it: macOS, and Linux with `posix_shm`.
//!
//! No read goes beyond the piece that it is for, so what comes with its first byte is that piece's descriptor.
//! macOS has no flags of a call by which its descriptors are closed by exec, or it does not wait, or no signal
//! comes of it: they are properties of the descriptors here. A process that another thread starts by fork and
//! exec in between inherits one: nothing but its end comes of that.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::{Errno, FdFlags, Result, fcntl_setfd, ioctl_fionbio};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair};

use super::{Came, Kind, PIECE, Sent, receive_once, send_once, unsent, wait_for_any};
use crate::sync::{Mutex, lock};

/// macOS may drop a descriptor that is on its way when its sender closes its own: it is kept until the other
/// end has said that it came.
pub(in crate::link) const KEEPS_DESCRIPTORS: bool = true;

/// Bytes in front of a piece: its length, and its kind.
const HEAD: usize = 4 + 1;

/// Bytes that are on their way at most: two pieces, or several letters. macOS's own limit is 8 KiB.
const ROOM: usize = 64 << 10;

#[cfg(target_os = "macos")]
const QUIET: SendFlags = SendFlags::empty(); // see `prepare`
#[cfg(not(target_os = "macos"))]
const QUIET: SendFlags = SendFlags::NOSIGNAL;

/// One end.
#[derive(Debug)]
pub(in crate::link) struct Wire {
    end: OwnedFd,
    /// How many bytes of the piece that is sent now are sent.
    sent: Mutex<usize>,
    reading: Mutex<Reading>,
}

/// A piece of which some has come.
#[derive(Debug, Default)]
struct Reading {
    bytes: Vec<u8>,
    descriptor: Option<OwnedFd>,
}

impl Reading {
    /// Returns how many bytes are to come: of the head, then of the piece.
    fn missing(&self) -> Result<usize> {
        let Some((head, piece)) = self.bytes.split_first_chunk::<HEAD>() else {
            return Ok(HEAD - self.bytes.len());
        };
        let [len @ .., _] = head;
        let len = u32::from_le_bytes(*len) as usize;
        if len > PIECE {
            return Err(Errno::PROTO);
        }
        Ok(len - piece.len())
    }

    /// Takes the piece, which is whole.
    fn take(&mut self) -> Result<Came> {
        let Self {
            mut bytes,
            descriptor,
        } = std::mem::take(self);
        let kind = Kind::of(bytes[HEAD - 1]).ok_or(Errno::PROTO)?;
        bytes.drain(..HEAD);
        Ok(Came::Piece(kind, bytes, descriptor))
    }
}

impl Wire {
    /// Makes both ends: one of ours, and the other's descriptor.
    pub(in crate::link) fn pair() -> Result<(Self, OwnedFd)> {
        let kind = (
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::empty(),
        );
        let (ours, theirs) = socketpair(kind.0, kind.1, kind.2, None)?;
        prepare(&ours)?;
        prepare(&theirs)?;
        Ok((Self::new(ours), theirs))
    }

    pub(in crate::link) fn new(descriptor: OwnedFd) -> Self {
        Self {
            end: descriptor,
            sent: Mutex::new(0),
            reading: Mutex::new(Reading::default()),
        }
    }

    /// Sends a piece, with a descriptor, as far as there is room; after [`Sent::Full`] the same comes again.
    pub(in crate::link) fn send(
        &self,
        kind: Kind,
        piece: &[u8],
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<Sent> {
        let mut sent = lock(&self.sent);
        let mut head = [kind as u8; HEAD];
        head[..4].copy_from_slice(&(piece.len() as u32).to_le_bytes());
        while *sent < HEAD + piece.len() {
            let bytes = [
                IoSlice::new(&head[HEAD.min(*sent)..]),
                IoSlice::new(&piece[sent.saturating_sub(HEAD)..]),
            ];
            let first = descriptor.filter(|_| *sent == 0);
            match send_once(&self.end, &bytes, first, QUIET) {
                Ok(more) => *sent += more,
                Err(error) => return unsent(error),
            }
        }
        *sent = 0;
        Ok(Sent::Done)
    }

    /// Receives a piece, if all of it is there; half a piece before the end is none.
    pub(in crate::link) fn receive(&self) -> Result<Came> {
        let mut reading = lock(&self.reading);
        loop {
            let missing = reading.missing()?;
            if missing == 0 {
                return reading.take();
            }
            match self.read(&mut reading, missing) {
                Ok(0) => return Ok(Came::End),
                // a reset end had unread pieces: what it sent itself is here still
                Ok(_) | Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(Errno::AGAIN) => return Ok(Came::Nothing),
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads at most `missing` bytes; returns how many, 0 at the end.
    fn read(&self, reading: &mut Reading, missing: usize) -> Result<usize> {
        let start = reading.bytes.len();
        reading.bytes.resize(start + missing, 0);
        let received = receive_once(&self.end, &mut reading.bytes[start..], RecvFlags::empty());
        let bytes = received.as_ref().map_or(0, |(bytes, _)| *bytes);
        reading.bytes.truncate(start + bytes);
        if let (_, Some(descriptor)) = received? {
            fcntl_setfd(&descriptor, FdFlags::CLOEXEC)?;
            reading.descriptor = Some(descriptor);
        }
        Ok(bytes)
    }

    /// Waits for some time; tells whether the other end is closed then. One that has finished is not closed.
    ///
    /// macOS tells who waits to read alike of one that has finished: whoever could write is told nothing of that.
    pub(in crate::link) fn is_closed_within(&self, time: Duration) -> Result<bool> {
        std::thread::sleep(time);
        let mut polled = [PollFd::new(&self.end, PollFlags::OUT)];
        wait_for_any(&mut polled, Duration::ZERO)?;
        let seen = polled[0].revents();
        Ok(seen.intersects(PollFlags::HUP | PollFlags::ERR))
    }
}

/// Gives an end what both processes rely on.
fn prepare(end: &OwnedFd) -> Result<()> {
    fcntl_setfd(end, FdFlags::CLOEXEC)?;
    ioctl_fionbio(end, true)?;
    #[cfg(target_os = "macos")]
    rustix::net::sockopt::set_socket_nosigpipe(end, true)?;
    // less room is slower, and nothing else
    let _ = set_socket_send_buffer_size(end, ROOM);
    let _ = set_socket_recv_buffer_size(end, ROOM);
    Ok(())
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}
