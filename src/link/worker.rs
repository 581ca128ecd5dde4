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
use crate::error::Result;
use crate::fork;
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
pub struct Worker {
    socket: Socket,
    arenas: Mutex<Arenas>,
    birth: u64,
}

impl Worker {
    /// Takes the end over that the parent has made.
    pub fn new(descriptor: OwnedFd) -> Self {
        Self {
            socket: Socket::new(descriptor),
            arenas: Mutex::new(Arenas::default()),
            birth: fork::generation(),
        }
    }

    /// Waits for a message; calls `tick` now and then, and gives back memory that is idle.
    pub fn receive(
        &self,
        timeout: Duration,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Heard> {
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

    /// Tells whether the parent has finished: nobody wants what is made now.
    pub fn is_over(&self) -> bool {
        // what came is for the worker, not for who was forked by it
        !fork::inherited(self.birth) && self.socket.is_finished().unwrap_or(false)
    }

    /// Takes a slot for `bytes` bytes; None in a process that the worker has forked.
    pub fn take(
        &self,
        bytes: usize,
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<ArenaSlot>> {
        if fork::inherited(self.birth) {
            return Ok(None);
        }
        let (slot, fresh) = lock(&self.arenas).take(bytes)?;
        if let Some((arena, descriptor)) = fresh {
            let words = introduction(&arena);
            self.socket.push(Kind::Arena, &words, Some(descriptor));
            self.flush(tick)?;
        }
        Ok(Some(slot))
    }

    /// Finds the place of bytes that lie in a slot of which the caller has a share.
    pub fn share(&self, address: usize, len: usize) -> Option<ArenaSlot> {
        if fork::inherited(self.birth) {
            return None;
        }
        lock(&self.arenas).share(address, len)
    }

    /// Sends a letter, and with it the shares of its parts. If the parent has finished, nobody has them.
    pub fn send(
        &self,
        mut parts: Vec<ArenaSlot>,
        mut payload: &[u8],
        tick: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let mut last = false;
        if payload.len() > LARGE
            && let Some(mut slot) = self.take(payload.len(), tick)?
        {
            slot.write(payload);
            parts.push(slot);
            (payload, last) = (&[], true);
        }
        self.socket.push_message(&encode(&parts, payload, last));
        // it will be sent from now on, if not now
        parts.into_iter().for_each(ArenaSlot::hand_over);
        self.flush(tick)
    }

    /// Gives memory that has been free for so long back to the system; returns its bytes.
    pub fn trim(&self, idle: Duration) -> usize {
        if fork::inherited(self.birth) {
            return 0;
        }
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
        self.socket.as_fd()
    }
}

/// Returns the bytes that describe an arena: its number, its slots, and the bytes of each.
fn introduction(arena: &Arena) -> Vec<u8> {
    let mut bytes = arena.number().to_le_bytes().to_vec();
    bytes.extend((arena.slots() as u32).to_le_bytes());
    bytes.extend((arena.slot_bytes() as u64).to_le_bytes());
    bytes
}
