//! What lies where in the memory of this process.
//!
//! Owns the reading of proc(5): `maps`, `status`, and `pagemap` (`admin-guide/mm/pagemap` of the kernel's
//! documentation). Refuses to change anything. What cannot be read is an error, never a guess.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::param::page_size;

/// In `pagemap`: the page is there, or swapped out; it belongs to a file, or to shared memory.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const OF_FILE: u64 = 1 << 61;

/// Addresses that are mapped alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) addresses: Range<usize>,
    /// As `rw-p`.
    permissions: String,
    /// Where in its file it begins.
    offset: u64,
    device: String,
    inode: u64,
    path: String,
}

/// What is mapped, by address.
#[derive(Debug)]
pub(super) struct Mappings(Vec<Mapping>);

impl Mappings {
    /// Reads what is mapped now.
    pub(super) fn read() -> Result<Self> {
        let text = std::fs::read_to_string("/proc/self/maps")?;
        let parsed: Option<Vec<_>> = text.lines().map(parse).collect();
        let malformed = || Error::new(ErrorKind::InvalidData, "a line of /proc/self/maps");
        parsed.map(Self).ok_or_else(malformed)
    }

    /// Returns the mappings that lie in a range, or None if some of it is not mapped.
    pub(super) fn of(&self, range: &Range<usize>) -> Option<&[Mapping]> {
        let first = self
            .0
            .partition_point(|map| map.addresses.end <= range.start);
        let len = self.0[first..].partition_point(|map| map.addresses.start < range.end);
        let found = &self.0[first..first + len];
        let mut end = range.start;
        for map in found {
            if map.addresses.start > end {
                return None;
            }
            end = map.addresses.end;
        }
        (end >= range.end).then_some(found)
    }

    /// Returns where the memory lies that grows and shrinks by brk(2); parts of it may be mapped otherwise.
    pub(super) fn heap(&self) -> Option<Range<usize>> {
        let mut parts = self.0.iter().filter(|map| map.is_heap());
        let first = parts.next()?;
        let last = parts.next_back().unwrap_or(first);
        Some(first.addresses.start..last.addresses.end)
    }
}

impl Mapping {
    /// Tells whether it is writable memory of this process alone, of no file.
    pub(super) fn is_anonymous(&self) -> bool {
        let named = self.path.is_empty() || self.path.starts_with("[anon");
        self.is_private() && self.inode == 0 && named
    }

    /// Tells whether it is memory of this process that grows and shrinks by brk(2).
    pub(super) fn is_heap(&self) -> bool {
        self.is_private() && self.inode == 0 && self.path == "[heap]"
    }

    /// Tells whether it is a private, writable mapping of what `memfd_create` made under a name.
    pub(super) fn is_memfd(&self, name: &str) -> bool {
        let path = self.path.strip_prefix("/memfd:");
        self.is_private() && path.is_some_and(|path| path == format!("{name} (deleted)"))
    }

    /// Tells whether it is a private mapping of a file, so that `address` has the byte at `at`.
    pub(super) fn is_of(&self, inode: u64, address: usize, at: u64) -> bool {
        // both begin before or after `address`, which may lie outside
        let begins = self.addresses.start as i128 - address as i128;
        self.is_private()
            && self.inode == inode
            && self.path.starts_with("/memfd:")
            && i128::from(self.offset) - i128::from(at) == begins
    }

    fn is_private(&self) -> bool {
        self.permissions == "rw-p"
    }
}

/// Reads a line: `start-end permissions offset device inode path`.
fn parse(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let hex = |digits: &str| usize::from_str_radix(digits, 16).ok();
    Some(Mapping {
        addresses: hex(start)?..hex(end)?,
        permissions: fields.next()?.to_owned(),
        offset: hex(fields.next()?)? as u64,
        device: fields.next()?.to_owned(),
        inode: fields.next()?.parse().ok()?,
        path: fields.next().unwrap_or_default().trim_start().to_owned(),
    })
}

/// Tells whether pages of this process are held where they are: locked, or pinned for a device.
pub(super) fn has_held_pages() -> Result<bool> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    Ok(kib("VmLck:") != Some(0) || kib("VmPin:") != Some(0))
}

/// Tells whether the pages of a private mapping of a file are the file's still: none was written.
pub(super) fn are_unwritten(pages: &Range<usize>) -> Result<bool> {
    let page = page_size();
    let pagemap = File::open("/proc/self/pagemap")?;
    let mut words = vec![0; (64 << 10).min(pages.len() / page) * 8];
    let mut at = pages.start;
    while at < pages.end {
        let count = (words.len() / 8).min((pages.end - at) / page);
        let words = &mut words[..count * 8];
        pagemap.read_exact_at(words, (at / page * 8) as u64)?;
        let (words, _) = words.as_chunks::<8>();
        let written = |word: &[u8; 8]| {
            let word = u64::from_ne_bytes(*word);
            word & (PRESENT | SWAPPED) != 0 && word & OF_FILE == 0
        };
        if words.iter().any(written) {
            return Ok(false);
        }
        at += count * page;
    }
    Ok(true)
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let anonymous = parse("7f00-7f20 rw-p 00000000 00:00 0 ").unwrap();
        assert_eq!(anonymous.addresses, 0x7f00..0x7f20);
        assert!(anonymous.is_anonymous());
        let named = parse("7f20-7f40 rw-p 00000000 00:00 0                          [anon: a b]");
        assert!(named.unwrap().is_anonymous());
        let heap =
            parse("7f20-7f40 rw-p 00000000 00:00 0                          [heap]").unwrap();
        assert!(!heap.is_anonymous() && heap.is_heap());
        let file = parse("7f40-7f60 rw-p 00001000 00:01 25       /memfd:name (deleted)").unwrap();
        assert!(file.is_memfd("name") && !file.is_memfd("other") && !file.is_anonymous());
        assert!(file.is_of(25, 0x7f50, 0x1010) && file.is_of(25, 0x7f30, 0xff0));
        assert!(!file.is_of(25, 0x7f50, 0x1000) && !file.is_of(24, 0x7f50, 0x1010));
        assert!(parse("nonsense").is_none());
    }

    #[test]
    fn the_heap_has_other_parts() {
        let maps = [
            "10-20 rw-p 0 0:0 0 [heap]",
            "20-30 rw-p 0 0:1 5 x",
            "30-40 rw-p 0 0:0 0 [heap]",
        ];
        let maps = Mappings(maps.iter().map(|line| parse(line).unwrap()).collect());
        assert_eq!(maps.heap(), Some(0x10..0x40));
    }

    #[test]
    fn gaps_are_seen() {
        let maps = [
            "10-20 rw-p 0 0:0 0",
            "20-30 rw-p 0 0:0 0",
            "40-50 rw-p 0 0:0 0",
        ];
        let maps = Mappings(maps.iter().map(|line| parse(line).unwrap()).collect());
        assert_eq!(maps.of(&(0x18..0x28)).unwrap().len(), 2);
        assert_eq!(maps.of(&(0x40..0x50)).unwrap().len(), 1);
        assert_eq!(maps.heap(), None);
        for range in [0x28..0x48, 0x8..0x18, 0x48..0x58, 0x60..0x70, 0x30..0x40] {
            assert!(maps.of(&range).is_none(), "{range:?}");
        }
    }
}
