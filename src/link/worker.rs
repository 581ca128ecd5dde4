//! A worker's end of the link to its parent.
//!
//! Owns the worker's arenas, and passes each new one's descriptor to the parent at once, so that it need not
//! be kept. Refuses to do anything in processes that the worker forks: what they inherit is the worker's.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, getppid, kill_process};

use super::failed;
use super::message::encode;
use super::socket::Socket;
use super::wire::{Incoming, Kind, Sent, Wire};
use crate::error::Result;
use crate::fork::Uninherited;
use crate::memory::{Arena, ArenaSlot, Arenas, Trimmed};
use crate::sync::{Mutex, lock};

/// Longest time between two checks for signals.
const SLICE: Duration = Duration::from_millis(100);

/// Time for which a slot stays idle before its pages are freed.
const IDLE: Duration = Duration::from_secs(2);

/// Larger payloads, in bytes, go through an arena, so that a send seldom has to wait for room.
const LARGE: usize = 16 << 10;

/// The result of [`Worker::receive`].
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    /// A message.
    Message(Vec<u8>),
    /// No message came in time.
    TimedOut,
    /// The parent has finished, or is gone.
    End,
}

/// A worker's end of the link.
#[derive(Debug)]
pub struct Worker(Uninherited<End>);

#[derive(Debug)]
struct End {
    socket: Socket,
    arenas: Mutex<Arenas>,
}

impl Worker {
    /// Takes the end that the parent opened.
    pub fn new(descriptor: OwnedFd) -> Self {
        Self(Uninherited::new(End {
            socket: Socket::new(descriptor),
            arenas: Mutex::new(Arenas::default()),
        }))
    }

    /// Waits up to `timeout` for a message; meanwhile calls `tick` at least every 100 ms, and frees idle
    /// memory.
    ///
    /// # Errors
    ///
    /// Errors of the socket and of `tick`; [`Error::Inherited`](crate::Error::Inherited) in a process that the worker forked.
    pub fn receive(
        &self,
        timeout: Duration,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Received> {
        let end = self.0.here()?;
        let deadline = Instant::now() + timeout;
        let mut message = Vec::new();
        let trimmed = lock(&end.arenas).trim_if_due(IDLE);
        end.announce_unmapped(&trimmed);
        loop {
            match end.socket.receive().map_err(|e| failed("hear from", e))? {
                Incoming::Piece(Kind::More, piece, _) => message.extend(piece),
                Incoming::Piece(_, piece, _) => {
                    message.extend(piece);
                    return Ok(Received::Message(message));
                }
                Incoming::End => return Ok(Received::End),
                Incoming::Nothing => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() && message.is_empty() {
                        return Ok(Received::TimedOut);
                    }
                    tick()?;
                    end.trim(IDLE);
                    let time = if message.is_empty() {
                        left.min(SLICE)
                    } else {
                        SLICE
                    };
                    let wait = end.socket.wait(time);
                    wait.map_err(|e| failed("hear from", e))?;
                }
            }
        }
    }

    /// Returns true if the parent has finished, so that it will read nothing more.
    pub fn is_over(&self) -> bool {
        // A process forked by the worker must not read ahead: what came is for the worker.
        let end = self.0.get();
        end.is_some_and(|end| end.socket.is_finished().unwrap_or(false))
    }

    /// Takes a slot for `bytes` bytes; None in a process that the worker forked.
    pub fn take(
        &self,
        bytes: usize,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<ArenaSlot>> {
        let taken = self.0.get().map(|end| end.take(bytes, tick));
        taken.transpose()
    }

    /// Adds a share for bytes that lie in a slot of which the caller has a share.
    pub fn share(&self, address: usize, len: usize) -> Option<ArenaSlot> {
        lock(&self.0.get()?.arenas).share(address, len)
    }

    /// Sends a message, and hands the shares of its parts over. If the parent has finished, they are lost.
    pub fn send(
        &self,
        mut parts: Vec<ArenaSlot>,
        mut payload: &[u8],
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let end = self.0.here()?;
        let mut last = false;
        if payload.len() > LARGE {
            let mut slot = end.take(payload.len(), tick)?;
            slot.write(payload);
            parts.push(slot);
            (payload, last) = (&[], true);
        }
        end.socket.push_message(&encode(&parts, payload, last));
        // The message is queued: it will be sent, if not now.
        parts.into_iter().for_each(ArenaSlot::hand_over);
        end.flush(tick)
    }

    /// Frees memory that has been idle for `idle`; returns its bytes.
    pub fn trim(&self, idle: Duration) -> usize {
        self.0.get().map_or(0, |end| end.trim(idle))
    }
}

impl End {
    fn take(&self, bytes: usize, tick: &mut dyn FnMut() -> Result<()>) -> Result<ArenaSlot> {
        let (slot, fresh) = lock(&self.arenas).take(bytes)?;
        if let Some((arena, descriptor)) = fresh {
            let description = describe(&arena);
            self.socket
                .push(Kind::Arena, &description, Some(descriptor));
            self.flush(tick)?;
        }
        Ok(slot)
    }

    fn trim(&self, idle: Duration) -> usize {
        let trimmed = lock(&self.arenas).trim(idle);
        self.announce_unmapped(&trimmed);
        trimmed.bytes
    }

    /// Queues the news of arenas that are unmapped here.
    fn announce_unmapped(&self, trimmed: &Trimmed) {
        for number in &trimmed.unmapped {
            self.socket
                .push(Kind::Unmapped, &number.to_le_bytes(), None);
        }
    }

    /// Sends what is queued, waiting for room, unless the parent has finished.
    fn flush(&self, tick: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        loop {
            let sent = self.socket.flush().map_err(|e| failed("talk to", e))?;
            if sent != Sent::Full {
                return Ok(());
            }
            tick()?;
            let wait = self.socket.wait_for_room(SLICE);
            if !wait.map_err(|e| failed("talk to", e))? {
                return Ok(());
            }
        }
    }
}

impl AsFd for Worker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.even_if_inherited().socket.as_fd()
    }
}

/// Returns the bytes that describe an arena: its number, its slots, and the bytes of each.
fn describe(arena: &Arena) -> Vec<u8> {
    let mut bytes = arena.number().to_le_bytes().to_vec();
    bytes.extend((arena.slots() as u32).to_le_bytes());
    bytes.extend((arena.slot_bytes() as u64).to_le_bytes());
    bytes
}

/// Longest time between two checks.
const WATCH_SLICE: Duration = Duration::from_millis(400);

/// Starts the thread, with a copy of the worker's `end`.
pub fn watch(end: BorrowedFd<'_>) -> Result<()> {
    let end = end
        .try_clone_to_owned()
        .map_err(|e| failed("watch over", e))?;
    let wire = Wire::new(end);
    let parent = getppid();
    let thread = thread::Builder::new().name("fastload-watch".to_owned());
    let watching = move || {
        loop {
            // A parent that has only finished lets its workers end by themselves, and an error is no reason
            // to kill one.
            let is_closed = wire.is_closed_within(WATCH_SLICE).unwrap_or(false);
            if is_closed || getppid() != parent {
                let _ = kill_process(getpid(), Signal::KILL);
                return;
            }
        }
    };
    thread
        .spawn(watching)
        .map_err(|e| failed("watch over", e))?;
    Ok(())
}
