//! The copying of samples that need no decoding.

use super::kind::Kind;
use super::leaf::{Leaf, Scratch};
use super::run::Run;
use super::tree;
use crate::collate::Slot;
use crate::error::{Error, Result};

/// How many samples ahead memory is asked for.
const AHEAD: usize = 8;

impl Run {
    /// Copies the samples of positions `first..first + indices.len()` of a batch that need no decoding.
    pub(super) fn copy(
        &self,
        slots: &[Slot],
        first: usize,
        indices: &[usize],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let leaves = self.program.leaves.iter().zip(slots);
        for (leaf, slot) in leaves {
            copy(leaf, slot, first, indices, scratch)?;
        }
        Ok(())
    }
}

fn copy(
    leaf: &Leaf,
    slot: &Slot,
    first: usize,
    indices: &[usize],
    scratch: &mut Scratch,
) -> Result<()> {
    if let Some(each) = slot.each() {
        for (place, (slot, &index)) in each[first..].iter().zip(indices).enumerate() {
            let copied = copy(leaf, slot, 0, &[index], scratch);
            copied.map_err(|error| error.at(place))?;
        }
        return Ok(());
    }
    match (leaf.kind(), slot.writer()) {
        (Kind::Rows | Kind::Ragged | Kind::Lists, Some(writer)) => {
            let range = first..first + indices.len();
            let mut out = writer.rows(range).ok_or(Error::Twice { position: first })?;
            leaf.gather(indices, scratch, &mut out)?;
        }
        (Kind::Rows | Kind::Ragged, None) => seated(leaf, slot, first, indices, scratch)?,
        (Kind::Text, _) if !leaf.fetches() => {
            slot.keep_texts(first, leaf.texts(indices)?);
        }
        (Kind::Bytes, _) if !leaf.fetches() => {
            slot.keep_bytes(first, leaf.all_bytes(indices)?);
        }
        (Kind::Lists, None) if slot.announced(first).is_some() => {
            seated(leaf, slot, first, indices, scratch)?;
        }
        (Kind::Lists, None) => {
            for (position, &index) in (first..).zip(indices) {
                tree::put(leaf, index, slot, position, scratch)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Copies samples of different shapes, each to its place.
fn seated(
    leaf: &Leaf,
    slot: &Slot,
    first: usize,
    indices: &[usize],
    scratch: &mut Scratch,
) -> Result<()> {
    if let Some(mut out) = slot.block(first, indices.len())? {
        return leaf.gather(indices, scratch, &mut out);
    }
    let ask = |at: usize| {
        if let Some(&index) = indices.get(at) {
            leaf.prefetch(index);
        }
    };
    (0..AHEAD).for_each(ask);
    let written = slot.write(first, indices.len(), |at, place| {
        ask(at + AHEAD);
        let gathered = leaf.gather(&[indices[at]], scratch, place);
        gathered.map_err(|error| error.at(at))
    });
    if written? {
        return Ok(());
    }
    let itemsize = leaf.dtype().itemsize();
    for (at, &index) in indices.iter().enumerate() {
        ask(at + AHEAD);
        let Some(shape) = slot.announced(first + at) else {
            return Ok(()); // samples that do not fit together: the batch ends in an error
        };
        let mut seat = slot.seat(first + at, shape, itemsize)?;
        let gathered = leaf.gather(&[index], scratch, &mut seat);
        gathered.map_err(|error| error.at(at))?;
        seat.leave();
    }
    Ok(())
}
