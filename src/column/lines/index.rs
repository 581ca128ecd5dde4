//! The index of a file's lines: made from its pieces, and stored in a file of its own.
//!
//! A line starts with its first byte that is not a space, which may be in a later piece than the end of the
//! line before: a piece records how it begins and ends, and [`join`] reads the pieces in order.
//!
//! A stored index is the magic, then little-endian 64-bit numbers: size and time of the indexed file, number of lines,
//! number of pieces, and both lists; then the CRC-32 of everything before. An index that does not match exactly, or
//! has another size or time, is made anew.

use std::fs;
use std::ops::Range;
use std::path::Path;

use super::{MARK, PIECE, Starts};
use crate::column::{Files, Stamp};
use crate::error::{Error, Result};
use crate::memory::fallible::{push, reserve, zeroed};
use crate::whole_file;

/// Name of the format, its version, and the size of pieces.
const MAGIC: &[u8; 16] = b"fastload lines\x01\x14";
/// Bytes before the numbers.
const HEAD: usize = 16 + 4 * 8;

const _: () = assert!(PIECE == 1 << MAGIC[15], "the magic has the size of pieces");

/// The line starts in one piece.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    /// The first byte that is not a space, before any `\n`: it may belong to a line that began earlier.
    head: Option<u64>,
    /// The starts of the lines after the first `\n`.
    lines: Vec<u64>,
    /// Number of `\n`.
    ends: u64,
    /// True if only space follows the last `\n`.
    open: bool,
}

impl Piece {
    /// Reads the bytes of `part` of a file.
    pub(super) fn read(files: &Files, file: usize, part: Range<u64>) -> Result<Piece> {
        let looked = zeroed((part.end - part.start) as usize).and_then(|mut bytes| {
            files.read(file, part.start, &mut bytes)?;
            Piece::of(&bytes, part.start)
        });
        looked.map_err(|error| error.of_file(files.path(file)))
    }

    /// Scans bytes that begin at `start` in their file.
    fn of(bytes: &[u8], start: u64) -> Result<Piece> {
        let is_marked = start == 0 && bytes.starts_with(MARK);
        let skipped = if is_marked { MARK.len() } else { 0 };
        let mut piece = Piece::default();
        let (mut from, mut first) = (skipped, true);
        for end in memchr::memchr_iter(b'\n', bytes).chain([bytes.len()]) {
            let found = bytes[from..end].iter().position(|&byte| !is_space(byte));
            let line = found.map(|at| start + (from + at) as u64);
            if first {
                piece.head = line;
            } else if let Some(line) = line {
                push(&mut piece.lines, line)?;
            }
            if end == bytes.len() {
                piece.open = line.is_none();
            } else {
                piece.ends += 1;
            }
            (from, first) = (end + 1, false);
        }
        Ok(piece)
    }
}

/// Joins the pieces of one file.
pub(super) fn join(pieces: Vec<Piece>) -> Result<Starts> {
    let mut starts = Starts::default();
    let (mut ends, mut open) = (0, true);
    let most = pieces.iter().map(|piece| piece.lines.len() + 1).sum();
    reserve(&mut starts.lines, most)?;
    for piece in pieces {
        starts.before.push(ends);
        if open {
            starts.lines.extend(piece.head);
        }
        starts.lines.extend(piece.lines);
        open = if piece.ends > 0 {
            piece.open
        } else {
            open && piece.head.is_none()
        };
        ends += piece.ends;
    }
    starts.lines.shrink_to_fit();
    Ok(starts)
}

/// Returns true for the space around JSON; `\n` ends lines.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn starts(bytes: &[u8], size: usize) -> Starts {
        let pieces = bytes.chunks(size).enumerate();
        let pieces = pieces.map(|(at, part)| Piece::of(part, (at * size) as u64));
        join(pieces.collect::<Result<_>>().unwrap()).unwrap()
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_have_the_lines_of_the_whole(
            bytes in proptest::collection::vec(proptest::sample::select(&b"\n\n \r\tab"[..]), 0..60),
            size in 1_usize..20,
        ) {
            let mut want = Vec::new();
            let mut from = 0;
            for line in bytes.split(|&byte| byte == b'\n') {
                let found = line.iter().position(|&byte| !is_space(byte));
                want.extend(found.map(|at| (from + at) as u64));
                from += line.len() + 1;
            }
            let found = starts(&bytes, size);
            prop_assert_eq!(&found.lines, &want);
            for (at, &before) in found.before.iter().enumerate() {
                let ends = bytes[..at * size].iter().filter(|&&byte| byte == b'\n');
                prop_assert_eq!(before, ends.count() as u64);
            }
        }
    }
}
