//! Zip: indexes an archive by its central directory (PKWARE's APPNOTE 6.3, including zip64).
//!
//! Reads the files that Python's `zipfile` and torch write. Refuses files that readers interpret differently:
//! bytes before the first member or after the end, overlapping members, duplicate names, several disks,
//! encryption. Invariant: a member's bytes lie in the file, before the directory, and its uncompressed size is
//! one that deflate can reach.
//!
//! Not a library, because rawzip 0.5 neither checks nor returns the directory's size and the version that an entry
//! needs: it reads files that `zipfile` refuses.

use std::ops::Range;

use crate::column::Look;
use crate::error::{Error, Result};
use crate::memory::fallible::{expect_room, push};

/// Signature of a local header.
const LOCAL: &[u8] = b"PK\x03\x04";
const ENTRY: &[u8] = b"PK\x01\x02";
const END: &[u8] = b"PK\x05\x06";
const WIDE_LOCATOR: &[u8] = b"PK\x06\x07";
const WIDE_END: &[u8] = b"PK\x06\x06";
/// Bytes of each record, without names.
const LOCAL_BYTES: u64 = 30;
const ENTRY_BYTES: usize = 46;
const END_BYTES: usize = 22;
const WIDE_LOCATOR_BYTES: usize = 20;
const WIDE_END_BYTES: usize = 56;
/// Flags: encrypted, patched, strongly encrypted, masked.
const REFUSED_FLAGS: u64 = 1 | 1 << 5 | 1 << 6 | 1 << 13;
/// Flag: names are UTF-8.
const UTF8_FLAG: u64 = 1 << 11;
/// The newest version of the format, in tenths, that `zipfile` reads.
const NEWEST: u64 = 63;
/// Extra fields: 64-bit sizes; Unicode name.
const WIDE_FIELD: u64 = 1;
const NAME_FIELD: u64 = 0x7075;
/// External attribute, in the lowest byte: an MS-DOS folder.
const FOLDER: u64 = 1 << 4;
const STORED: u64 = 0;
const DEFLATED: u64 = 8;

/// Maximum expansion of a byte by deflate: 258 bytes per two bits.
pub const EXPANSION: u64 = 1032;

/// Maximum bytes of memory per byte of the directory: names, and maps of them.
const READERS_EXPANSION: usize = 8;

/// The location of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Offset of its bytes in the file.
    pub start: u64,
    /// Number of its bytes in the file.
    pub len: u64,
    /// Uncompressed size.
    pub size: u64,
    /// CRC-32 of the uncompressed bytes.
    pub crc: u32,
    /// True for a deflate stream, false for stored contents.
    pub deflated: bool,
}

impl Member {
    /// Returns the range of its bytes in the file.
    pub fn range(&self) -> Range<u64> {
        self.start..self.start + self.len
    }
}

/// An entry of the directory.
#[derive(Debug)]
struct Entry {
    /// Range of its name in the directory.
    name: Range<usize>,
    /// Offset of its local header.
    offset: u64,
    /// Offset of what follows it in the file.
    limit: u64,
    method: u64,
    folder: bool,
    crc: u32,
    len: u64,
    size: u64,
}

/// The index of one archive.
#[derive(Debug)]
pub struct Directory {
    bytes: Vec<u8>,
    /// Entries by name.
    entries: Vec<Entry>,
    first: Range<usize>,
}

impl Directory {
    /// Reads the directory.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`]: not a zip file, or one that readers interpret differently.
    pub fn read(look: &mut Look<'_>) -> Result<Directory> {
        if look.read(0..LOCAL.len() as u64)? != LOCAL {
            return Err(Error::decode(
                "it is not a zip file with members: its first bytes differ",
            ));
        }
        let (range, count) = locate(look)?;
        let bytes = look.read(range.clone())?;
        expect_room(bytes.len().saturating_mul(READERS_EXPANSION))?;
        let mut entries = Vec::new(); // `count` is only a claim
        let mut at = 0;
        while at < bytes.len() {
            let entry = entry(&bytes, at, range.start)?;
            at = entry.1;
            push(&mut entries, entry.0)?;
        }
        if entries.len() as u64 != count {
            return Err(damaged(
                "the number of its entries differs from the one it stores",
            ));
        }
        let Some(first) = entries.first().map(|entry: &Entry| entry.name.clone()) else {
            return Err(damaged("it is empty"));
        };
        entries.sort_unstable_by_key(|entry| entry.offset);
        let mut limit = range.start;
        for entry in entries.iter_mut().rev() {
            entry.limit = limit;
            limit = entry.offset;
        }
        entries.sort_by(|a, b| bytes[a.name.clone()].cmp(&bytes[b.name.clone()]));
        if entries
            .windows(2)
            .any(|pair| bytes[pair[0].name.clone()] == bytes[pair[1].name.clone()])
        {
            return Err(damaged("a name occurs twice"));
        }
        Ok(Directory {
            bytes,
            entries,
            first,
        })
    }

    /// Returns the names of the members, sorted.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.entries
            .iter()
            .map(|entry| &self.bytes[entry.name.clone()])
    }

    /// Returns the first name in the directory.
    pub fn first(&self) -> &[u8] {
        &self.bytes[self.first.clone()]
    }

    /// Finds a member and reads its local header; None if there is no such member.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`]: the local header contradicts the directory, or the compression is not deflate.
    pub fn member(&self, look: &mut Look<'_>, name: &str) -> Result<Option<Member>> {
        let found = self
            .entries
            .binary_search_by(|entry| self.bytes[entry.name.clone()].cmp(name.as_bytes()));
        let Ok(found) = found else {
            return Ok(None);
        };
        let entry = &self.entries[found];
        let refused = |what: &str| Error::decode(format!("its member {name:?} {what}"));
        if entry.folder {
            return Err(refused("is a folder"));
        }
        let deflated = match entry.method {
            STORED => false,
            DEFLATED => true,
            other => {
                return Err(refused(&format!(
                    "is compressed by method {other}; supported are 0 (stored) and 8 (deflate)"
                )));
            }
        };
        let end = entry.offset + LOCAL_BYTES + name.len() as u64;
        let header = look.read(entry.offset..end)?;
        if !header.starts_with(LOCAL)
            || header.get(LOCAL_BYTES as usize..) != Some(name.as_bytes())
            || field::<2>(&header, 26) != Some(name.len() as u64)
        {
            return Err(refused("is not at the offset in the zip directory"));
        }
        let start = end + field::<2>(&header, 28).unwrap_or(0);
        if start + entry.len > entry.limit {
            return Err(refused("overlaps with what follows it"));
        }
        Ok(Some(Member {
            start,
            len: entry.len,
            size: entry.size,
            crc: entry.crc,
            deflated,
        }))
    }
}

/// Finds the directory; returns its range and the number of its entries.
fn locate(look: &mut Look<'_>) -> Result<(Range<u64>, u64)> {
    const LONGEST: usize = WIDE_END_BYTES + WIDE_LOCATOR_BYTES + END_BYTES;
    let len = look.len();
    let tail = look.read(len.saturating_sub(LONGEST as u64)..len)?;
    let no_end = || {
        Error::decode(
            "no zip directory is at its end: it is cut off, or bytes follow the directory",
        )
    };
    let at = tail.len().checked_sub(END_BYTES).ok_or_else(no_end)?;
    let (before, end) = tail.split_at(at);
    if !end.starts_with(END) || end[END_BYTES - 2..] != [0, 0] {
        return Err(no_end());
    }
    let mut disks = (field::<2>(end, 4), field::<2>(end, 6));
    let mut counts = (field::<2>(end, 8), field::<2>(end, 10));
    let (mut size, mut start) = (field::<4>(end, 12), field::<4>(end, 16));
    let mut behind = len - END_BYTES as u64;
    let locator = before.len().checked_sub(WIDE_LOCATOR_BYTES);
    if let Some(locator) = locator.filter(|&at| before[at..].starts_with(WIDE_LOCATOR)) {
        let (wide, locator) = before.split_at(locator);
        behind = len - LONGEST.min(tail.len()) as u64;
        let is_placed = wide.len() == WIDE_END_BYTES
            && wide.starts_with(WIDE_END)
            && field::<8>(wide, 4) == Some(WIDE_END_BYTES as u64 - 12)
            && field::<4>(locator, 4) == Some(0)
            && field::<8>(locator, 8) == Some(behind)
            && field::<4>(locator, 16) == Some(1);
        let agrees = |narrow: &mut Option<u64>, ones: u64, value: Option<u64>| {
            let old = std::mem::replace(narrow, value);
            old == Some(ones) || old == value
        };
        let (short, long) = (u64::from(u16::MAX), u64::from(u32::MAX));
        if !is_placed
            || !agrees(&mut disks.0, short, field::<4>(wide, 16))
            || !agrees(&mut disks.1, short, field::<4>(wide, 20))
            || !agrees(&mut counts.0, short, field::<8>(wide, 24))
            || !agrees(&mut counts.1, short, field::<8>(wide, 32))
            || !agrees(&mut size, long, field::<8>(wide, 40))
            || !agrees(&mut start, long, field::<8>(wide, 48))
        {
            return Err(damaged(
                "the zip64 end-of-central-directory record does not match",
            ));
        }
    }
    if disks != (Some(0), Some(0)) || counts.0 != counts.1 {
        return Err(damaged("it is split over several files"));
    }
    match (start, size, counts.1) {
        (Some(start), Some(size), Some(count)) if start.checked_add(size) == Some(behind) => {
            Ok((start..behind, count))
        }
        _ => Err(damaged("it is not at the offset in its end record")),
    }
}

/// Reads the entry at `at` of a directory at offset `start` of the file; also returns the offset of the next.
fn entry(bytes: &[u8], at: usize, start: u64) -> Result<(Entry, usize)> {
    let cut = || damaged("an entry is cut off");
    let head = bytes.get(at..at + ENTRY_BYTES).ok_or_else(cut)?;
    let get = |value: Option<u64>| value.ok_or_else(cut);
    if !head.starts_with(ENTRY) {
        return Err(damaged("an entry has the wrong signature"));
    }
    let [name_len, extra_len, comment_len] =
        [28, 30, 32].map(|at| field::<2>(head, at).unwrap_or(0) as usize);
    let name = at + ENTRY_BYTES..at + ENTRY_BYTES + name_len;
    let extra = name.end..name.end + extra_len;
    let next = extra.end + comment_len;
    if next > bytes.len() {
        return Err(cut());
    }
    let flags = get(field::<2>(head, 8))?;
    let mut wide = Wide {
        size: get(field::<4>(head, 24))?,
        len: get(field::<4>(head, 20))?,
        offset: get(field::<4>(head, 42))?,
    };
    wide.read(&bytes[extra])?;
    let Wide { size, len, offset } = wide;
    let method = get(field::<2>(head, 10))?;
    let entry = Entry {
        name,
        offset,
        limit: start,
        method,
        folder: get(field::<1>(head, 38))? & FOLDER != 0,
        crc: get(field::<4>(head, 16))? as u32,
        len,
        size,
    };
    let name = &bytes[entry.name.clone()];
    if get(field::<1>(head, 6))? > NEWEST {
        return Err(damaged("an entry needs an unknown version of the format"));
    }
    if flags & REFUSED_FLAGS != 0 {
        return Err(Error::decode("a member is encrypted or patched"));
    }
    if name.contains(&0) || (flags & UTF8_FLAG != 0 && std::str::from_utf8(name).is_err()) {
        return Err(damaged("a name is not text"));
    }
    let is_possible = match method {
        STORED => len == size,
        DEFLATED => size <= len.saturating_mul(EXPANSION),
        _ => len > 0 || size == 0,
    };
    let behind = offset
        .checked_add(LOCAL_BYTES + name.len() as u64)
        .and_then(|data| data.checked_add(len));
    let is_inside = behind.is_some_and(|behind| behind <= start);
    if !is_possible || !is_inside || field::<2>(head, 34) != Some(0) {
        return Err(damaged("an entry announces more than the file can hold"));
    }
    Ok((entry, next))
}

/// The fields of an entry that have 32 bits, or 64 in an extra field.
struct Wide {
    size: u64,
    len: u64,
    offset: u64,
}

impl Wide {
    /// Reads the fields that are all ones from the zip64 extra field.
    fn read(&mut self, mut extra: &[u8]) -> Result<()> {
        let broken = || damaged("an extra field is cut off");
        while let (Some(kind), Some(len)) = (field::<2>(extra, 0), field::<2>(extra, 2)) {
            let mut rest = extra.get(4..4 + len as usize).ok_or_else(broken)?;
            extra = &extra[4 + len as usize..];
            if kind == NAME_FIELD {
                return Err(damaged("a member has two names"));
            }
            if kind != WIDE_FIELD {
                continue;
            }
            for value in [&mut self.size, &mut self.len, &mut self.offset] {
                if *value == u64::from(u32::MAX) {
                    *value = field::<8>(rest, 0).ok_or_else(broken)?;
                    rest = &rest[8..];
                }
            }
        }
        Ok(())
    }
}

/// Returns the little-endian number of `N` bytes at `at`.
fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let number = bytes.get(at..)?.first_chunk::<N>()?;
    let mut wide = [0; 8];
    wide[..N].copy_from_slice(number);
    Some(u64::from_le_bytes(wide))
}

fn damaged(what: &str) -> Error {
    Error::decode(format!("its zip directory is damaged: {what}"))
}
