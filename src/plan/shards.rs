//! Divides the batches of an epoch among ranks.
//!
//! Invariant: every rank has as many batches as every other; the batches of a step are neighbours.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::shuffle::{Purpose, Shuffle};

/// The treatment of a last step with fewer samples than there are ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remainder {
    /// Those samples are left out.
    Drop,
    /// Ranks without a sample repeat one of another rank.
    Repeat,
    /// As `Repeat`, and the repeated sample is marked as a filler.
    Mask,
}

/// The ranks that share the batches.
#[derive(Clone, Copy, Debug)]
pub struct Ranks {
    /// Number of ranks; at least 1.
    pub world: usize,
    /// The treatment of the last step.
    pub remainder: Remainder,
}

/// The reason why samples are in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is their only batch.
    Own,
    /// Another rank has them too.
    Repeat,
    /// Another rank has them; here they only keep the ranks in step.
    Filler,
}

/// The batch of one rank at one step: a range of an order of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    start: u32,
    end: u32,
    pub(super) origin: Origin,
}

impl Share {
    fn new(start: usize, end: usize, origin: Origin) -> Share {
        let (start, end) = (start as u32, end as u32); // orders are shorter than 2^32
        Share { start, end, origin }
    }

    /// Returns the range of its samples in the order.
    pub(super) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    fn len(self) -> usize {
        self.range().len()
    }
}

/// The batches of an epoch, step after step, with one batch of every rank in each.
#[derive(Debug)]
pub(super) struct Dealt {
    pub(super) shares: Vec<Share>,
    pub(super) world: usize,
    /// Number of leading steps that are as full as possible: all, or all but one.
    complete: usize,
}

impl Ranks {
    /// Deals out batches, given by their `ends`, one after the other.
    ///
    /// If the batches do not divide evenly, those of the last step are split, at multiples of `multiple`
    /// where possible, until each rank has one; `drop_last` drops a step that is not full.
    pub(super) fn deal(
        self,
        ends: &[usize],
        last_is_full: bool,
        drop_last: bool,
        multiple: usize,
    ) -> Dealt {
        let world = self.world.max(1);
        let starts = std::iter::once(&0).chain(ends);
        let batches = starts.zip(ends);
        let mut shares: Vec<Share> = batches
            .map(|(&start, &end)| Share::new(start, end, Origin::Own))
            .collect();
        let full = shares.len() - usize::from(!last_is_full && !shares.is_empty());
        let complete = full / world;
        if drop_last {
            shares.truncate(complete * world);
        } else {
            let whole = shares.len() / world * world;
            let rest = shares.split_off(whole);
            shares.extend(self.last_step(&rest, multiple));
        }
        Dealt {
            shares,
            world,
            complete,
        }
    }

    /// Makes the batches of all ranks from the remaining ones.
    fn last_step(self, rest: &[Share], multiple: usize) -> Vec<Share> {
        let parts = parts(rest, self.world);
        let mut step: Vec<Share> = rest
            .iter()
            .zip(parts)
            .flat_map(|(&share, parts)| split(share, parts, multiple))
            .collect();
        let origin = match self.remainder {
            _ if step.is_empty() || step.len() == self.world => return step,
            Remainder::Drop => return Vec::new(),
            Remainder::Repeat => Origin::Repeat,
            Remainder::Mask => Origin::Filler,
        };
        let own = step.len();
        for place in 0..self.world - own {
            step.push(Share {
                origin,
                ..step[place % own]
            });
        }
        step
    }
}

/// Returns the number of parts for each batch, so that there are `world` parts or no batch can be split
/// further, and the largest part is small.
fn parts(batches: &[Share], world: usize) -> Vec<usize> {
    let mut parts = vec![1; batches.len()];
    let mut largest: BinaryHeap<(usize, usize)> = batches
        .iter()
        .enumerate()
        .map(|(place, batch)| (batch.len(), place))
        .collect();
    for _ in batches.len()..world {
        let Some((_, place)) = largest.pop().filter(|&(size, _)| size > 1) else {
            break;
        };
        parts[place] += 1;
        largest.push((batches[place].len().div_ceil(parts[place]), place));
    }
    parts
}

/// Splits a batch into non-empty parts, of sizes as even as `multiple` allows.
fn split(batch: Share, parts: usize, multiple: usize) -> impl Iterator<Item = Share> {
    let (Range { start, .. }, len) = (batch.range(), batch.len());
    let unit = if len / parts < multiple { 1 } else { multiple };
    let cut = move |part: usize| match part {
        part if part == parts => len,
        part => len * part / parts / unit * unit,
    };
    (0..parts).map(move |part| Share::new(start + cut(part), start + cut(part + 1), batch.origin))
}

impl Dealt {
    /// Shuffles the steps, except one that is not full, and the batches of each step.
    pub(super) fn shuffle(&mut self, shuffle: Shuffle) {
        let steps = self.shares.len() / self.world;
        let mut order: Vec<u32> = (0..steps as u32).collect();
        let complete = self.complete.min(steps);
        shuffle
            .draws(Purpose::Steps)
            .shuffle(&mut order[..complete]);
        let mut draws = shuffle.draws(Purpose::Ranks);
        let mut shares = Vec::with_capacity(self.shares.len());
        for step in order {
            let first = shares.len();
            let from = step as usize * self.world;
            shares.extend_from_slice(&self.shares[from..from + self.world]);
            draws.shuffle(&mut shares[first..]);
        }
        self.shares = shares;
    }

    /// Moves the step with the largest `size` of a batch to the front.
    pub(super) fn lead<K: Ord>(&mut self, size: impl Fn(Share) -> K) {
        let steps = self.shares.chunks(self.world).enumerate();
        let largest = steps
            .map(|(place, step)| (step.iter().map(|&share| size(share)).max(), Reverse(place)))
            .max();
        if let Some((_, Reverse(step))) = largest {
            self.shares[..(step + 1) * self.world].rotate_right(self.world);
        }
    }
}
