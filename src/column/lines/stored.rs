//! The index of a file's lines, kept in a file of its own.
//!
//! Little-endian 64-bit numbers after the magic: size and time of the file that it is of, how many lines,
//! how many pieces, their numbers; then the CRC-32 of all before. What is not exactly so, or is of another
//! size or time, is no index: it is made anew.

use std::fs;
use std::path::Path;

use super::{PIECE, Stamp, Starts};
use crate::error::{Error, Result};
use crate::whole_file;

/// The format's name, its version, and the size of pieces.
const MAGIC: &[u8; 16] = b"fastload lines\x01\x14";
/// Bytes before the numbers.
const HEAD: usize = 16 + 4 * 8;

const _: () = assert!(PIECE == 1 << MAGIC[15], "the magic has the size of pieces");

/// Reads the index of a file that is as `stamp` says; None if there is none of it.
pub(super) fn read(path: &Path, stamp: Stamp) -> Option<Starts> {
    let bytes = fs::read(path).ok()?;
    let (bytes, sum) = bytes.split_last_chunk()?;
    if crc32fast::hash(bytes) != u32::from_le_bytes(*sum) || !bytes.starts_with(MAGIC) {
        return None;
    }
    let (words, []) = bytes[MAGIC.len()..].as_chunks() else {
        return None;
    };
    let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
    let [len, time, lines, pieces] = [words.next()?, words.next()?, words.next()?, words.next()?];
    let is_of_it = (len, Some(time)) == (stamp.len(), stamp.nanoseconds());
    let expected = lines.checked_add(pieces)?;
    if !is_of_it || expected != words.len() as u64 || pieces != len.div_ceil(PIECE) {
        return None;
    }
    let starts = Starts {
        lines: words.by_ref().take(lines as usize).collect(),
        before: words.collect(),
    };
    let rises = starts.lines.is_sorted_by(|a, b| a < b) && starts.before.is_sorted();
    let fits = starts.lines.last().is_none_or(|&last| last < len);
    (rises && fits).then_some(starts)
}

/// Writes the index of a file that was as `stamp` says.
pub(super) fn write(path: &Path, stamp: Stamp, starts: &Starts) -> Result<()> {
    let Some(time) = stamp.nanoseconds() else {
        return Ok(()); // a file system without times: nothing would tell a stale index
    };
    let Starts { lines, before } = starts;
    let head = [stamp.len(), time, lines.len() as u64, before.len() as u64];
    let mut bytes = Vec::with_capacity(HEAD + 8 * (lines.len() + before.len()) + 4);
    bytes.extend_from_slice(MAGIC);
    for word in head.iter().chain(lines).chain(before) {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
    whole_file::write(path, &bytes).map_err(|source| Error::read(path, source))
}
