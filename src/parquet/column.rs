//! One column of Parquet files, as storage of samples.

use ::parquet::file::metadata::ColumnChunkMetaData;
use ::parquet::file::statistics::Statistics;
use once_cell::race::OnceBox;

use super::decode::decode;
use super::part::{Decoded, Part};
use super::schema::Leaf;
use super::tables::Tables;
use super::whole::{Parts, Whole};
use crate::cache::Other;
use crate::collate::{Shape, sizes};
use crate::column::{Column, Kind, Layout, Scratch};
use crate::error::{Error, Result};
use crate::memory::fallible::boxed;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicUsize, Ordering};

/// The values of one column of all rows.
#[derive(Debug)]
pub struct Parquet {
    tables: Arc<Tables>,
    name: String,
    /// The column in each file.
    leaves: Vec<Leaf>,
    layout: Layout,
    /// Its number in the cache.
    number: usize,
    whole: Whole,
    /// Lengths of the lists of each row group that was decoded, as far as they fit the cache.
    lengths: Vec<OnceBox<Box<[u32]>>>,
    /// Bytes of the whole, or of lengths, that the cache counts; a lower bound while threads change it.
    kept: AtomicUsize,
    /// Bytes of row groups that others leave it.
    room: AtomicUsize,
}

impl Parquet {
    /// Takes the column `name` of all files.
    ///
    /// # Errors
    ///
    /// [`Error::NoColumn`]; [`Error::Unfit`]: its values cannot be samples, or are others in one of the files.
    /// [`Error::Null`]: by the statistics of a row group it has nulls, and it does.
    pub fn new(tables: Arc<Tables>, name: &str) -> Result<Parquet> {
        let mut leaves: Vec<Leaf> = Vec::with_capacity(tables.files.len());
        for (file, footer) in tables.footers.iter().enumerate() {
            let schema = footer.file_metadata().schema_descr();
            let leaf = Leaf::find(schema, name, tables.files.path(file))?;
            if let Some(first) = leaves.first()
                && first.layout != leaf.layout
            {
                return Err(Error::Unfit {
                    path: tables.files.path(file).to_owned(),
                    column: name.to_owned(),
                    kind: format!("{} where the first file has {}", leaf.kind, first.kind),
                });
            }
            leaves.push(leaf);
        }
        let Some(first) = leaves.first() else {
            return Err(Error::Abandoned);
        };
        let column = Parquet {
            layout: first.layout.clone(),
            number: tables.next_column(),
            name: name.to_owned(),
            leaves,
            whole: Whole::new(),
            lengths: std::iter::repeat_with(OnceBox::new)
                .take(tables.groups.len())
                .collect(),
            kept: AtomicUsize::new(0),
            room: AtomicUsize::new(0),
            tables,
        };
        column.refuse_nulls()?;
        column.want(column.least());
        Ok(column)
    }

    /// Looks for a null where statistics tell of some; of lists they count empty ones, too.
    fn refuse_nulls(&self) -> Result<()> {
        for number in 0..self.tables.groups.len() {
            let (file, group) = self.tables.groups[number];
            let leaf = &self.leaves[file];
            let group = self.tables.footers[file].row_group(group);
            let statistics = group
                .columns()
                .get(leaf.place)
                .and_then(ColumnChunkMetaData::statistics);
            let nulls = statistics.and_then(Statistics::null_count_opt);
            if nulls.is_some_and(|nulls| nulls > 0) && leaf.layout.kind != Kind::Ragged {
                self.decode_part(number)?;
            }
        }
        Ok(())
    }

    /// Returns the array of all rows, if it fits the cache.
    fn whole(&self) -> Option<&Decoded> {
        self.whole.peek().or_else(|| self.whole.get(self))
    }

    /// Returns a row group, or None: it is left to another thread.
    fn group(&self, number: usize, other: Other) -> Result<Option<Arc<Decoded>>> {
        let make = || {
            let decoded = self.decode_part(number)?.decoded()?;
            let bytes = decoded.bytes();
            Ok((decoded, bytes))
        };
        let cache = self.tables.cache();
        let key = (self.number, number);
        cache.get(
            key,
            self.tables.limit,
            self.estimate_of(number),
            other,
            make,
        )
    }

    /// Calls `each` with every row group that rows lie in, and the places of those rows among `indices`: first
    /// with what is in the cache, then with what no other thread decodes. Of several row groups that fail the error
    /// names the first row.
    fn by_group(
        &self,
        indices: &[usize],
        mut each: impl FnMut(&Decoded, &[(usize, usize, usize)]) -> Result<()>,
    ) -> Result<()> {
        let found = indices.iter().enumerate().map(|(place, &index)| {
            let (group, row) = self.tables.find(index);
            (group, place, row)
        });
        let mut found: Vec<_> = found.collect();
        found.sort_unstable();
        let mut failed: Option<(usize, Error)> = None;
        let mut note = |made: Result<()>| {
            let Err(error) = made else { return };
            let (place, error) = error.placed();
            if failed.as_ref().is_none_or(|(first, _)| place < *first) {
                failed = Some((place, error));
            }
        };
        let mut left: Vec<&[(usize, usize, usize)]> = Vec::new();
        for rows in found.chunk_by(|a, b| a.0 == b.0) {
            match self.tables.cache().peek((self.number, rows[0].0)) {
                Some(decoded) => note(each(&decoded, rows)),
                None => left.push(rows),
            }
        }
        for other in [Other::Leave, Other::Wait] {
            for rows in std::mem::take(&mut left) {
                match self.group(rows[0].0, other) {
                    Ok(Some(decoded)) => note(each(&decoded, rows)),
                    Ok(None) => left.push(rows),
                    Err(error) => note(Err(error.at(rows[0].1))),
                }
            }
        }
        failed.map_or(Ok(()), |(place, error)| Err(error.at(place)))
    }

    /// Returns the estimated bytes of a decoded row group, from the metadata of its file.
    fn estimate_of(&self, number: usize) -> usize {
        let (file, group) = self.tables.groups[number];
        let group = self.tables.footers[file].row_group(group);
        let rows = usize::try_from(group.num_rows()).unwrap_or(usize::MAX);
        if self.layout.kind == Kind::Rows {
            return rows.saturating_mul(self.layout.dtype.itemsize());
        }
        let chunk = group.columns().get(self.leaves[file].place);
        let bytes = chunk.map_or(0, ColumnChunkMetaData::uncompressed_size);
        rows.saturating_mul(8)
            .saturating_add(usize::try_from(bytes).unwrap_or(0))
    }

    /// Returns the bytes of the row groups that two threads need while they work side by side.
    fn least(&self) -> usize {
        let groups = (0..self.tables.groups.len()).map(|number| self.estimate_of(number));
        let largest = groups.max().unwrap_or(0);
        let both = self.estimate().min(largest.saturating_mul(2));
        both.min(self.tables.limit)
    }

    /// Has others leave room for so many bytes of row groups of this column.
    fn want(&self, bytes: usize) {
        let before = self.room.swap(bytes, Ordering::Relaxed);
        self.tables.room(before, bytes);
    }

    /// Returns the number of entries of a list.
    fn rows_of(&self, index: usize) -> Result<usize> {
        if let Some(whole) = self.whole() {
            return whole.rows_of(index);
        }
        let (group, row) = self.tables.find(index);
        if let Some(lengths) = self.lengths[group].get() {
            return Ok(lengths[row] as usize);
        }
        let Some(decoded) = self.group(group, Other::Wait)? else {
            return Err(Error::Abandoned);
        };
        if let Some(lengths) = decoded.lengths()
            && self.reserve_beside(self.tables.wanted(), size_of_val(&*lengths))
        {
            let _ = self.lengths[group].set(Box::new(lengths)); // another thread may have set the same
        }
        decoded.rows_of(row)
    }

    /// Has more bytes counted, if they fit beside row groups of `wanted` bytes.
    fn reserve_beside(&self, wanted: usize, bytes: usize) -> bool {
        let limit = self.tables.limit.saturating_sub(wanted);
        let fits = self.tables.cache().reserve(bytes, limit);
        if fits {
            self.kept.fetch_add(bytes, Ordering::Relaxed);
        }
        fits
    }
}

impl Column for Parquet {
    fn len(&self) -> usize {
        self.tables.rows()
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn shape(&self, index: usize) -> Result<Option<Shape>> {
        if self.layout.kind != Kind::Ragged {
            return Ok(self.layout.shape.clone());
        }
        Ok(Some(sizes(self.rows_of(index)?, &[])))
    }

    fn gather(&self, indices: &[usize], scratch: &mut Scratch, out: &mut [u8]) -> Result<()> {
        if let Some(whole) = self.whole() {
            return whole.gather(indices, scratch, out);
        }
        let size = out.len() / indices.len().max(1);
        if size == 0 {
            return Ok(());
        }
        self.by_group(indices, |decoded, rows| {
            for &(_, place, row) in rows {
                let gathered = decoded.gather(&[row], scratch, &mut out[place * size..][..size]);
                gathered.map_err(|error| error.at(place))?;
            }
            Ok(())
        })
    }

    fn bytes(&self, indices: &[usize]) -> Result<Vec<Box<[u8]>>> {
        if let Some(whole) = self.whole() {
            let each = indices.iter().enumerate().map(|(place, &index)| {
                let text = whole.letters(index).and_then(boxed);
                text.map_err(|error| error.at(place))
            });
            return each.collect();
        }
        let mut all = vec![Box::default(); indices.len()];
        self.by_group(indices, |decoded, rows| {
            for &(_, place, row) in rows {
                let text = decoded.letters(row).and_then(boxed);
                all[place] = text.map_err(|error| error.at(place))?;
            }
            Ok(())
        })?;
        Ok(all)
    }
}

impl Parts for Parquet {
    fn count(&self) -> usize {
        self.tables.groups.len()
    }

    fn decode_part(&self, part: usize) -> Result<Part> {
        let (file, _) = self.tables.groups[part];
        decode(&self.tables, part, &self.leaves[file], &self.name)
    }

    fn estimate(&self) -> usize {
        let groups = (0..self.tables.groups.len()).map(|number| self.estimate_of(number));
        groups.fold(0, usize::saturating_add)
    }

    fn reserve(&self, bytes: usize) -> bool {
        let own = self.room.load(Ordering::Relaxed);
        let others = self.tables.wanted().saturating_sub(own);
        let more = bytes.saturating_sub(self.kept.load(Ordering::Relaxed));
        self.reserve_beside(others, more)
    }

    fn settle(&self, bytes: usize) {
        let kept = self.kept.swap(bytes, Ordering::Relaxed);
        self.tables.cache().release(kept.saturating_sub(bytes));
        self.want(if bytes == 0 { self.least() } else { 0 });
    }
}

impl Drop for Parquet {
    fn drop(&mut self) {
        self.settle(0);
        self.want(0);
        self.tables.cache().forget(self.number);
    }
}
