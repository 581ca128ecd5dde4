//! Batches with bad samples: another attempt, in which good samples of the same batch stand in for them.
//!
//! Owns the choice of these samples, by position alone, so that a batch depends neither on threads nor on
//! time; and the limit on attempts while the storage fails. Every attempt has either one bad sample more than
//! the one before, or one retry more, so they end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::Run;
use super::run::{Finished, OpenBatch, Task};
use crate::collate::Field;
use crate::error::{Error, Fault, Reason, Result};
use crate::order::Indices;
use crate::stream::Again;

/// The policy of a run for samples that cannot be made.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    /// True if a bad sample is left out; otherwise the next good sample of its batch takes its place, after
    /// the last one the first.
    pub skips: bool,
    /// Number of times that a batch is tried again if the storage fails.
    pub retries: u32,
    /// Pauses before the first retry, the second one, and all others.
    pub pauses: [Duration; 3],
}

/// A sample that cannot be made.
#[derive(Debug)]
pub struct BadSample {
    /// Its position in the planned batch.
    pub position: usize,
    /// Its dataset index.
    pub index: i64,
    /// Its file; empty if it has none.
    pub path: PathBuf,
    /// The reason why it is bad.
    pub reason: Reason,
    /// The error of the first attempt that found it.
    pub error: Error,
}

/// The findings of earlier attempts at a batch.
#[derive(Debug)]
pub struct Attempts {
    /// The indices of the planned batch.
    planned: Indices,
    /// For each sample of this attempt, its position in the planned batch.
    sources: Vec<usize>,
    /// The bad samples by position.
    bad: BTreeMap<usize, BadSample>,
    /// Samples that were tried again because the storage failed.
    retried: u64,
    /// Number of times that it failed.
    pauses: u32,
}

impl Attempts {
    fn first(planned: Indices) -> Attempts {
        Attempts {
            sources: (0..planned.len()).collect(),
            planned,
            bad: BTreeMap::new(),
            retried: 0,
            pauses: 0,
        }
    }

    /// Returns the indices of the planned batch.
    pub(super) fn planned(&self) -> &Indices {
        &self.planned
    }

    /// Returns the position in the planned batch of a sample of this attempt.
    pub(super) fn source(&self, position: usize) -> usize {
        self.sources[position]
    }

    /// Adds what was found to a batch; without fields if there is no good sample.
    pub(super) fn finished(self, fields: Vec<Field>) -> Finished {
        Finished {
            fields,
            samples: self.planned.len(),
            retried: self.retried,
            bad: self.bad.into_values().collect(),
        }
    }

    /// Chooses the samples of the next attempt, of which at least one must be good.
    fn choose(&mut self, skips: bool) {
        let is_good = |position: &usize| !self.bad.contains_key(position);
        let count = self.planned.len();
        self.sources = if skips {
            (0..count).filter(is_good).collect()
        } else {
            let next_good = |position| (position..count).chain(0..position).find(is_good);
            (0..count).filter_map(next_good).collect()
        };
    }

    /// Returns the indices of the samples of this attempt.
    fn indices(&self) -> Indices {
        let indices: Vec<i64> = self
            .sources
            .iter()
            .map(|&at| self.planned.get(at))
            .collect();
        Indices::list(indices)
    }
}

impl Run {
    /// Returns another attempt at a batch, or its error if a failure is neither a bad sample nor passing.
    pub(super) fn attempt(
        &self,
        tolerance: Tolerance,
        seq: u64,
        batch: OpenBatch,
        failures: Vec<(usize, Error)>,
    ) -> Result<Again<Task, Finished>> {
        let OpenBatch {
            indices,
            first,
            batched,
            attempts,
            ..
        } = batch;
        let mut attempts = attempts.map_or_else(|| Attempts::first(indices), |attempts| *attempts);
        let mut fatal: Option<(usize, Error)> = None;
        let mut is_passing = false;
        for (position, error) in failures {
            let position = attempts.source(position);
            let index = attempts.planned.get(position);
            match error.fault() {
                Fault::Bad(reason) => {
                    attempts.bad.entry(position).or_insert_with(|| BadSample {
                        position,
                        index,
                        path: self.path(&error, index),
                        reason,
                        error,
                    });
                }
                Fault::Passing if attempts.pauses < tolerance.retries => {
                    attempts.retried += 1;
                    is_passing = true;
                }
                Fault::Passing | Fault::Unsupported | Fault::Fatal => {
                    if fatal.as_ref().is_none_or(|(first, _)| position < *first) {
                        fatal = Some((position, error));
                    }
                }
            }
        }
        if let Some((position, error)) = fatal {
            let error = Error::Sample {
                index: attempts.planned.get(position),
                position,
                seq,
                source: Box::new(error),
            };
            return Err(error.of_batch(&attempts.planned, first));
        }
        if attempts.bad.len() == attempts.planned.len() {
            return Ok(Again::Output(attempts.finished(Vec::new())));
        }
        let mut pause = Duration::ZERO;
        if is_passing {
            pause = tolerance.pauses[attempts.pauses.min(2) as usize];
            attempts.pauses += 1;
        }
        attempts.choose(tolerance.skips);
        let task = Task {
            indices: attempts.indices(),
            first,
            batched,
            destinations: Vec::new(),
            attempts: Some(Box::new(attempts)),
        };
        Ok(Again::Task(task, pause))
    }

    /// Returns the file that an error is about: the one it names, or the first of the sample.
    fn path(&self, error: &Error, index: i64) -> PathBuf {
        if let Some(path) = error.path() {
            return path.to_owned();
        }
        self.program.path(index).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(bad: &[usize], count: i64, skips: bool) -> Vec<usize> {
        let mut attempts = Attempts::first(Indices::Span(0..count));
        for &position in bad {
            let sample = BadSample {
                position,
                index: 0,
                path: PathBuf::new(),
                reason: Reason::Decode,
                error: Error::decode("torn"),
            };
            attempts.bad.insert(position, sample);
        }
        attempts.choose(skips);
        attempts.sources
    }

    #[test]
    fn the_next_good_sample_stands_in_and_after_the_last_the_first() {
        assert_eq!(sources(&[1, 2], 5, false), [0, 3, 3, 3, 4]);
        assert_eq!(sources(&[3, 4], 5, false), [0, 1, 2, 0, 0]);
        assert_eq!(sources(&[0, 4], 5, false), [1, 1, 2, 3, 1]);
    }

    #[test]
    fn a_skipped_sample_leaves_no_gap() {
        assert_eq!(sources(&[0, 3], 5, true), [1, 2, 4]);
        assert_eq!(sources(&[0, 1], 3, true), [2]);
    }
}
