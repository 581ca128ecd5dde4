//! One column of one row group: from the bytes in the file to values in memory, by way of Arrow arrays.

use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use ::parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups};
use ::parquet::column::page::{PageIterator, PageReader};
use ::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use ::parquet::file::reader::SerializedPageReader;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use bytes::Bytes;

use super::pages::{self, Announced, Tried};
use super::part::Part;
use super::schema::Leaf;
use super::tables::Tables;
use crate::caught::caught;
use crate::column::Kind;
use crate::error::{Error, Result};
use crate::memory::fallible::{expect_room, reserve, reserve_growing, zeroed};
use crate::memory::{Dtype, View};
use crate::sync::Arc;

/// Values that are decoded at once, about.
const BATCH: usize = 1 << 16;
/// Bytes that texts or bytes may take that are decoded at once, where a few in the file become many.
const BATCH_BYTES: usize = 1 << 26;
/// Bytes that a column of a row group may take, decoded, however few it has in the file.
const MOST_BYTES: usize = 1 << 30;
/// Bytes that each of those in the file may become beyond that.
const EXPANSION: usize = 1024;
/// Bytes that the crate takes for an entry of a list, beyond twice its value: levels, offsets.
const ENTRY_BYTES: usize = 16;

/// Decodes the column `leaf` of a row group; `name` is for words.
///
/// # Errors
///
/// [`Error::Read`], [`Error::Changed`]; [`Error::Decode`]: its bytes are damaged. [`Error::Null`].
pub(super) fn decode(tables: &Tables, number: usize, leaf: &Leaf, name: &str) -> Result<Part> {
    let (file, group) = tables.groups[number];
    let path = tables.files.path(file);
    let damaged = |reason: String| {
        let reason = format!("column {name:?} of row group {group}: {reason}");
        Error::decode(reason).of_file(path)
    };
    let footer = &tables.footers[file];
    let chunk = footer.row_group(group).columns().get(leaf.place);
    let chunk = chunk.ok_or_else(|| damaged("it is missing".into()))?;
    let (chunk, first) = located(chunk).map_err(|error| damaged(error.to_string()))?;
    let bytes = bytes(tables, file, first, &chunk, &damaged)?;
    let pages = pages::look(&bytes, &chunk).map_err(damaged)?;
    let most = bytes.len().saturating_mul(EXPANSION);
    let column = Column {
        leaf,
        name,
        path,
        rows: tables.rows_in_file(number),
        footer,
        group,
        chunk,
        bytes: Arc::new(bytes),
        pages,
        most: most.max(MOST_BYTES).max(tables.limit),
        refused: Arc::default(),
        damaged: &damaged,
    };
    let read = caught(|| column.read());
    let read = read.unwrap_or_else(|words| Err(damaged(format!("it is damaged: {words}"))));
    let refused = Arc::into_inner(column.refused).and_then(OnceLock::into_inner);
    read.map_err(|error| refused.unwrap_or(error).of_file(path))
}

/// Counts the places of pages from the first, and returns that. A dictionary is before the values: some writers say
/// 0 for none.
fn located(chunk: &ColumnChunkMetaData) -> ::parquet::errors::Result<(ColumnChunkMetaData, i64)> {
    let values = chunk.data_page_offset();
    let dictionary = chunk.dictionary_page_offset();
    let dictionary = dictionary.filter(|place| (1..values).contains(place));
    let first = dictionary.unwrap_or(values);
    let builder = chunk.clone().into_builder();
    let builder = builder.set_dictionary_page_offset(dictionary.map(|_| 0));
    Ok((builder.set_data_page_offset(values - first).build()?, first))
}

/// Reads the bytes of a column of a row group, which begin at `first`.
fn bytes(
    tables: &Tables,
    file: usize,
    first: i64,
    chunk: &ColumnChunkMetaData,
    damaged: &dyn Fn(String) -> Error,
) -> Result<Bytes> {
    if let Some(other) = chunk.file_path() {
        return Err(damaged(format!(
            "its values are in another file, {other:?}"
        )));
    }
    let (first, size) = (u64::try_from(first), u64::try_from(chunk.compressed_size()));
    let len = tables.files.stamp(file).len();
    let (Ok(first), Ok(size)) = (first, size) else {
        return Err(damaged("it lies before the file".into()));
    };
    if first.checked_add(size).is_none_or(|end| end > len) {
        let reason =
            format!("by the footer it is {size} bytes from {first} on, and the file has {len}");
        return Err(damaged(reason));
    }
    let bytes = zeroed(size as usize);
    let mut bytes = bytes.map_err(|error| error.of_file(tables.files.path(file)))?;
    tables.files.read(file, first, &mut bytes)?;
    Ok(Bytes::from(bytes))
}

/// One column of one row group, as the crate asks for it.
struct Column<'a> {
    leaf: &'a Leaf,
    name: &'a str,
    path: &'a Path,
    /// As they are numbered in the file.
    rows: Range<usize>,
    footer: &'a ParquetMetaData,
    group: usize,
    chunk: ColumnChunkMetaData,
    bytes: Arc<Bytes>,
    pages: Announced,
    /// Bytes that values and offsets may take, decoded.
    most: usize,
    /// The error of a page for which there was no memory.
    refused: Arc<OnceLock<Error>>,
    damaged: &'a dyn Fn(String) -> Error,
}

impl RowGroups for Column<'_> {
    fn num_rows(&self) -> usize {
        self.rows.len()
    }

    fn column_chunks(&self, _: usize) -> ::parquet::errors::Result<Box<dyn PageIterator>> {
        let (bytes, rows) = (Arc::clone(&self.bytes), self.num_rows());
        let pages = Tried {
            pages: SerializedPageReader::new(bytes, &self.chunk, rows, None)?,
            sizes: self.pages.sizes.clone().into_iter(),
            column: self.chunk.column_descr_ptr(),
            refused: Arc::clone(&self.refused),
        };
        Ok(Box::new(Once(Some(Box::new(pages)))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.footer.row_group(self.group)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.footer
    }
}

/// The pages of the one row group.
struct Once(Option<Box<dyn PageReader>>);

impl Iterator for Once {
    type Item = ::parquet::errors::Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for Once {}

impl Column<'_> {
    /// Decodes all rows.
    fn read(&self) -> Result<Part> {
        let rows = self.rows.len();
        let mut decoded = self.room()?;
        let mut found = 0;
        for batch in self.batches(decoded.size)? {
            let batch = batch.map_err(|error| (self.damaged)(error.to_string()))?;
            let array = batch.column(0);
            if let Some(row) = null_row(array) {
                return Err(Error::Null {
                    path: self.path.to_owned(),
                    column: self.name.to_owned(),
                    row: self.rows.start + found + row,
                });
            }
            found += array.len();
            if found > rows {
                break;
            }
            decoded.append(array, self)?;
        }
        if found != rows {
            let more = if found > rows { "more than " } else { "" };
            let found = found.min(rows);
            let reason = format!("it has {more}{found} rows in place of {rows}");
            return Err((self.damaged)(reason));
        }
        let is_several = self.leaf.layout.kind != Kind::Rows;
        Ok(Part {
            values: View::owned(decoded.values),
            dtype: decoded.dtype,
            offsets: is_several.then_some(decoded.offsets),
        })
    }

    /// Makes room for all values, as far as their number tells; refuses too many: runs of few bytes say any number.
    fn room(&self) -> Result<Decoded> {
        let dtype = self.leaf.layout.dtype;
        let (size, offset) = match (self.leaf.layout.kind, &self.leaf.kind) {
            (Kind::Rows, _) => (dtype.itemsize(), 0),
            (Kind::Ragged, _) => (dtype.itemsize(), size_of::<i64>()),
            (_, &DataType::FixedSizeBinary(size)) => {
                (size.max(0).cast_unsigned() as usize, size_of::<i64>())
            }
            _ => (0, size_of::<i64>()),
        };
        let entries = self.entries()?;
        let bytes = entries.checked_mul(size + offset);
        if bytes.is_none_or(|bytes| bytes > self.most) {
            return Err(self.large());
        }
        if self.leaf.layout.kind == Kind::Ragged {
            expect_room(entries.saturating_mul(2 * size + ENTRY_BYTES))?; // a list of any length is one row
        }
        let (mut values, mut offsets) = (Vec::new(), Vec::new());
        reserve(&mut values, entries * size)?;
        if offset > 0 {
            reserve(&mut offsets, self.rows.len() + 1)?;
            offsets.push(0);
        }
        Ok(Decoded {
            values,
            offsets,
            dtype,
            size,
        })
    }

    /// Starts the decoder, for values of at least `size` bytes.
    fn batches(&self, size: usize) -> Result<ParquetRecordBatchReader> {
        let page = self.pages.sizes.iter().copied().max();
        let longest = page.filter(|_| self.pages.is_shared).unwrap_or(1);
        let entries = usize::try_from(self.pages.entries).unwrap_or(usize::MAX);
        let in_row = entries / self.rows.len().max(1); // of a list
        let rows = (BATCH_BYTES / longest.max(size).max(1)).min(BATCH / in_row.max(1));
        let levels = &self.leaf.levels;
        ParquetRecordBatchReader::try_new_with_row_groups(levels, self, rows.max(1), None)
            .map_err(|error| (self.damaged)(error.to_string()))
    }

    /// Values, nulls and empty lists, by the footer and by the pages.
    fn entries(&self) -> Result<usize> {
        let (found, announced) = (self.pages.entries, self.chunk.num_values());
        if found != announced {
            let reason = format!("it has {found} values, and the footer says {announced}");
            return Err((self.damaged)(reason));
        }
        let entries = usize::try_from(found).unwrap_or(usize::MAX);
        let (rows, is_list) = (self.rows.len(), self.leaf.layout.kind == Kind::Ragged);
        if rows > entries || (rows < entries && !is_list) {
            let reason = format!("it has {rows} rows of {entries} values");
            return Err((self.damaged)(reason));
        }
        Ok(entries)
    }

    /// The error of values that take more memory than they may.
    fn large(&self) -> Error {
        let (stored, most) = (self.bytes.len(), self.most);
        (self.damaged)(format!(
            "decoded, its {stored} bytes become more than {most}; write smaller row groups, or give the \
             column a larger cache"
        ))
    }
}

/// The values decoded so far.
struct Decoded {
    values: Vec<u8>,
    /// The start of each sample and the end of the last, of samples that are several values.
    offsets: Vec<i64>,
    dtype: Dtype,
    /// Bytes of a value; 0 of text, and of bytes of any length.
    size: usize,
}

impl Decoded {
    /// Appends an array without nulls.
    fn append(&mut self, array: &ArrayRef, column: &Column<'_>) -> Result<()> {
        let before = self.values.len();
        match array.data_type() {
            DataType::Struct(_) => return self.append(array.as_struct().column(0), column),
            DataType::Utf8View => {
                let texts = array.as_string_view().iter().flatten();
                return self.append_bytes(texts.map(str::as_bytes), column);
            }
            DataType::BinaryView => {
                return self.append_bytes(array.as_binary_view().iter().flatten(), column);
            }
            DataType::FixedSizeBinary(_) => {
                let ends = (1..=array.len()).map(|count| as_offset(before + count * self.size));
                self.offsets.extend(ends);
                self.append_values(array)?;
            }
            DataType::List(_) => {
                let (lists, before) = (array.as_list::<i32>(), as_offset(before / self.size));
                let ends = lists.value_offsets().iter().skip(1);
                self.offsets
                    .extend(ends.map(|&end| before + i64::from(end)));
                self.append_values(lists.values())?;
            }
            _ => self.append_values(array)?,
        }
        Ok(())
    }

    /// Appends values of one size; booleans become one byte each.
    fn append_values(&mut self, array: &ArrayRef) -> Result<()> {
        let bytes = array.len() * self.size;
        reserve_growing(&mut self.values, bytes)?;
        if let Some(booleans) = array.as_boolean_opt() {
            let first = self.values.len();
            self.values.resize(first + bytes, 0);
            let bits = booleans.values().sliced();
            for (values, bits) in self.values[first..].chunks_mut(8).zip(bits.as_slice()) {
                for (bit, value) in values.iter_mut().enumerate() {
                    *value = bits >> bit & 1;
                }
            }
        } else {
            let data = array.to_data();
            let first = data.offset() * self.size;
            self.values
                .extend_from_slice(&data.buffers()[0][first..][..bytes]);
        }
        Ok(())
    }

    /// Appends texts or bytes; refuses too many: an index of few bits stands for a text of any length.
    fn append_bytes<'a>(
        &mut self,
        all: impl Iterator<Item = &'a [u8]> + Clone,
        column: &Column<'_>,
    ) -> Result<()> {
        let more = all.clone().map(<[u8]>::len).sum();
        if more > column.most - self.values.len() {
            return Err(column.large());
        }
        reserve_growing(&mut self.values, more)?;
        for value in all {
            self.values.extend_from_slice(value);
            self.offsets.push(as_offset(self.values.len()));
        }
        Ok(())
    }
}

/// The first row that is null, in an array, the structs or list that it is in, or the list's values.
fn null_row(array: &ArrayRef) -> Option<usize> {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    let own = nulls.and_then(|nulls| nulls.iter().position(|is_valid| !is_valid));
    let inner = match array.data_type() {
        DataType::Struct(_) => null_row(array.as_struct().column(0)),
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            let ends = lists.value_offsets().get(1..).unwrap_or_default();
            null_row(lists.values())
                .map(|value| ends.partition_point(|&end| end.cast_unsigned() as usize <= value))
        }
        _ => None,
    };
    own.into_iter().chain(inner).min()
}

fn as_offset(count: usize) -> i64 {
    count.cast_signed() as i64
}
