//! A stream socket, with a length and a kind in front of each piece: macOS, and Linux with `posix_shm`.
//!
//! No read goes beyond the piece that it is for, so a descriptor that comes with the first byte belongs to
//! that piece. macOS has no per-call flags for close-on-exec, non-blocking or no SIGPIPE, so these are set on
//! the descriptors. A process that another thread starts by fork and exec in between inherits a descriptor;
//! the only effect is that it stays open until that process ends.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::{Errno, FdFlags, Result, fcntl_setfd, ioctl_fionbio};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair};

use super::{Incoming, Kind, PIECE, Sent, receive_once, send_once, sleep_for_any, unsent};
use crate::sync::{Mutex, lock};

/// True: macOS may drop a descriptor in flight when its sender closes its copy, so that is kept until the
/// other end has acknowledged it.
pub(in crate::link) const KEEP_SENT_DESCRIPTORS: bool = true;

/// Bytes in front of a piece: its length, and its kind.
const HEAD: usize = 4 + 1;

/// Socket buffer size, in bytes: two pieces, or several messages. macOS's default is 8 KiB.
const ROOM: usize = 64 << 10;

#[cfg(target_os = "macos")]
const QUIET: SendFlags = SendFlags::empty(); // see `prepare`
#[cfg(not(target_os = "macos"))]
const QUIET: SendFlags = SendFlags::NOSIGNAL;

/// One end of the wire.
#[derive(Debug)]
pub(in crate::link) struct Wire {
    end: OwnedFd,
    /// Bytes sent so far of the piece that is being sent.
    sent: Mutex<usize>,
    reading: Mutex<Reading>,
}

/// A piece that has come in part.
#[derive(Debug, Default)]
struct Reading {
    bytes: Vec<u8>,
    descriptor: Option<OwnedFd>,
}

impl Reading {
    /// Returns how many bytes are missing: of the head, then of the piece.
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

    /// Takes the complete piece.
    fn take(&mut self) -> Result<Incoming> {
        let Self {
            mut bytes,
            descriptor,
        } = std::mem::take(self);
        let kind = Kind::of(bytes[HEAD - 1]).ok_or(Errno::PROTO)?;
        bytes.drain(..HEAD);
        Ok(Incoming::Piece(kind, bytes, descriptor))
    }
}

impl Wire {
    /// Makes both ends: ours, and the descriptor of the other.
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

    /// Sends a piece, with a descriptor, as far as there is room; after [`Sent::Full`] the caller passes the
    /// same piece again.
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

    /// Receives a piece, if all of it is there; drops an incomplete one at the end.
    pub(in crate::link) fn receive(&self) -> Result<Incoming> {
        let mut reading = lock(&self.reading);
        loop {
            let missing = reading.missing()?;
            if missing == 0 {
                return reading.take();
            }
            match self.read(&mut reading, missing) {
                Ok(0) => return Ok(Incoming::End),
                // The other end closed with unread pieces; what it sent before can still be read.
                Ok(_) | Err(Errno::INTR | Errno::CONNRESET) => {}
                Err(Errno::AGAIN) => return Ok(Incoming::Nothing),
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads at most `missing` bytes; returns the number, 0 at the end.
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

    /// Sleeps for `time`; returns true if the other end is closed then. An end that has only finished is not
    /// closed.
    ///
    /// Polls for writing: for a reader, macOS reports an end that has finished and one that is closed alike.
    pub(in crate::link) fn is_closed_within(&self, time: Duration) -> Result<bool> {
        std::thread::sleep(time);
        let mut polled = [PollFd::new(&self.end, PollFlags::OUT)];
        sleep_for_any(&mut polled, Duration::ZERO)?;
        let seen = polled[0].revents();
        Ok(seen.intersects(PollFlags::HUP | PollFlags::ERR))
    }
}

/// Sets the options that both processes rely on.
fn prepare(end: &OwnedFd) -> Result<()> {
    fcntl_setfd(end, FdFlags::CLOEXEC)?;
    ioctl_fionbio(end, true)?;
    #[cfg(target_os = "macos")]
    rustix::net::sockopt::set_socket_nosigpipe(end, true)?;
    // An error leaves smaller buffers: slower, but correct.
    let _ = set_socket_send_buffer_size(end, ROOM);
    let _ = set_socket_recv_buffer_size(end, ROOM);
    Ok(())
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}
