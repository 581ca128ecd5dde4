//! The order in which samples are visited: the indices of a sampler, cut into batches.
//!
//! Owns index arrays and their slices, which batches of an epoch were handed over, and torch's permutation, whose
//! first part is available before the rest is drawn. Invariant: the batches of a [`Slicer`] are exactly those of
//! torch's `BatchSampler` over the same indices.

mod permutation;
mod remaining;
mod swaps;
mod table;
mod trace;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

pub use permutation::{Permutation, Rest};

/// The indices of one batch, or a chunk of an epoch: a span, or a slice of a shared list.
#[derive(Clone, Debug)]
pub enum Indices {
    /// Consecutive indices.
    Span(Range<i64>),
    /// A slice of the indices that a sampler drew.
    List(Arc<[i64]>, Range<usize>),
}

impl Indices {
    /// Takes a whole list.
    pub fn list(list: impl Into<Arc<[i64]>>) -> Indices {
        let list = list.into();
        let all = 0..list.len();
        Indices::List(list, all)
    }

    /// Returns the number of indices.
    pub fn len(&self) -> usize {
        match self {
            Indices::Span(span) => usize::try_from(span.end - span.start).unwrap_or(0),
            Indices::List(_, range) => range.len(),
        }
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the index at `position`, which must be below [`Indices::len`].
    pub fn get(&self, position: usize) -> i64 {
        match self {
            Indices::Span(span) => span.start + position.cast_signed() as i64,
            Indices::List(list, range) => list[range.start + position],
        }
    }

    /// Removes the first `count` indices and returns them.
    fn split(&mut self, count: usize) -> Indices {
        match self {
            Indices::Span(span) => {
                let middle = span.start + count.cast_signed() as i64;
                let first = span.start..middle;
                span.start = middle;
                Indices::Span(first)
            }
            Indices::List(list, range) => {
                let middle = range.start + count;
                let first = range.start..middle;
                range.start = middle;
                Indices::List(Arc::clone(list), first)
            }
        }
    }
}

/// Cuts the chunks of an epoch's order into batches.
#[derive(Debug)]
pub struct Slicer {
    batch_size: usize,
    drop_last: bool,
    chunks: VecDeque<Indices>,
    held: usize,
    ended: bool,
}

impl Slicer {
    /// Makes batches of `batch_size` (at least 1); `drop_last` drops a short last one.
    pub fn new(batch_size: usize, drop_last: bool) -> Slicer {
        Slicer {
            batch_size: batch_size.max(1),
            drop_last,
            chunks: VecDeque::new(),
            held: 0,
            ended: false,
        }
    }

    /// Returns true if [`Slicer::next_batch`] needs another [`Slicer::push`] or [`Slicer::end`] first.
    pub fn needs_chunk(&self) -> bool {
        !self.ended && self.held < self.batch_size
    }

    /// Adds the next chunk.
    pub fn push(&mut self, chunk: Indices) {
        self.held += chunk.len();
        if !chunk.is_empty() {
            self.chunks.push_back(chunk);
        }
    }

    /// Marks the end: no chunk follows.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Returns the next batch; None at the end, or if it needs another chunk.
    pub fn next_batch(&mut self) -> Option<Indices> {
        let count = self.held.min(self.batch_size);
        if count == 0 || (count < self.batch_size && (!self.ended || self.drop_last)) {
            return None;
        }
        self.held -= count;
        let first = self.chunks.front_mut()?;
        if first.len() >= count {
            let batch = first.split(count);
            if first.is_empty() {
                self.chunks.pop_front();
            }
            return Some(batch);
        }
        let mut joined = Vec::with_capacity(count);
        while joined.len() < count {
            let chunk = self.chunks.front_mut()?;
            let part = chunk.split(chunk.len().min(count - joined.len()));
            joined.extend((0..part.len()).map(|at| part.get(at)));
            if chunk.is_empty() {
                self.chunks.pop_front();
            }
        }
        Some(Indices::list(joined))
    }
}

/// The batches of an epoch that were handed over, also if later ones overtook earlier ones: all below `next`, except
/// those in `missing`.
#[derive(Clone, Debug, Default)]
pub struct Position {
    /// Ascending, and below `next`.
    missing: Vec<u64>,
    next: u64,
}

impl Position {
    /// Makes the position in which `next` and all batches of `missing`, which are below it, are still to come.
    pub fn new(mut missing: Vec<u64>, next: u64) -> Position {
        missing.sort_unstable();
        Position { missing, next }
    }

    /// Returns the first batch that was not handed over.
    pub fn first(&self) -> u64 {
        self.missing.first().copied().unwrap_or(self.next)
    }

    /// Returns true if a batch was handed over.
    pub fn has(&self, batch: u64) -> bool {
        batch < self.next && self.missing.binary_search(&batch).is_err()
    }

    /// Counts a batch as handed over.
    pub fn hand_over(&mut self, batch: u64) {
        if batch >= self.next {
            self.missing.extend(self.next..batch);
            self.next = batch + 1;
        } else if let Ok(at) = self.missing.binary_search(&batch) {
            self.missing.remove(at);
        }
    }

    /// Returns the batches that are still to come although later ones were handed over.
    pub fn missing(&self) -> &[u64] {
        &self.missing
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Indices, Position, Slicer};

    proptest! {
        #[test]
        fn batches_equal_those_of_the_joined_chunks(
            chunks in prop::collection::vec(prop::collection::vec(-5_i64..100, 0..9), 0..6),
            batch_size in 1_usize..7,
            drop_last: bool,
        ) {
            let all: Vec<i64> = chunks.concat();
            let mut slicer = Slicer::new(batch_size, drop_last);
            let mut remaining = chunks.into_iter();
            let mut batches = Vec::new();
            loop {
                while slicer.needs_chunk() {
                    match remaining.next() {
                        Some(chunk) => slicer.push(Indices::list(chunk)),
                        None => slicer.end(),
                    }
                }
                let Some(batch) = slicer.next_batch() else { break };
                batches.push((0..batch.len()).map(|at| batch.get(at)).collect::<Vec<_>>());
            }
            let mut expected: Vec<Vec<i64>> = all.chunks(batch_size).map(<[i64]>::to_vec).collect();
            if drop_last && expected.last().is_some_and(|last| last.len() < batch_size) {
                expected.pop();
            }
            prop_assert_eq!(batches, expected);
        }
    }

    #[test]
    fn batches_that_are_overtaken_are_missing_until_they_come() {
        let mut position = Position::new(vec![1, 3], 5);
        assert_eq!(position.first(), 1);
        let handed_over: Vec<u64> = (0..7).filter(|&batch| position.has(batch)).collect();
        assert_eq!(handed_over, [0, 2, 4]);
        for (batch, missing) in [
            (7, &[1, 3, 5, 6][..]),
            (3, &[1, 5, 6]),
            (8, &[1, 5, 6]),
            (1, &[5, 6]),
            (6, &[5]),
            (5, &[]),
        ] {
            position.hand_over(batch);
            assert_eq!(position.missing(), missing);
            assert!(position.has(batch));
        }
        assert_eq!(position.first(), 9);
    }
}
