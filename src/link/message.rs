//! A message of a worker: a payload, and parts that lie in arenas.
//!
//! Owns the encoding: whether the payload is the last part; the number of parts; of each its arena, slot,
//! offset and length; then the payload, unless it is a part. All numbers are little-endian. Checks before
//! use: each part lies within an existing slot.

use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result};

use crate::memory::{Arena, ArenaSlot, Owner};
use crate::sync::Arc;

/// Bytes of a part's description.
const PART: usize = 4 + 4 + 8 + 8;

/// A received message.
#[derive(Debug)]
pub struct Message {
    /// Its bytes.
    pub payload: Payload,
    /// The memory that it refers to, in order.
    pub parts: Vec<ArenaSlot>,
}

/// The bytes of a message.
#[derive(Debug)]
pub enum Payload {
    /// Sent with it.
    Inline(Vec<u8>),
    /// In an arena.
    InArena(ArenaSlot),
}

impl Payload {
    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Inline(bytes) => bytes,
            Self::InArena(slot) => slot.bytes(),
        }
    }
}

/// Returns a message's bytes. The caller then hands the shares of its parts over.
pub(super) fn encode(parts: &[ArenaSlot], payload: &[u8], payload_is_last: bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(5 + parts.len() * PART + payload.len());
    bytes.push(u8::from(payload_is_last));
    bytes.extend((parts.len() as u32).to_le_bytes());
    for part in parts {
        let (arena, slot, offset) = part.location();
        bytes.extend(arena.to_le_bytes());
        bytes.extend((slot as u32).to_le_bytes());
        bytes.extend((offset as u64).to_le_bytes());
        bytes.extend((part.len() as u64).to_le_bytes());
    }
    bytes.extend(payload);
    bytes
}

/// Decodes a message and adopts the shares of its parts.
pub(super) fn decode(mut bytes: Vec<u8>, arenas: &HashMap<u32, Arc<Arena>>) -> Result<Message> {
    let mut rest = bytes.as_slice();
    let [payload_is_last, count @ ..] = take::<5>(&mut rest)?;
    let count = u32::from_le_bytes(count) as usize;
    if rest.len() / PART < count {
        return Err(malformed());
    }
    let mut parts = Vec::with_capacity(count);
    for _ in 0..count {
        let arena = u32::from_le_bytes(take(&mut rest)?);
        let slot = u32::from_le_bytes(take(&mut rest)?) as usize;
        let offset = u64::from_le_bytes(take(&mut rest)?) as usize;
        let len = u64::from_le_bytes(take(&mut rest)?) as usize;
        let arena = Arc::clone(arenas.get(&arena).ok_or_else(malformed)?);
        parts.push(ArenaSlot::adopt(arena, slot, offset, len).ok_or_else(malformed)?);
    }
    let payload = if payload_is_last == 0 {
        bytes.drain(..bytes.len() - rest.len());
        Payload::Inline(bytes)
    } else {
        Payload::InArena(parts.pop().ok_or_else(malformed)?)
    };
    Ok(Message { payload, parts })
}

/// Takes the next `N` bytes.
pub(super) fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N]> {
    let (taken, left) = rest.split_first_chunk().ok_or_else(malformed)?;
    *rest = left;
    Ok(*taken)
}

pub(super) fn malformed() -> Error {
    Error::new(ErrorKind::InvalidData, "malformed message from a worker")
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;

    fn arenas() -> HashMap<u32, Arc<Arena>> {
        let (arena, _) = Arena::create(7, 4096, 2).expect("an arena");
        HashMap::from([(7, Arc::new(arena))])
    }

    #[test]
    fn messages_are_decoded_as_encoded() {
        let arenas = arenas();
        let take = |slot| ArenaSlot::take(&arenas[&7], slot, 10).unwrap();
        let parts = vec![take(0), take(1)];
        let inline = encode(&parts, b"words", false);
        let in_arena = encode(&parts, b"", true);
        parts.into_iter().for_each(ArenaSlot::hand_over);
        let message = decode(inline, &arenas).unwrap();
        assert_eq!(message.payload.bytes(), b"words");
        assert_eq!(message.parts[1].location(), (7, 1, 0));
        message.parts.into_iter().for_each(ArenaSlot::hand_over);
        let message = decode(in_arena, &arenas).unwrap();
        assert_eq!(
            (message.payload.bytes().len(), message.parts.len()),
            (10, 1)
        );
        drop(message);
        assert_eq!(arenas[&7].held(), 0);
    }

    #[test]
    fn malformed_messages_are_refused() {
        let arenas = arenas();
        let share = ArenaSlot::take(&arenas[&7], 0, 10).unwrap();
        let whole = encode(&[share], b"", false);
        for len in 0..whole.len() {
            assert!(decode(whole[..len].to_vec(), &arenas).is_err(), "{len}");
        }
        for (at, byte) in [(1, 2), (5, 8), (9, 2), (14, 16), (22, 16)] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            assert!(decode(bytes, &arenas).is_err(), "{at}");
        }
        assert!(decode(encode(&[], b"", true), &arenas).is_err());
    }
}
