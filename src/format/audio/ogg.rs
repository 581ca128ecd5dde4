//! Pages of Ogg (RFC 3533) and the packets in them.
//!
//! Refuses what a player would tolerate: pages with a wrong checksum, missing pages, several streams, and
//! bytes between pages.

use symphonia_core::checksum::Crc32;
use symphonia_core::io::Monitor;

use crate::error::{Error, Result};
use crate::memory::fallible::reserve_growing;

/// Bytes of a page before its segment table.
const HEADER: usize = 27;

/// One page.
pub(super) struct Page<'a> {
    /// Granule position after its last complete packet; None if no packet ends here.
    pub(super) position: Option<u64>,
    /// True if its first packet continues that of the page before.
    continues: bool,
    /// True for the last page.
    pub(super) is_last: bool,
    serial: u32,
    number: u32,
    lengths: &'a [u8],
    body: &'a [u8],
}

impl<'a> Page<'a> {
    /// Parses the page at the start of `bytes`; returns it with its size.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<(Page<'a>, usize)> {
        let header = bytes.first_chunk::<HEADER>()?;
        let count = usize::from(header[26]);
        if !header.starts_with(b"OggS\0") {
            return None;
        }
        let lengths = bytes.get(HEADER..HEADER + count)?;
        let start = HEADER + count;
        let len: usize = lengths.iter().map(|&len| usize::from(len)).sum();
        let body = bytes.get(start..start + len)?;
        let mut crc = Crc32::new(0);
        crc.process_buf_bytes(&header[..22]);
        crc.process_buf_bytes(&[0; 4]);
        crc.process_buf_bytes(&bytes[26..start + len]);
        let field = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        if crc.crc() != field(22) {
            return None;
        }
        let position = u64::from(field(6)) | u64::from(field(10)) << 32;
        let page = Page {
            position: (position != u64::MAX).then_some(position),
            continues: header[5] & 1 != 0,
            is_last: header[5] & 4 != 0,
            serial: field(14),
            number: field(18),
            lengths,
            body,
        };
        Some((page, start + len))
    }
}

/// The pages of a file.
pub(super) struct Pages<'a> {
    bytes: &'a [u8],
    last: Option<(u32, u32, bool)>,
    /// A packet that continues on the next page.
    part: Vec<u8>,
    is_open: bool,
}

impl<'a> Pages<'a> {
    /// Returns an iterator over the pages of a file.
    pub(super) fn new(bytes: &'a [u8]) -> Pages<'a> {
        Pages {
            bytes,
            last: None,
            part: Vec::new(),
            is_open: false,
        }
    }

    /// Reads the next page and calls `packet` with each packet that ends in it; None at the end.
    pub(super) fn next(
        &mut self,
        mut packet: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<Option<Page<'a>>> {
        if self.bytes.is_empty() {
            return match self.last {
                Some((_, _, true)) => Ok(None),
                _ => Err(Error::decode("it is cut off: its last page is missing")),
            };
        }
        let Some((page, len)) = Page::parse(self.bytes) else {
            return Err(Error::decode("a page of it is damaged, or cut off"));
        };
        self.bytes = &self.bytes[len..];
        let follows = match self.last {
            None => page.number == 0,
            Some((serial, number, is_last)) => {
                !is_last && page.serial == serial && page.number == number.wrapping_add(1)
            }
        };
        if !follows || page.continues != self.is_open {
            return Err(Error::decode(
                "pages of it are missing, or it holds more than one stream",
            ));
        }
        self.last = Some((page.serial, page.number, page.is_last));
        self.packets(&page, &mut packet)?;
        Ok(Some(page))
    }

    fn packets(
        &mut self,
        page: &Page<'a>,
        packet: &mut impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let (mut start, mut end) = (0, 0);
        for &len in page.lengths {
            end += usize::from(len);
            if len == 255 {
                continue;
            }
            let bytes = &page.body[start..end];
            start = end;
            if self.is_open {
                reserve_growing(&mut self.part, bytes.len())?;
                self.part.extend_from_slice(bytes);
                self.is_open = false;
                let whole = std::mem::take(&mut self.part);
                packet(&whole)?;
            } else {
                packet(bytes)?;
            }
        }
        if page.lengths.last() == Some(&255) {
            reserve_growing(&mut self.part, page.body.len() - start)?;
            self.part.extend_from_slice(&page.body[start..]);
            self.is_open = true;
        }
        Ok(())
    }
}

/// Returns the granule position of the last page, given the last bytes of a file.
pub(super) fn last_position(end: &[u8]) -> Option<u64> {
    let mut at = end.len();
    loop {
        at = end[..at].windows(4).rposition(|four| four == b"OggS")?;
        match Page::parse(&end[at..]) {
            Some((page, len)) if at + len == end.len() => {
                return page.position.filter(|_| page.is_last);
            }
            _ => {}
        }
    }
}
