//! Parquet files that are one table, and what of them is kept.

use std::ops::Range;
use std::path::Path;

use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use ::parquet::schema::types::Type;
use bytes::Bytes;

use super::cache::Cache;
use super::thrift;
use crate::caught::caught;
use crate::column::{Files, Paths};
use crate::error::{Error, Result};
use crate::fork::Renewed;
use crate::memory::fallible::{expect_room, zeroed};
use crate::scan::scan;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that are read of the end of a file at first.
const TAIL: u64 = 64 << 10;
/// Bytes of memory that a byte of a footer becomes at most: a column of a row group has some twenty there,
/// and some six hundred as a struct of the `parquet` crate.
const FOOTER_EXPANSION: usize = 64;
/// Bytes behind a footer: its length, and `PAR1`.
const ENDING: u64 = 8;

/// Files with the same columns, one after the other; columns share their cache.
#[derive(Debug)]
pub struct Tables {
    files: Arc<Files>,
    footers: Vec<ParquetMetaData>,
    /// The file of each row group, and its number there.
    groups: Vec<(usize, usize)>,
    /// The first row of each row group, and the number of all rows.
    starts: Vec<usize>,
    cache: Renewed<Cache>,
    limit: usize,
    columns: AtomicUsize,
    /// Bytes of row groups that columns in use need at least, those apart that are kept whole.
    wanted: AtomicUsize,
}

impl Tables {
    /// Opens files, and reads their footers on the threads of the pool; `limit` is the bytes of decoded
    /// values that are kept. `tick` is as in [`scan`].
    ///
    /// # Errors
    ///
    /// [`Error::Read`], [`Error::Decode`]: a file cannot be read, or is damaged; what `tick` returns.
    pub fn open(
        paths: Paths,
        limit: usize,
        tick: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Tables> {
        let files = Arc::new(Files::look(paths)?);
        let looked = files.clone();
        let footers = scan(files.len(), move |at| footer(&looked, at), tick)?;
        let footers = footers.into_iter().collect::<Result<Vec<_>>>()?;
        let (mut groups, mut starts, mut rows) = (Vec::new(), vec![0], 0_usize);
        for (file, footer) in footers.iter().enumerate() {
            let damaged = |reason: String| Error::decode(reason).of_file(files.path(file));
            let mut found = 0_i64;
            for group in 0..footer.num_row_groups() {
                let count = footer.row_group_num_rows(group);
                let count = count.map_err(|error| damaged(error.to_string()))?;
                found = found.saturating_add_unsigned(count as u64);
                let all = rows
                    .checked_add(count)
                    .filter(|&all| isize::try_from(all).is_ok());
                rows = all.ok_or_else(|| damaged(format!("it announces {count} rows")))?;
                groups.push((file, group));
                starts.push(rows);
            }
            let announced = footer.file_metadata().num_rows();
            if announced != found {
                return Err(damaged(format!(
                    "it announces {announced} rows, and its row groups {found}"
                )));
            }
        }
        Ok(Tables {
            files,
            footers,
            groups,
            starts,
            cache: Renewed::new(Cache::default),
            limit,
            columns: AtomicUsize::new(0),
            wanted: AtomicUsize::new(0),
        })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// The files.
    pub(super) fn files(&self) -> &Files {
        &self.files
    }

    /// What the files say of themselves.
    pub(super) fn footers(&self) -> &[ParquetMetaData] {
        &self.footers
    }

    /// Number of row groups of all files.
    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// The file of a row group, and its number there.
    pub(super) fn group(&self, number: usize) -> (usize, usize) {
        self.groups[number]
    }

    /// The row group of a row, and its number there.
    pub(super) fn find(&self, row: usize) -> (usize, usize) {
        let after = self.starts.partition_point(|&start| start <= row);
        (after - 1, row - self.starts[after - 1])
    }

    /// The rows of a row group, as they are numbered in their file.
    pub(super) fn rows_in_file(&self, number: usize) -> Range<usize> {
        let file = self.groups[number].0;
        let first = self.groups.partition_point(|&(other, _)| other < file);
        let before = self.starts[first];
        self.starts[number] - before..self.starts[number + 1] - before
    }

    pub(super) fn cache(&self) -> &Cache {
        self.cache.get()
    }

    /// Bytes that are kept.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes of row groups that columns in use need at least, those apart that are kept whole.
    pub(super) fn wanted(&self) -> usize {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Notes that a column needs `now` bytes of row groups in place of `before`.
    pub(super) fn room(&self, before: usize, now: usize) {
        self.wanted.fetch_add(now, Ordering::Relaxed);
        self.wanted.fetch_sub(before, Ordering::Relaxed);
    }

    /// Returns a number for another column.
    pub(super) fn next_column(&self) -> usize {
        self.columns.fetch_add(1, Ordering::Relaxed)
    }
}

/// Reads the footer of a file.
fn footer(files: &Files, at: usize) -> Result<ParquetMetaData> {
    let path = files.path(at);
    let len = files.stamp(at).len();
    let mut wanted = TAIL.min(len);
    loop {
        let tail = zeroed(wanted as usize);
        let mut tail = tail.map_err(|error| error.of_file(path))?;
        files.read(at, len - wanted, &mut tail)?;
        let damaged = |reason: String| Error::decode(reason).of_file(path);
        let tail = Bytes::from(tail);
        let size = claimed(&tail).filter(|size| size + ENDING <= len);
        if let Some(size) = size.filter(|size| size + ENDING > wanted) {
            wanted = size + ENDING;
            continue;
        }
        let fields = size.map(|size| {
            Fields::read(&tail[(wanted - ENDING - size) as usize..(wanted - ENDING) as usize])
        });
        if fields.as_ref().is_some_and(Option::is_none) {
            return Err(damaged("its footer is damaged".into()));
        }
        let footer = size.map_or(tail.len(), |size| size as usize);
        let room = expect_room(footer.saturating_mul(FOOTER_EXPANSION));
        room.map_err(|error| error.of_file(path))?;
        let parsed = read(path, || {
            let mut reader = ParquetMetaDataReader::new();
            let parsed = reader.try_parse_sized(&tail, len);
            parsed.and_then(|()| reader.finish())
        });
        match parsed? {
            Ok(footer) => {
                let checked = fields.flatten().unwrap_or_default().check(&footer);
                return checked.map_err(damaged).map(|()| footer);
            }
            Err(ParquetError::NeedMoreData(more)) if more as u64 > wanted && more as u64 <= len => {
                wanted = more as u64;
            }
            Err(error) => return Err(damaged(error.to_string())),
        }
    }
}

/// Bytes of the footer of a file, by its end; None: it has another end.
fn claimed(tail: &[u8]) -> Option<u64> {
    let (_, ending) = tail.split_last_chunk::<{ ENDING as usize }>()?;
    let (size, magic) = ending.split_first_chunk()?;
    (magic == b"PAR1").then(|| u64::from(u32::from_le_bytes(*size)))
}

/// What a footer says, looked at before the `parquet` crate reads it: that takes as long over fields which it
/// does not know as they claim to be.
#[derive(Default)]
struct Fields {
    /// Of the schema.
    fields: i64,
    /// Of the columns of row groups.
    types: Vec<i64>,
}

impl Fields {
    /// Passes over a footer; None: it is not whole.
    fn read(bytes: &[u8]) -> Option<Fields> {
        let mut found = Fields::default();
        thrift::pass(bytes, thrift::FOOTER, &mut |field, number| match field {
            [2] => found.fields = number,
            [4, 1, 3, 1] => found.types.push(number), // of row groups, columns, metadata: the type
            _ => {}
        })?;
        Some(found)
    }

    /// Refuses a footer that contradicts itself.
    fn check(&self, footer: &ParquetMetaData) -> std::result::Result<(), String> {
        let schema = footer.file_metadata().schema_descr();
        let orders = footer.file_metadata().column_orders();
        if nodes(schema.root_schema()) != self.fields
            || orders.is_some_and(|orders| orders.len() != schema.num_columns())
        {
            return Err("the fields in its footer do not fit together".into());
        }
        let groups = footer.row_groups().iter();
        let chunks = groups.flat_map(RowGroupMetaData::columns);
        let expected = chunks.clone().map(|chunk| chunk.column_type() as i64);
        if !expected.eq(self.types.iter().copied()) {
            return Err("the types in its footer do not fit its columns".into());
        }
        for chunk in chunks {
            let column = chunk.column_descr();
            let levels = [
                (chunk.definition_level_histogram(), column.max_def_level()),
                (chunk.repetition_level_histogram(), column.max_rep_level()),
            ];
            for (counts, most) in levels {
                let counts = counts.filter(|counts| !counts.is_empty());
                if counts
                    .is_some_and(|counts| counts.len() != most.max(0).cast_unsigned() as usize + 1)
                {
                    return Err("the statistics in its footer do not fit its columns".into());
                }
            }
        }
        Ok(())
    }
}

/// Counts a field and those below it.
fn nodes(field: &Type) -> i64 {
    let fields = field.is_group().then(|| field.get_fields());
    let below = fields.unwrap_or_default().iter();
    1 + below.map(|field| nodes(field)).sum::<i64>()
}

/// Runs code of the `parquet` crate, whose panics are errors of the file.
fn read<T>(path: &Path, run: impl FnOnce() -> T) -> Result<T> {
    caught(run).map_err(|words| Error::decode(format!("it is damaged: {words}")).of_file(path))
}
