//! The index of a file's lines, stored in a file of its own.
//!
//! The magic, then little-endian 64-bit numbers: size and time of the indexed file, number of lines, number
//! of pieces, and both lists; then the CRC-32 of everything before. An index that does not match exactly, or
//! has another size or time, is made anew.

use std::fs;
use std::path::Path;

use super::{PIECE, Stamp, Starts};
use crate::error::{Error, Result};
use crate::whole_file;

/// Name of the format, its version, and the size of pieces.
const MAGIC: &[u8; 16] = b"fastload lines\x01\x14";
/// Bytes before the numbers.
const HEAD: usize = 16 + 4 * 8;

const _: () = assert!(PIECE == 1 << MAGIC[15], "the magic has the size of pieces");

/// Reads the index of a file with this stamp; None if there is none.
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

/// Writes the index of a file with this stamp.
pub(super) fn write(path: &Path, stamp: Stamp, starts: &Starts) -> Result<()> {
    let Some(time) = stamp.nanoseconds() else {
        return Ok(()); // a file system without times: a stale index could not be detected
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
