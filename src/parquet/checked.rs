//! Pages, decompressed, looked at before they are decoded.
//!
//! A page without a checksum may be damaged anywhere, and decoders differ in what they make of that.
//! Refuses a page whose levels or values are not all there. Invariant: what is passed on has as many
//! values of its encoding as it announces.

use ::parquet::basic::{Encoding, Type};
use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::schema::types::ColumnDescPtr;

use super::{delta, runs};
use crate::error::Error;
use crate::memory::fallible::expect_room;

/// The most bits of an index.
const MOST_BITS: usize = 32;

/// Pages of one column.
pub(super) struct Checked<P> {
    pages: P,
    /// What the headers of those to come announce, in bytes.
    sizes: std::vec::IntoIter<usize>,
    column: ColumnDescPtr,
    /// Bytes that texts may still take which are put together of others.
    left: usize,
}

/// Why a page is not decoded, although it may be sound.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    /// Decoded, it takes more memory than the column may.
    #[error("its texts are too long")]
    Large,
    /// There is no memory for it.
    #[error("{0}")]
    Failed(Error),
}

impl From<Refused> for ParquetError {
    fn from(refused: Refused) -> ParquetError {
        ParquetError::External(Box::new(refused))
    }
}

/// The most bytes that the decoder has for a value of a dictionary, or for lengths of a text.
const VALUE_BYTES: usize = 48;

impl<P: PageReader> Checked<P> {
    /// Takes the pages of `column`, the bytes that each must have, and the most that all of them may
    /// take, decoded.
    pub(super) fn new(
        pages: P,
        sizes: Vec<usize>,
        column: ColumnDescPtr,
        most: usize,
    ) -> Checked<P> {
        Checked {
            pages,
            sizes: sizes.into_iter(),
            column,
            left: most,
        }
    }

    /// Refuses a page that has less than it announces, or other than `size` bytes. Returns the bytes of
    /// texts that are put together of others.
    fn check(&self, page: &Page, size: usize) -> Option<usize> {
        let count = page.num_values() as usize;
        let bytes = &**page.buffer();
        if size != bytes.len() {
            return None;
        }
        match page {
            Page::DictionaryPage { .. } => self.values(bytes, Encoding::PLAIN, count, count),
            Page::DataPage {
                encoding,
                def_level_encoding,
                rep_level_encoding,
                ..
            } => {
                let (deepest, most) = (self.column.max_rep_level(), self.column.max_def_level());
                let (_, rest) = announced(bytes, *rep_level_encoding, count, deepest)?;
                let (whole, rest) = announced(rest, *def_level_encoding, count, most)?;
                self.values(rest, *encoding, whole, count)
            }
            Page::DataPageV2 {
                encoding,
                def_levels_byte_len,
                rep_levels_byte_len,
                ..
            } => {
                let (repetitions, rest) = bytes.split_at_checked(*rep_levels_byte_len as usize)?;
                let (definitions, rest) = rest.split_at_checked(*def_levels_byte_len as usize)?;
                levels(repetitions, count, self.column.max_rep_level())?;
                let whole = levels(definitions, count, self.column.max_def_level())?;
                self.values(rest, *encoding, whole, count)
            }
        }
    }

    /// Refuses less than `count` values, of `entries` that a page has with nulls. Returns what `check` does.
    fn values(
        &self,
        bytes: &[u8],
        encoding: Encoding,
        count: usize,
        entries: usize,
    ) -> Option<usize> {
        let kind = self.column.physical_type();
        let size = match kind {
            Type::INT32 | Type::FLOAT => Some(4),
            Type::INT64 | Type::DOUBLE => Some(8),
            Type::INT96 => Some(12),
            Type::FIXED_LEN_BYTE_ARRAY => Some(usize::try_from(self.column.type_length()).ok()?),
            Type::BOOLEAN | Type::BYTE_ARRAY => None,
        };
        // the decoder makes room for as many as texts of these announce, also where none is asked for
        let announces = matches!(
            encoding,
            Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY
        );
        let is_whole = match (encoding, size) {
            _ if count == 0 && (bytes.is_empty() || !announces) => true,
            (Encoding::PLAIN, Some(size)) => count.checked_mul(size)? <= bytes.len(),
            (Encoding::PLAIN, None) if kind == Type::BOOLEAN => count.div_ceil(8) <= bytes.len(),
            (Encoding::PLAIN, None) => has_letters(bytes, count),
            (Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY, _) => {
                let (&width, rest) = bytes.split_first()?;
                let width = usize::from(width);
                width <= MOST_BITS && runs::pass(rest, width, count, |_| Some(())).is_some()
            }
            (Encoding::RLE, _) => {
                let (runs, _) = prefixed(bytes)?;
                runs::pass(runs, 1, count, |_| Some(())).is_some()
            }
            (Encoding::DELTA_BINARY_PACKED, Some(size)) => {
                delta::has_numbers(bytes, count, 8 * size as u32)
            }
            (Encoding::DELTA_LENGTH_BYTE_ARRAY, _) => delta::has_texts(bytes, count, size),
            (Encoding::DELTA_BYTE_ARRAY, _) => {
                return delta::bytes_of_shared_texts(bytes, count, size);
            }
            (Encoding::BYTE_STREAM_SPLIT, Some(size)) => {
                let fits = count.checked_mul(size)? <= bytes.len();
                let is_full = bytes.len() <= entries.checked_mul(size)?;
                fits && is_full && bytes.len().is_multiple_of(size.max(1))
            }
            _ => true, // which the decoder refuses
        };
        is_whole.then_some(0)
    }
}

/// Passes levels that say how long they are; returns how many are `most`, and what follows.
fn announced(bytes: &[u8], encoding: Encoding, count: usize, most: i16) -> Option<(usize, &[u8])> {
    if most == 0 {
        return Some((count, bytes));
    }
    if encoding == Encoding::RLE {
        let (own, rest) = prefixed(bytes)?;
        return Some((levels(own, count, most)?, rest));
    }
    let most = u64::try_from(most).ok()?;
    runs::packed_levels(bytes, width(most), count, most)
}

/// How many of `count` levels are `most`.
fn levels(bytes: &[u8], count: usize, most: i16) -> Option<usize> {
    let most = u64::try_from(most).ok()?;
    if most == 0 {
        return Some(count);
    }
    runs::levels(bytes, width(most), count, most)
}

/// Bits of a number.
fn width(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()) as usize
}

/// Splits bytes at the end that their first four say.
fn prefixed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*len) as usize)
}

/// Whether bytes are at least `count` texts, each behind its length.
fn has_letters(mut bytes: &[u8], count: usize) -> bool {
    (0..count).all(|_| {
        let rest = prefixed(bytes).map(|(_, rest)| rest);
        bytes = rest.unwrap_or_default();
        rest.is_some()
    })
}

fn damaged() -> ParquetError {
    ParquetError::General("a page has less than it announces, or something else".into())
}

impl<P: PageReader> PageReader for Checked<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let size = self.sizes.next().unwrap_or(0);
        expect_room(size).map_err(Refused::Failed)?;
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            let shared = self.check(page, size).ok_or_else(damaged)?;
            self.left = self.left.checked_sub(shared).ok_or(Refused::Large)?;
            let is_number = !matches!(
                page.encoding(),
                Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY
            );
            let values = match page {
                Page::DictionaryPage { num_values, .. } => *num_values as usize,
                _ if is_number => 0,
                page => page.num_values() as usize,
            };
            let room = values.saturating_mul(VALUE_BYTES).saturating_add(shared);
            expect_room(room).map_err(Refused::Failed)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

impl<P: PageReader> Iterator for Checked<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}
