//! Pages, looked at before the `parquet` crate allocates memory for them.
//!
//! Headers announce how many bytes and values a page becomes, and the crate allocates as many; so it does for the
//! lengths that delta-encoded texts announce. Refuses what cannot come of the bytes that are there, and tries the
//! memory for the rest. What the values are, and whether they are damaged, is the crate's to say.

use std::sync::OnceLock;

use ::parquet::basic::{CompressionCodec, Encoding, Type};
use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::metadata::ColumnChunkMetaData;
use ::parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};

use super::thrift::{self, varint, walk};
use crate::error::Error;
use crate::memory::fallible::expect_room;
use crate::sync::Arc;

/// `DATA_PAGE`; `INDEX_PAGE`, which readers pass over; `DATA_PAGE_V2`.
const DATA: i64 = 0;
const INDEX: i64 = 1;
const DATA_2: i64 = 3;
/// `DELTA_BYTE_ARRAY`.
const DELTA_TEXTS: i64 = 7;
/// Bytes that the crate keeps at most for a value of a dictionary, or for lengths of a text.
const VALUE_BYTES: usize = 16;

/// The sizes and counts that the page headers of a column of a row group announce.
#[derive(Debug, Default)]
pub(super) struct Announced {
    /// Bytes of each page, decompressed.
    pub(super) sizes: Vec<usize>,
    /// Values, nulls and empty lists of all.
    pub(super) entries: i64,
    /// True if texts are stored as the prefix length that each shares with the one before, and the suffix.
    pub(super) is_shared: bool,
}

/// Walks over the headers of the pages in `bytes`; refuses one whose page cannot be what it announces.
pub(super) fn look(
    mut bytes: &[u8],
    chunk: &ColumnChunkMetaData,
) -> std::result::Result<Announced, String> {
    let codec = chunk.compression_codec();
    let least = least_bytes(chunk.column_descr());
    let mut all = Announced::default();
    while !bytes.is_empty() {
        let (mut kind, mut made, mut stored, mut count, mut values) = (0, 0, 0, 0_i64, 0_i64);
        let rest = walk(bytes, thrift::page, &mut |field, number| match field {
            [1] => kind = number,
            [2] => made = number,
            [3] => stored = number,
            [5 | 8, 1] => count = count.max(number),
            [7, 1] => values = values.max(number), // of a dictionary
            [5, 2] | [8, 4] => all.is_shared |= number == DELTA_TEXTS,
            _ => {}
        });
        let rest = rest.ok_or("the header of a page is damaged")?;
        let stored_bytes = usize::try_from(stored).ok().filter(|&n| n <= rest.len());
        let stored = stored_bytes.ok_or_else(|| {
            let left = rest.len();
            format!("a page announces {stored} bytes, and {left} are left")
        })?;
        let size = usize::try_from(made).ok();
        let size = size.filter(|&size| most_bytes(stored, codec).is_some_and(|most| size <= most));
        let size = size.ok_or_else(|| {
            format!("a page of {stored} bytes announces {made} decompressed ones")
        })?;
        if values.saturating_mul(least) > made {
            return Err(format!(
                "a dictionary of {size} bytes announces {values} values"
            ));
        }
        if kind != INDEX {
            all.sizes.push(size);
        }
        if matches!(kind, DATA | DATA_2) {
            all.entries = all.entries.saturating_add(count.max(0));
        }
        bytes = &rest[stored..];
    }
    Ok(all)
}

/// The least bytes that a value takes in a dictionary.
fn least_bytes(column: &ColumnDescriptor) -> i64 {
    match column.physical_type() {
        Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 4,
        Type::INT64 | Type::DOUBLE => 8,
        Type::BOOLEAN | Type::INT96 | Type::FIXED_LEN_BYTE_ARRAY => 1,
    }
}

/// The most bytes that a codec makes of `size`.
fn most_bytes(size: usize, codec: CompressionCodec) -> Option<usize> {
    let ratio = match codec {
        CompressionCodec::UNCOMPRESSED => 1,
        CompressionCodec::SNAPPY => 32, // a copy of 64 bytes takes 3
        CompressionCodec::LZ4 | CompressionCodec::LZ4_RAW => 256, // a byte adds 255 to a length
        CompressionCodec::GZIP => 1040, // two bits for 258 bytes
        _ => 1 << 15,                   // zstd: a block of 4 bytes is one byte 128 Ki times
    };
    size.checked_mul(ratio)?
        .checked_add(if ratio > 1 { 64 } else { 0 })
}

/// The pages of one column, each with memory that was tried before it is decompressed.
pub(super) struct Tried<P> {
    pub(super) pages: P,
    /// Bytes of those to come, decompressed.
    pub(super) sizes: std::vec::IntoIter<usize>,
    pub(super) column: ColumnDescPtr,
    /// The error of the failed allocation: errors of the crate become text on their way through it.
    pub(super) refused: Arc<OnceLock<Error>>,
}

impl<P: PageReader> Tried<P> {
    fn try_room(&self, bytes: usize) -> Result<()> {
        expect_room(bytes).map_err(|error| {
            let words = error.to_string();
            let _ = self.refused.set(error); // the first is as good
            ParquetError::General(words)
        })
    }
}

impl<P: PageReader> PageReader for Tried<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let size = self.sizes.next().unwrap_or(0);
        self.try_room(size)?;
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            let is_delta = matches!(
                page.encoding(),
                Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY
            );
            if is_delta && !has_lengths(page, &self.column).unwrap_or(false) {
                let words = "a page of texts announces more lengths than values";
                return Err(ParquetError::General(words.into()));
            }
            if is_delta || page.is_dictionary_page() {
                self.try_room((page.num_values() as usize).saturating_mul(VALUE_BYTES))?;
            }
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

impl<P: PageReader> Iterator for Tried<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

/// Returns true if delta-encoded texts announce at most one length for each value of their page.
fn has_lengths(page: &Page, column: &ColumnDescriptor) -> Option<bool> {
    let most = u64::from(page.num_values());
    let values = behind_levels(page, column)?;
    if values.is_empty() {
        return Some(true); // all are null
    }
    let (first, rest) = deltas(values)?;
    let second = match page.encoding() {
        Encoding::DELTA_BYTE_ARRAY => deltas(rest)?.0,
        _ => 0,
    };
    Some(first <= most && second <= most)
}

/// The values of a data page. None: its levels are damaged, or packed as writers did before there were deltas.
fn behind_levels<'a>(page: &'a Page, column: &ColumnDescriptor) -> Option<&'a [u8]> {
    let mut bytes = &**page.buffer();
    match page {
        Page::DataPage {
            def_level_encoding,
            rep_level_encoding,
            ..
        } => {
            let levels = [
                (column.max_rep_level(), rep_level_encoding),
                (column.max_def_level(), def_level_encoding),
            ];
            for (_, &encoding) in levels.into_iter().filter(|(most, _)| *most > 0) {
                let (size, rest) = bytes.split_first_chunk()?;
                bytes = rest.get(u32::from_le_bytes(*size) as usize..)?;
                if encoding != Encoding::RLE {
                    return None;
                }
            }
            Some(bytes)
        }
        Page::DataPageV2 {
            def_levels_byte_len,
            rep_levels_byte_len,
            ..
        } => bytes.get(def_levels_byte_len.checked_add(*rep_levels_byte_len)? as usize..),
        Page::DictionaryPage { .. } => None,
    }
}

/// Returns the number of integers that a run of `DELTA_BINARY_PACKED` ("Delta encoding" of the format's `Encodings.md`)
/// announces, and the bytes behind it.
fn deltas(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (block, rest) = varint(bytes)?;
    let (parts, rest) = varint(rest)?;
    let (count, rest) = varint(rest)?;
    let (_, mut rest) = varint(rest)?; // the first
    let in_part = usize::try_from(block.checked_div(parts)?).ok()?;
    let mut left = usize::try_from(count).ok()?.saturating_sub(1);
    while left > 0 {
        let (_, behind) = varint(rest)?; // the least delta
        let (widths, mut behind) = behind.split_at_checked(usize::try_from(parts).ok()?)?;
        for &width in widths.iter().take(left.div_ceil(in_part.max(1))) {
            behind = behind.get(in_part.checked_mul(usize::from(width))? / 8..)?;
            left = left.saturating_sub(in_part);
        }
        rest = behind;
    }
    Some((count, rest))
}
