//! A worker's end of the link to its parent.
//!
//! Owns the worker's arenas, and introduces each new one to the parent at once, so that no descriptor is
//! kept. Refuses to do anything in processes that the worker forks: what they inherited is the worker's.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use super::failed;
use super::letter::encode;
use super::socket::Socket;
use super::wire::{Came, Kind, Sent};
use crate::error::{Error, Result};
use crate::fork::Uninherited;
use crate::memory::{Arena, ArenaSlot, Arenas, Trimmed};
use crate::sync::{Mutex, lock};

/// Longest time between two looks for signals.
const SLICE: Duration = Duration::from_millis(100);

/// How long a slot is idle before its pages are given back.
const IDLE: Duration = Duration::from_secs(2);

/// Payloads of more bytes lie in an arena, so that sending seldom has to wait for room.
const LARGE: usize = 16 << 10;

/// What a worker hears.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// A message.
    Message(Vec<u8>),
    /// Nothing, for the time given.
    Nothing,
    /// The parent has finished, or is gone.
    End,
}

/// A worker's end.
#[derive(Debug)]
pub struct Worker(Uninherited<End>);

#[derive(Debug)]
struct End {
    socket: Socket,
    arenas: Mutex<Arenas>,
}

impl Worker {
    /// Takes the end over that the parent has made.
    pub fn new(descriptor: OwnedFd) -> Self {
        Self(Uninherited::new(End {
            socket: Socket::new(descriptor),
            arenas: Mutex::new(Arenas::default()),
        }))
    }

    fn end(&self) -> Result<&End> {
        self.0.get().ok_or(Error::Inherited)
    }

    /// Waits for a message; calls `tick` now and then, and gives back memory that is idle.
    ///
    /// # Errors
    ///
    /// The socket's, what `tick` returns; [`Error::Inherited`] in a process that the worker has forked.
    pub fn receive(
        &self,
        timeout: Duration,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Heard> {
        self.end()?.receive(timeout, tick)
    }

    /// Tells whether the parent has finished: nobody wants what is made now.
    pub fn is_over(&self) -> bool {
        // what came is for the worker, not for who was forked by it
        let end = self.0.get();
        end.is_some_and(|end| end.socket.is_finished().unwrap_or(false))
    }

    /// Takes a slot for `bytes` bytes; None in a process that the worker has forked.
    ///
    /// # Errors
    ///
    /// There is no memory; the socket's; what `tick` returns.
    pub fn take(
        &self,
        bytes: usize,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<ArenaSlot>> {
        let taken = self.0.get().map(|end| end.take(bytes, tick));
        taken.transpose()
    }

    /// Finds the place of bytes that lie in a slot of which the caller has a share.
    pub fn share(&self, address: usize, len: usize) -> Option<ArenaSlot> {
        lock(&self.0.get()?.arenas).share(address, len)
    }

    /// Sends a letter, and with it the shares of its parts. If the parent has finished, nobody has them.
    ///
    /// # Errors
    ///
    /// As [`Worker::receive`].
    pub fn send(
        &self,
        mut parts: Vec<ArenaSlot>,
        mut payload: &[u8],
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let end = self.end()?;
        let mut last = false;
        if payload.len() > LARGE {
            let mut slot = end.take(payload.len(), tick)?;
            slot.write(payload);
            parts.push(slot);
            (payload, last) = (&[], true);
        }
        end.socket.push_message(&encode(&parts, payload, last));
        // it will be sent from now on, if not now
        parts.into_iter().for_each(ArenaSlot::hand_over);
        end.flush(tick)
    }

    /// Gives memory that has been free for so long back to the system; returns its bytes.
    pub fn trim(&self, idle: Duration) -> usize {
        self.0.get().map_or(0, |end| end.trim(idle))
    }
}

impl End {
    fn receive(&self, timeout: Duration, tick: &mut dyn FnMut() -> Result<()>) -> Result<Heard> {
        let end = Instant::now() + timeout;
        let mut message = Vec::new();
        let trimmed = lock(&self.arenas).tidy(IDLE);
        self.tell(&trimmed);
        loop {
            match self.socket.receive().map_err(|e| failed("hear from", e))? {
                Came::Piece(Kind::More, piece, _) => message.extend(piece),
                Came::Piece(_, piece, _) => {
                    message.extend(piece);
                    return Ok(Heard::Message(message));
                }
                Came::End => return Ok(Heard::End),
                Came::Nothing => {
                    let left = end.saturating_duration_since(Instant::now());
                    if left.is_zero() && message.is_empty() {
                        return Ok(Heard::Nothing);
                    }
                    tick()?;
                    self.trim(IDLE);
                    let time = if message.is_empty() {
                        left.min(SLICE)
                    } else {
                        SLICE
                    };
                    let wait = self.socket.wait(time);
                    wait.map_err(|e| failed("hear from", e))?;
                }
            }
        }
    }

    fn take(&self, bytes: usize, tick: &mut dyn FnMut() -> Result<()>) -> Result<ArenaSlot> {
        let (slot, fresh) = lock(&self.arenas).take(bytes)?;
        if let Some((arena, descriptor)) = fresh {
            let words = introduction(&arena);
            self.socket.push(Kind::Arena, &words, Some(descriptor));
            self.flush(tick)?;
        }
        Ok(slot)
    }

    fn trim(&self, idle: Duration) -> usize {
        let trimmed = lock(&self.arenas).trim(idle);
        self.tell(&trimmed);
        trimmed.bytes
    }

    /// Has the parent let go of arenas that are gone here.
    fn tell(&self, trimmed: &Trimmed) {
        for number in &trimmed.gone {
            self.socket.push(Kind::Gone, &number.to_le_bytes(), None);
        }
    }

    /// Sends what waits as soon as there is room, unless the parent will not read it.
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
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.even_if_inherited().socket.as_fd()
    }
}

/// Returns the bytes that describe an arena: its number, its slots, and the bytes of each.
fn introduction(arena: &Arena) -> Vec<u8> {
    let mut bytes = arena.number().to_le_bytes().to_vec();
    bytes.extend((arena.slots() as u32).to_le_bytes());
    bytes.extend((arena.slot_bytes() as u64).to_le_bytes());
    bytes
}
