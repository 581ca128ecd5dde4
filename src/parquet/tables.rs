//! Parquet files that are one table, and what of them is kept.

use std::ops::Range;
use std::path::Path;

use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use bytes::Bytes;

use super::part::Decoded;
use super::thrift;
use crate::cache::Cache;
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
/// Maximum depth of nested fields in a schema.
const SCHEMA_DEPTH: usize = 100;
/// Bytes behind a footer: its length, and `PAR1`.
const ENDING: u64 = 8;

/// Files with the same columns, one after the other; columns share their cache.
#[derive(Debug)]
pub struct Tables {
    pub(super) files: Arc<Files>,
    /// The metadata of the files.
    pub(super) footers: Vec<ParquetMetaData>,
    /// The file of each row group, and its number there.
    pub(super) groups: Vec<(usize, usize)>,
    /// The first row of each row group, and the number of all rows.
    starts: Vec<usize>,
    cache: Renewed<Cache<Decoded>>,
    /// Bytes that are kept.
    pub(super) limit: usize,
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

    pub(super) fn cache(&self) -> &Cache<Decoded> {
        self.cache.get()
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
        let footer = size.map(|size| (wanted - ENDING - size) as usize..(wanted - ENDING) as usize);
        if footer
            .clone()
            .is_some_and(|footer| !is_bounded(&tail[footer]))
        {
            return Err(damaged("its footer is damaged".into()));
        }
        let footer = footer.map_or(tail.len(), |footer| footer.len());
        let room = expect_room(footer.saturating_mul(FOOTER_EXPANSION));
        room.map_err(|error| error.of_file(path))?;
        let parsed = read(path, || {
            let mut reader = ParquetMetaDataReader::new();
            let parsed = reader.try_parse_sized(&tail, len);
            parsed.and_then(|()| reader.finish())
        });
        match parsed? {
            Ok(footer) => return Ok(footer),
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

/// Returns true if a footer claims no more entries, and no more fields of its schema, than it has bytes, and those
/// fields are not nested deeper than the crate can follow on a thread's stack.
fn is_bounded(footer: &[u8]) -> bool {
    let mut is_bounded = true;
    let mut left = Vec::new(); // fields that are still to come, of each group that the next is in
    let walked = thrift::walk(footer, thrift::footer, &mut |field, number| match field {
        [2, 4] => {
            while left.pop_if(|left| *left == 0).is_some() {}
            if let Some(left) = left.last_mut() {
                *left -= 1;
            }
        }
        [2, 5] if number > 0 => {
            left.push(number);
            is_bounded &=
                number.cast_unsigned() <= footer.len() as u64 && left.len() <= SCHEMA_DEPTH;
        }
        _ => {}
    });
    walked.is_some() && is_bounded
}

/// Runs code of the `parquet` crate, whose panics are errors of the file.
fn read<T>(path: &Path, run: impl FnOnce() -> T) -> Result<T> {
    caught(run).map_err(|words| Error::decode(format!("it is damaged: {words}")).of_file(path))
}
