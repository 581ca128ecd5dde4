//! One column of one row group: from the bytes in the file to values in memory.

use std::borrow::Cow;
use std::io::{Cursor, Read};
use std::sync::Arc;

use ::parquet::column::reader::ColumnReaderImpl;
use ::parquet::data_type::{
    AsBytes, BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType,
    Int32Type, Int64Type,
};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::ColumnChunkMetaData;
use ::parquet::file::reader::{ChunkReader, Length, SerializedPageReader};
use bytes::Bytes;

use super::checked::{Checked, Refused};
use super::levels::{Levels, Misfit};
use super::pages;
use super::part::Part;
use super::schema::{Kind, Leaf};
use super::tables::Tables;
use crate::caught::caught;
use crate::error::{Error, Result};
use crate::memory::fallible::{reserve, reserve_growing, zeroed};
use crate::memory::{Dtype, Plain, View};

/// Rows that are decoded at once.
const BATCH: usize = 1 << 16;
/// Bytes that a column of a row group may take, decoded, however few it has in the file.
const MOST_BYTES: usize = 1 << 30;
/// Bytes that each of those in the file may become beyond that.
const EXPANSION: usize = 1024;

/// Decodes the column `leaf` of a row group; `name` is for words.
///
/// # Errors
///
/// [`Error::Read`], [`Error::Changed`]; [`Error::Decode`]: its bytes are damaged. [`Error::Null`].
pub(super) fn decode(tables: &Tables, number: usize, leaf: &Leaf, name: &str) -> Result<Part> {
    let (file, group) = tables.group(number);
    let path = tables.files().path(file);
    let damaged = |reason: String| {
        let reason = format!("column {name:?} of row group {group}: {reason}");
        Error::decode(reason).of_file(path)
    };
    let footer = tables.footers()[file].row_group(group);
    let chunk = footer.columns().get(leaf.place);
    let chunk = chunk.ok_or_else(|| damaged("it is missing".into()))?;
    let rows = tables.rows_in_file(number);
    let announced = chunk.num_values();
    let chunk = &located(chunk).map_err(|error| damaged(error.to_string()))?;
    let bytes = bytes(tables, file, chunk, &damaged)?;
    let found = pages::check(&bytes.bytes, chunk.compression_codec()).map_err(damaged)?;
    if found.entries != announced {
        let found = found.entries;
        let reason = format!("it has {found} values, and the footer says {announced}");
        return Err(damaged(reason));
    }
    let stored = bytes.bytes.len();
    let size = Size {
        rows: rows.len(),
        entries: usize::try_from(found.entries).unwrap_or(usize::MAX),
        most: MOST_BYTES
            .max(tables.limit())
            .max(stored.saturating_mul(EXPANSION)),
    };
    let open = || SerializedPageReader::new(Arc::new(bytes), chunk, rows.len(), None);
    let read = size
        .check(leaf)
        .and_then(|()| called(open))
        .and_then(|pages| {
            let column = leaf.descriptor.clone();
            leaf.read(Checked::new(pages, found.sizes, column, size.most), size)
        });
    match read {
        Ok(part) => Ok(part),
        Err(Stop::Damage(reason)) => Err(damaged(reason)),
        Err(Stop::Large) => Err(damaged(format!(
            "decoded, its {stored} bytes become more than {}; write smaller row groups, or give the \
             column a larger cache",
            size.most
        ))),
        Err(Stop::Failed(error)) => Err(error.of_file(path)),
        Err(Stop::Null(row)) => Err(Error::Null {
            path: path.to_owned(),
            column: name.to_owned(),
            row: rows.start + row,
        }),
    }
}

/// Drops the place of a dictionary that is not before the values: some writers say 0 for none.
fn located(chunk: &ColumnChunkMetaData) -> ::parquet::errors::Result<Cow<'_, ColumnChunkMetaData>> {
    match chunk.dictionary_page_offset() {
        Some(place) if place <= 0 || place >= chunk.data_page_offset() => {
            let builder = chunk.clone().into_builder();
            builder
                .set_dictionary_page_offset(None)
                .build()
                .map(Cow::Owned)
        }
        _ => Ok(Cow::Borrowed(chunk)),
    }
}

/// Reads the bytes of a column of a row group.
fn bytes(
    tables: &Tables,
    file: usize,
    chunk: &ColumnChunkMetaData,
    damaged: &dyn Fn(String) -> Error,
) -> Result<Chunk> {
    if let Some(other) = chunk.file_path() {
        return Err(damaged(format!(
            "its values are in another file, {other:?}"
        )));
    }
    let dictionary = chunk.dictionary_page_offset();
    let first = dictionary.unwrap_or(chunk.data_page_offset());
    let (first, size) = (u64::try_from(first), u64::try_from(chunk.compressed_size()));
    let len = tables.files().stamp(file).len();
    let (Ok(first), Ok(size)) = (first, size) else {
        return Err(damaged("it lies before the file".into()));
    };
    if first.checked_add(size).is_none_or(|end| end > len) {
        let reason =
            format!("by the footer it is {size} bytes from {first} on, and the file has {len}");
        return Err(damaged(reason));
    }
    let bytes = zeroed(size as usize);
    let mut bytes = bytes.map_err(|error| error.of_file(tables.files().path(file)))?;
    tables.files().read(file, first, &mut bytes)?;
    let bytes = Bytes::from(bytes);
    Ok(Chunk { first, bytes })
}

type Pages = Checked<SerializedPageReader<Chunk>>;

/// A stretch of a file, read at places of the file.
struct Chunk {
    first: u64,
    bytes: Bytes,
}

impl Chunk {
    fn from(&self, start: u64) -> ::parquet::errors::Result<Bytes> {
        let start = start.checked_sub(self.first).map(|start| start as usize);
        match start.filter(|&start| start <= self.bytes.len()) {
            Some(start) => Ok(self.bytes.slice(start..)),
            None => Err(ParquetError::EOF(
                "a page lies outside of its column".into(),
            )),
        }
    }
}

impl Length for Chunk {
    fn len(&self) -> u64 {
        self.first + self.bytes.len() as u64
    }
}

impl ChunkReader for Chunk {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> ::parquet::errors::Result<Box<dyn Read>> {
        Ok(Box::new(Cursor::new(self.from(start)?)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ::parquet::errors::Result<Bytes> {
        let bytes = self.from(start)?;
        if length > bytes.len() {
            return Err(ParquetError::EOF(
                "a page ends outside of its column".into(),
            ));
        }
        Ok(bytes.slice(..length))
    }
}

/// What the footer and the pages say of a column of a row group.
#[derive(Clone, Copy)]
struct Size {
    rows: usize,
    /// Values, nulls and empty lists.
    entries: usize,
    /// Bytes that they may take, decoded.
    most: usize,
}

impl Size {
    /// Refuses what cannot be decoded, or takes too much memory: runs of few bytes say any number of values.
    fn check(self, leaf: &Leaf) -> std::result::Result<(), Stop> {
        let Size { rows, entries, .. } = self;
        if rows > entries || (rows < entries && !leaf.is_list) {
            let reason = format!("it has {rows} rows of {entries} values");
            return Err(Stop::Damage(reason));
        }
        let offset = if leaf.is_list { size_of::<i64>() } else { 0 };
        let bytes = entries.checked_mul(leaf.kind.dtype().itemsize() + offset);
        match bytes {
            Some(bytes) if bytes <= self.most => Ok(()),
            _ => Err(Stop::Large),
        }
    }
}

/// Why values cannot be had.
enum Stop {
    Damage(String),
    /// A null, in this row of the row group.
    Null(usize),
    /// Decoded values take more memory than they may.
    Large,
    /// Memory that cannot be had.
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

impl From<ParquetError> for Stop {
    fn from(error: ParquetError) -> Stop {
        match error {
            ParquetError::External(inner) => match inner.downcast::<Refused>() {
                Ok(refused) => match *refused {
                    Refused::Large => Stop::Large,
                    Refused::Failed(error) => Stop::Failed(error),
                },
                Err(other) => Stop::Damage(other.to_string()),
            },
            other => Stop::Damage(other.to_string()),
        }
    }
}

/// Calls the decoder, which may panic.
fn called<T>(
    decoder: impl FnOnce() -> ::parquet::errors::Result<T>,
) -> std::result::Result<T, Stop> {
    match caught(decoder) {
        Ok(made) => made.map_err(Stop::from),
        Err(words) => Err(Stop::Damage(format!("it is damaged: {words}"))),
    }
}

impl Leaf {
    fn read(&self, pages: Pages, size: Size) -> std::result::Result<Part, Stop> {
        match self.kind {
            Kind::Bool => self.plain::<BoolType>(pages, size),
            Kind::Int(Dtype::Int8) => self.numbers::<Int32Type, _>(pages, size, |n| n as i8),
            Kind::Int(Dtype::Int16) => self.numbers::<Int32Type, _>(pages, size, |n| n as i16),
            Kind::Int(Dtype::UInt8) => {
                self.numbers::<Int32Type, _>(pages, size, |n| n.cast_unsigned() as u8)
            }
            Kind::Int(Dtype::UInt16) => {
                self.numbers::<Int32Type, _>(pages, size, |n| n.cast_unsigned() as u16)
            }
            Kind::Int(_) => self.plain::<Int32Type>(pages, size),
            Kind::Long(_) => self.plain::<Int64Type>(pages, size),
            Kind::Float => self.plain::<FloatType>(pages, size),
            Kind::Double => self.plain::<DoubleType>(pages, size),
            Kind::Half => self.halves(pages, size),
            Kind::Text | Kind::Bytes => self.letters::<ByteArrayType>(pages, size),
            Kind::FixedBytes => self.letters::<FixedLenByteArrayType>(pages, size),
        }
    }

    /// Reads numbers that are stored as they are wanted.
    fn plain<T: DataType>(&self, pages: Pages, size: Size) -> std::result::Result<Part, Stop>
    where
        T::T: Plain,
    {
        let mut values = Vec::new();
        reserve(&mut values, size.entries)?;
        let levels = self.each::<T>(pages, size, &mut values, |_| Ok(()))?;
        Ok(self.part(View::owned(values), levels))
    }

    fn numbers<T: DataType, N: Plain>(
        &self,
        pages: Pages,
        size: Size,
        number: impl Fn(T::T) -> N,
    ) -> std::result::Result<Part, Stop> {
        let mut all = Vec::new();
        reserve(&mut all, size.entries)?;
        let take = |values: &mut Vec<T::T>| {
            all.extend(values.drain(..).map(&number));
            Ok(())
        };
        let levels = self.each::<T>(pages, size, &mut Vec::new(), take)?;
        Ok(self.part(View::owned(all), levels))
    }

    fn halves(&self, pages: Pages, size: Size) -> std::result::Result<Part, Stop> {
        let mut all: Vec<u16> = Vec::new();
        reserve(&mut all, size.entries)?;
        let take = |values: &mut Vec<_>| {
            for value in values.drain(..) {
                let bytes = AsBytes::as_bytes(&value).first_chunk();
                all.push(bytes.map_or(0, |bytes| u16::from_le_bytes(*bytes)));
            }
            Ok(())
        };
        let levels = self.each::<FixedLenByteArrayType>(pages, size, &mut Vec::new(), take)?;
        Ok(self.part(View::owned(all), levels))
    }

    fn letters<T: DataType>(&self, pages: Pages, size: Size) -> std::result::Result<Part, Stop> {
        let (mut all, mut offsets) = (Vec::new(), Vec::new());
        reserve(&mut offsets, size.entries + 1)?;
        offsets.push(0);
        let take = |values: &mut Vec<T::T>| {
            let more = values.iter().map(|value| value.as_bytes().len()).sum();
            if more > size.most - all.len() {
                return Err(Stop::Large); // an index of few bits stands for any number of letters
            }
            reserve_growing(&mut all, more)?;
            for value in values.drain(..) {
                all.extend_from_slice(value.as_bytes());
                offsets.push(all.len().cast_signed() as i64);
            }
            Ok(())
        };
        self.each::<T>(pages, size, &mut Vec::new(), take)?;
        Ok(self.part(View::owned(all), Some(offsets)))
    }

    /// Reads all rows into `values`, which `take` may empty after each batch. Returns where lists begin.
    fn each<T: DataType>(
        &self,
        pages: Pages,
        size: Size,
        values: &mut Vec<T::T>,
        mut take: impl FnMut(&mut Vec<T::T>) -> std::result::Result<(), Stop>,
    ) -> std::result::Result<Option<Vec<i64>>, Stop> {
        let mut reader = ColumnReaderImpl::<T>::new(self.descriptor.clone(), Box::new(pages));
        let mut levels = Levels::new(&self.descriptor, self.is_list, size.rows)?;
        let (mut definitions, mut repetitions) = (Vec::new(), Vec::new());
        // a list of any length is one record
        let at_once = if self.is_list {
            size.entries
        } else {
            size.entries.min(BATCH)
        };
        if self.descriptor.max_def_level() > 0 {
            reserve(&mut definitions, at_once)?;
        }
        if self.descriptor.max_rep_level() > 0 {
            reserve(&mut repetitions, at_once)?;
        }
        reserve(values, at_once)?;
        loop {
            definitions.clear();
            repetitions.clear();
            let (defined, repeated) = (Some(&mut definitions), Some(&mut repetitions));
            let read = || reader.read_records(BATCH, defined, repeated, values);
            let (records, _, count) = called(read)?;
            let taken = levels.take(count, &definitions, &repetitions);
            take(values)?;
            match taken {
                Ok(()) => {}
                Err(Misfit::Null(row)) => return Err(Stop::Null(row)),
                Err(Misfit::Torn) => return Err(Stop::Damage("its lists do not begin".into())),
            }
            let found = levels.rows();
            let rows = size.rows;
            if found > rows || (records == 0 && found < rows) {
                let more = if found > rows { "more than " } else { "" };
                let reason = format!("it has {more}{} rows in place of {rows}", found.min(rows));
                return Err(Stop::Damage(reason));
            }
            if records == 0 {
                return Ok(levels.finish());
            }
        }
    }

    fn part(&self, values: View, offsets: Option<Vec<i64>>) -> Part {
        Part {
            values,
            dtype: self.kind.dtype(),
            offsets,
        }
    }
}
