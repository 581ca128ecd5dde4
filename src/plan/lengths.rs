//! The length of each sample, and the handling of samples that are too long.

use crate::error::{Error, Result};
use crate::sync::Arc;

/// The treatment of a sample that is longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Long {
    /// It counts as long as the limit, and is cut when its batch is made.
    Truncate,
    /// It keeps its length: alone in its batch, or cut into pieces.
    Keep,
    /// It is left out.
    Drop,
}

/// The lengths of all samples of a dataset, shared.
#[derive(Clone, Debug)]
pub struct Lengths {
    all: Arc<[u32]>,
    most: u32,
}

impl Lengths {
    /// Takes the length of each sample, in the order of the dataset.
    ///
    /// # Errors
    ///
    /// [`Error::Length`]: a length is negative or above 2^32 - 1. [`Error::Lengths`]: 2^32 samples or more.
    pub fn new(lengths: impl Iterator<Item = Result<i64>>) -> Result<Lengths> {
        let checked = lengths.enumerate().map(|(index, length)| {
            let length = length?;
            u32::try_from(length).map_err(|_| Error::Length { index, length })
        });
        Lengths::of(checked.collect::<Result<Vec<u32>>>()?)
    }

    /// Takes lengths that are in range.
    pub fn of(lengths: Vec<u32>) -> Result<Lengths> {
        if u32::try_from(lengths.len()).is_err() {
            return Err(Error::Lengths { len: lengths.len() });
        }
        let all = lengths.into();
        Ok(Lengths {
            all,
            most: u32::MAX,
        })
    }

    /// Returns the same samples, with no length above `most`.
    #[must_use]
    pub fn up_to(&self, most: u32) -> Lengths {
        let all = Arc::clone(&self.all);
        Lengths { all, most }
    }

    /// Returns the number of samples.
    pub fn len(&self) -> u32 {
        self.all.len() as u32 // by `of`
    }

    /// Returns the lengths.
    pub fn all(&self) -> &[u32] {
        &self.all
    }

    /// Returns the length of a sample, at most the limit; `sample` must be below [`Lengths::len`].
    pub fn at(&self, sample: u32) -> u32 {
        self.all[sample as usize].min(self.most)
    }

    /// Returns the sum of all lengths.
    pub fn total(&self) -> u64 {
        self.all.iter().map(|&length| u64::from(length)).sum()
    }

    /// Returns the first sample that is longer than `limit`.
    pub fn first_above(&self, limit: u32) -> Option<usize> {
        self.all.iter().position(|&length| length > limit)
    }

    /// Returns the number of samples that are longer than `limit`.
    pub fn count_above(&self, limit: u32) -> usize {
        self.all.iter().filter(|&&length| length > limit).count()
    }
}
