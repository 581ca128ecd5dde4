//! Plans the rows of one batch of documents, from their lengths alone.

use std::num::NonZeroU32;

use super::{Bins, Mismatch};
use crate::plan::{self, Strategy};

/// The treatment of a sample that is longer than a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlong {
    /// Its beginning is kept.
    Truncate,
    /// It is cut into pieces that fit.
    Split,
    /// It is left out.
    Drop,
    /// It is an error.
    Error,
}

/// The rows that documents are packed into.
#[derive(Clone, Copy, Debug)]
pub struct Packing {
    /// Maximum of tokens in a row.
    pub max_length: NonZeroU32,
    /// The strategy by which rows are filled.
    pub strategy: Strategy,
    /// The treatment of longer documents.
    pub overlong: Overlong,
    /// True for rows of exactly `max_length` tokens; otherwise they are as wide as the fullest.
    pub pad_rows: bool,
    /// Number of rows; None for as many as needed.
    pub rows: Option<usize>,
    /// Position of the first token of a document.
    pub first_position: i64,
    /// True if a document may be empty.
    pub empty: bool,
}

impl Packing {
    /// Plans the rows for documents of these lengths.
    pub fn bins(&self, lengths: &[usize]) -> Result<Bins, Mismatch> {
        if !self.empty
            && let Some(position) = lengths.iter().position(|&len| len == 0)
        {
            return Err(Mismatch::EmptyDocument { position });
        }
        let kept = self.kept(lengths)?;
        let bins = plan::pack(&kept, self.max_length, self.strategy);
        let width = self.pad_rows.then_some(self.max_length.get() as usize);
        Bins::new(bins, width, self.rows)
    }

    /// Returns the number of tokens that are packed of each document.
    fn kept(&self, lengths: &[usize]) -> Result<Vec<u32>, Mismatch> {
        let max_length = self.max_length.get();
        let overlong = match self.strategy {
            Strategy::ConcatSplit => Overlong::Split, // any document may be cut
            _ => self.overlong,
        };
        let one = |(position, &len): (usize, &usize)| match overlong {
            Overlong::Drop if len > max_length as usize => Ok(0),
            Overlong::Truncate => {
                Ok(u32::try_from(len).map_or(max_length, |len| len.min(max_length)))
            }
            _ => u32::try_from(len)
                .ok()
                .filter(|&len| overlong == Overlong::Split || len <= max_length)
                .ok_or(Mismatch::Overlong {
                    position,
                    len,
                    max_length,
                }),
        };
        lengths.iter().enumerate().map(one).collect()
    }
}
