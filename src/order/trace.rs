//! Some indices of a permutation, without the others: positions traced back to where their indices began.
//!
//! Step `i` swaps positions `i` and `t`. From the last step to the first, an index that is at `t` after the step
//! was at `i` before it; no traced index is at `i` then, but the one that the step made final, which was at `t`.
//! Few swaps move a traced index, so each is tested by a table that stays in the cache of a core.
//!
//! MT19937 draws forward only: one pass keeps its state at the start of each chunk of swaps. Threads make and
//! test chunks, the last first; what they find is followed in order.

use std::collections::BTreeMap;
use std::mem;
use std::ops::Range;

use super::swaps::{BLOCK, Swaps};
use super::table::{TESTED, Table};
use crate::parallel;
use crate::sync::{Mutex, lock};

/// Blocks of a chunk, 40,000 swaps.
const CHUNK: u32 = 64;

/// Threads that are of use: following takes a fifth of the time.
const THREADS: usize = 4;

/// Lists of traced indices, at most.
const LISTS: usize = 1 << 16;

/// No item of a list.
const NONE: u32 = u32::MAX;

/// Returns the indices at `positions`, which must be within the permutation, after all `swaps`.
pub(super) fn trace(mut swaps: Swaps, positions: Range<u32>, threads: usize) -> Vec<u32> {
    let chunks = chunks(&mut swaps, positions.start);
    let mut traced = Traced::new(chunks, swaps.next(), positions.len());
    traced.begin(swaps, positions);
    let traced = Mutex::new(traced);
    parallel::run(threads.min(THREADS), &|| {
        let mut table = Table::new();
        let mut known = 0;
        loop {
            let mut shared = lock(&traced);
            let Some((number, chunk)) = shared.next_chunk() else {
                break;
            };
            for position in &shared.changes[known..] {
                table.flip(*position);
            }
            known = shared.changes.len();
            let (begun, followed) = (shared.begun, shared.followed);
            drop(shared);
            let found = find(chunk, begun, &table, followed);
            lock(&traced).add(number, found);
        }
    });
    let items = mem::take(&mut lock(&traced).items);
    items.into_iter().map(|item| item.position).collect()
}

/// Leaves out the blocks before step `end`; returns the state at the start of each chunk of them.
fn chunks(swaps: &mut Swaps, end: u32) -> Vec<Swaps> {
    let mut blocks = end / BLOCK as u32;
    let mut chunks = Vec::with_capacity(blocks.div_ceil(CHUNK) as usize);
    while blocks > 0 {
        chunks.push(swaps.clone());
        swaps.skip(blocks.min(CHUNK));
        blocks -= blocks.min(CHUNK);
    }
    chunks
}

/// A swap that may move a traced index.
struct Swap {
    step: u32,
    other: u32,
}

/// Returns the swaps of a chunk, before step `end`, that may move a traced index. The table has all positions of
/// these but those below `followed`, where steps move them that are not followed yet.
fn find(mut chunk: Swaps, end: u32, table: &Table, followed: u32) -> Vec<Swap> {
    let mut others = [0; BLOCK];
    let mut found = Vec::new();
    for _ in 0..CHUNK {
        let first = chunk.next();
        if first == end {
            break;
        }
        chunk.draw(&mut others);
        for (first, others) in (first..).step_by(TESTED).zip(others.chunks(TESTED)) {
            let mut hits = table.test(others, followed);
            while hits != 0 {
                let at = hits.trailing_zeros();
                hits &= hits - 1;
                found.push(Swap {
                    step: first + at,
                    other: others[at as usize],
                });
            }
        }
    }
    found
}

/// The indices that are traced.
struct Traced {
    /// The index of each position that is asked for.
    items: Vec<Item>,
    /// The first item of each list of indices whose positions have the same last bits.
    heads: Vec<u32>,
    /// Positions whose bits in a table were set, or cleared again.
    changes: Vec<u32>,
    /// Chunks that no thread has begun, the last one at the end.
    chunks: Vec<Swaps>,
    /// What was found in chunks, by number, as long as chunks behind them are to be followed.
    found: BTreeMap<usize, Vec<Swap>>,
    /// The number of the chunk that was followed last.
    number: usize,
    /// The step behind all chunks.
    begun: u32,
    /// The first of the steps that were followed.
    followed: u32,
}

/// An index that is traced.
#[derive(Clone)]
struct Item {
    /// Where it is before the steps that were followed.
    position: u32,
    /// The next item of its list.
    next: u32,
}

impl Traced {
    fn new(chunks: Vec<Swaps>, begun: u32, count: usize) -> Traced {
        let nowhere = Item {
            position: NONE,
            next: NONE,
        };
        Traced {
            items: vec![nowhere; count],
            heads: vec![NONE; count.next_power_of_two().min(LISTS)],
            changes: Vec::new(),
            number: chunks.len(),
            chunks,
            found: BTreeMap::new(),
            begun,
            followed: begun,
        }
    }

    /// Goes back from the last position that is asked for to the first, and to the start of its block.
    fn begin(&mut self, mut swaps: Swaps, positions: Range<u32>) {
        let steps = self.begun..positions.end;
        let mut others = vec![[0; BLOCK]; steps.len().div_ceil(BLOCK)];
        for others in &mut others {
            swaps.draw(others);
        }
        for (step, &other) in steps.zip(others.as_flattened()).rev() {
            self.follow(step, other);
            if step >= positions.start {
                self.put(step - positions.start, other);
            }
        }
    }

    /// Returns the next chunk and its number.
    fn next_chunk(&mut self) -> Option<(usize, Swaps)> {
        let chunk = self.chunks.pop()?;
        Some((self.chunks.len(), chunk))
    }

    /// Adds what was found in a chunk; follows it if all chunks behind it were followed.
    fn add(&mut self, number: usize, found: Vec<Swap>) {
        self.found.insert(number, found);
        while let Some(next) = self.number.checked_sub(1) {
            let Some(found) = self.found.remove(&next) else {
                break;
            };
            for Swap { step, other } in found.into_iter().rev() {
                self.follow(step, other);
            }
            self.number = next;
            self.followed = next as u32 * CHUNK * BLOCK as u32;
        }
    }

    /// Moves the index that is at `other` after a step, if it is traced, to where it was before.
    fn follow(&mut self, step: u32, other: u32) {
        let head = self.head(other);
        let (mut before, mut item, mut is_shared) = (NONE, self.heads[head], false);
        let mut found = NONE;
        while item != NONE {
            let Item { position, next } = self.items[item as usize];
            if position == other {
                found = item;
                match before {
                    NONE => self.heads[head] = next,
                    before => self.items[before as usize].next = next,
                }
            } else {
                is_shared |= Table::is_same(position, other);
                before = item;
            }
            item = next;
        }
        if found != NONE {
            if !is_shared {
                self.changes.push(other);
            }
            self.put(found, step);
        }
    }

    /// Adds an index to its list.
    fn put(&mut self, item: u32, position: u32) {
        let head = self.head(position);
        let mut is_shared = false;
        let mut other = self.heads[head];
        while other != NONE {
            is_shared |= Table::is_same(self.items[other as usize].position, position);
            other = self.items[other as usize].next;
        }
        if !is_shared {
            self.changes.push(position);
        }
        let next = mem::replace(&mut self.heads[head], item);
        self.items[item as usize] = Item { position, next };
    }

    fn head(&self, position: u32) -> usize {
        position as usize & (self.heads.len() - 1)
    }
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use proptest::prelude::*;

    use super::{BLOCK, CHUNK, Swaps, trace};
    use crate::order::remaining::{Remaining, tests::drawn};

    const SIZE: u32 = CHUNK * BLOCK as u32;

    fn replayed(swaps: Swaps) -> Vec<i64> {
        let mut remaining = Remaining::after(0, swaps, || true).expect("wanted");
        let count = remaining.left();
        drawn(&mut remaining, count)
    }

    #[test]
    fn indices_at_positions_that_share_a_bit_are_told_apart() {
        let (len, start) = (3 << 22, 5 << 21);
        let swaps = Swaps::new(len, 3);
        let found = trace(swaps.clone(), start..start + 30_000, 2);
        let whole = replayed(swaps);
        let expected = &whole[start as usize..][..found.len()];
        assert!(
            found
                .into_iter()
                .map(i64::from)
                .eq(expected.iter().copied())
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn traced_indices_are_those_of_a_replay(
            len in prop_oneof![1_u32..3000, SIZE - 2..SIZE + 3, 2 * SIZE..4 * SIZE],
            seed: u64,
            thousandths in 0_u64..1000,
            count in 0_u32..5000,
            threads in 1_usize..5,
        ) {
            let swaps = Swaps::new(len, seed);
            let whole = replayed(swaps.clone());
            let start = (u64::from(len) * thousandths / 1000) as u32;
            for start in [0, start / BLOCK as u32 * BLOCK as u32, start, len - 1, len] {
                let end = len.min(start + count);
                let found = trace(swaps.clone(), start..end, threads);
                let found: Vec<_> = found.into_iter().map(i64::from).collect();
                prop_assert_eq!(&found, &whole[start as usize..end as usize]);
            }
        }
    }
}
