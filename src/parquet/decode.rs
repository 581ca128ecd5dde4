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

use super::checked::Checked;
use super::levels::{Levels, Misfit};
use super::pages;
use super::part::Part;
use super::schema::{Kind, Leaf};
use super::tables::Tables;
use crate::caught::caught;
use crate::error::{Error, Result};
use crate::memory::{Dtype, Plain, View};

/// Rows that are decoded at once.
const BATCH: usize = 1 << 16;

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
    let size = Size {
        rows: rows.len(),
        entries: chunk.num_values(),
    };
    let chunk = &located(chunk).map_err(|error| damaged(error.to_string()))?;
    let bytes = bytes(tables, file, chunk, &damaged)?;
    let sizes = pages::check(&bytes.bytes, chunk.compression_codec()).map_err(damaged)?;
    let open = || SerializedPageReader::new(Arc::new(bytes), chunk, rows.len(), None);
    let read = called(open).and_then(|pages| {
        let pages = Checked::new(pages, sizes, leaf.descriptor.clone());
        leaf.read(pages, size)
    });
    match read {
        Ok(part) => Ok(part),
        Err(Stop::Damage(reason)) => Err(damaged(reason)),
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
    let mut bytes = vec![0; size as usize];
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

/// What the footer says of a column of a row group.
#[derive(Clone, Copy)]
struct Size {
    rows: usize,
    /// Values, nulls and empty lists.
    entries: i64,
}

/// Why values cannot be had.
enum Stop {
    Damage(String),
    /// A null, in this row of the row group.
    Null(usize),
}

/// Calls the decoder, which may panic.
fn called<T>(
    decoder: impl FnOnce() -> ::parquet::errors::Result<T>,
) -> std::result::Result<T, Stop> {
    match caught(decoder) {
        Ok(made) => made.map_err(|error| Stop::Damage(error.to_string())),
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
        let levels = self.each::<T>(pages, size, &mut values, |_| {})?;
        Ok(self.part(View::owned(values), levels))
    }

    fn numbers<T: DataType, N: Plain>(
        &self,
        pages: Pages,
        size: Size,
        number: impl Fn(T::T) -> N,
    ) -> std::result::Result<Part, Stop> {
        let mut all = Vec::new();
        let take = |values: &mut Vec<T::T>| all.extend(values.drain(..).map(&number));
        let levels = self.each::<T>(pages, size, &mut Vec::new(), take)?;
        Ok(self.part(View::owned(all), levels))
    }

    fn halves(&self, pages: Pages, size: Size) -> std::result::Result<Part, Stop> {
        let mut all: Vec<u16> = Vec::new();
        let take = |values: &mut Vec<_>| {
            for value in values.drain(..) {
                let bytes = AsBytes::as_bytes(&value).first_chunk();
                all.push(bytes.map_or(0, |bytes| u16::from_le_bytes(*bytes)));
            }
        };
        let levels = self.each::<FixedLenByteArrayType>(pages, size, &mut Vec::new(), take)?;
        Ok(self.part(View::owned(all), levels))
    }

    fn letters<T: DataType>(&self, pages: Pages, size: Size) -> std::result::Result<Part, Stop> {
        let (mut all, mut offsets) = (Vec::new(), vec![0]);
        let take = |values: &mut Vec<T::T>| {
            for value in values.drain(..) {
                all.extend_from_slice(value.as_bytes());
                offsets.push(all.len().cast_signed() as i64);
            }
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
        mut take: impl FnMut(&mut Vec<T::T>),
    ) -> std::result::Result<Option<Vec<i64>>, Stop> {
        let mut reader = ColumnReaderImpl::<T>::new(self.descriptor.clone(), Box::new(pages));
        let mut levels = Levels::new(&self.descriptor, self.is_list);
        let (mut definitions, mut repetitions) = (Vec::new(), Vec::new());
        loop {
            definitions.clear();
            repetitions.clear();
            let (defined, repeated) = (Some(&mut definitions), Some(&mut repetitions));
            let read = || reader.read_records(BATCH, defined, repeated, values);
            let (records, _, count) = called(read)?;
            let taken = levels.take(count, &definitions, &repetitions);
            take(values);
            match taken {
                Ok(()) => {}
                Err(Misfit::Null(row)) => return Err(Stop::Null(row)),
                Err(Misfit::Torn) => return Err(Stop::Damage("its lists do not begin".into())),
            }
            let found = levels.rows();
            let Size { rows, entries } = size;
            if found > rows || (records == 0 && found < rows) {
                let more = if found > rows { "more than " } else { "" };
                let reason = format!("it has {more}{} rows in place of {rows}", found.min(rows));
                return Err(Stop::Damage(reason));
            }
            if records == 0 {
                let found = levels.entries();
                if found.cast_signed() as i64 != entries {
                    let reason = format!("it has {found} values, and the footer says {entries}");
                    return Err(Stop::Damage(reason));
                }
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
