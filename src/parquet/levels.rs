//! Repetition and definition levels: where lists begin, and what is null.
//!
//! As in "Dremel: Interactive Analysis of Web-Scale Datasets" (Melnik et al., 2010) and the format's
//! `README.md`, "Nested Encoding".

use ::parquet::schema::types::ColumnDescPtr;

use crate::error::Result;
use crate::memory::fallible::{push, reserve};

/// What a column's levels have said so far.
#[derive(Debug)]
pub(super) struct Levels {
    /// The definition level of a value that is there.
    whole: i16,
    /// That of a list's entry; below it are the empty list, and then nulls.
    entry: i16,
    /// Values before each list; None without lists.
    offsets: Option<Vec<i64>>,
    values: i64,
    rows: usize,
}

/// Why levels are none that a batch has a place for.
#[derive(Debug)]
pub(super) enum Misfit {
    /// A null, in this row of the row group.
    Null(usize),
    /// Damage.
    Torn,
}

impl Levels {
    /// Makes room for the offsets of at most `rows` lists, if there are lists.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`](crate::Error::Memory), without a path.
    pub(super) fn new(descriptor: &ColumnDescPtr, is_list: bool, rows: usize) -> Result<Levels> {
        let mut offsets = is_list.then(Vec::new);
        if let Some(offsets) = &mut offsets {
            reserve(offsets, rows + 1)?;
        }
        Ok(Levels {
            whole: descriptor.max_def_level(),
            entry: descriptor.repeated_ancestor_def_level(),
            offsets,
            values: 0,
            rows: 0,
        })
    }

    /// Rows that have begun.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Takes the levels of the next `count` entries; columns without nulls have no `definitions`, and those
    /// without lists no `repetitions`.
    pub(super) fn take(
        &mut self,
        count: usize,
        definitions: &[i16],
        repetitions: &[i16],
    ) -> std::result::Result<(), Misfit> {
        let Some(offsets) = &mut self.offsets else {
            if self.whole > 0 {
                let null = definitions.iter().position(|&level| level != self.whole);
                if let Some(null) = null {
                    return Err(Misfit::Null(self.rows + null));
                }
            }
            self.rows += count;
            return Ok(());
        };
        if definitions.len() != count || repetitions.len() != count {
            return Err(Misfit::Torn);
        }
        for (&definition, &repetition) in definitions.iter().zip(repetitions) {
            if repetition == 0 {
                push(offsets, self.values).map_err(|_| Misfit::Torn)?; // more lists than rows
                self.rows += 1;
            } else if self.rows == 0 || definition < self.entry {
                return Err(Misfit::Torn);
            }
            if definition == self.whole {
                self.values += 1;
            } else if definition >= self.entry || definition + 1 < self.entry {
                return Err(Misfit::Null(self.rows - 1));
            }
        }
        Ok(())
    }

    /// Ends the last row. Returns where each list begins and the last ends.
    pub(super) fn finish(self) -> Option<Vec<i64>> {
        let mut offsets = self.offsets?;
        offsets.push(self.values);
        Some(offsets)
    }
}
