//! Copies samples that need no decoding.

use std::ops::Range;

use super::run::{FieldSlot, Run};
use super::tree;
use crate::collate::Slot;
use crate::column::{Column, Kind, Ragged, Scratch};
use crate::error::{Error, Result};

/// Number of samples to prefetch ahead.
const AHEAD: usize = 8;

impl Run {
    /// Copies the samples at positions `first..first + indices.len()` of a batch, of columns that are not decoded.
    pub(super) fn copy(
        &self,
        parts: &[FieldSlot],
        first: usize,
        indices: &[usize],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let leaves = self.program.leaves.iter().zip(parts);
        for (leaf, part) in leaves {
            let spans = part.spans.get(first..first + indices.len());
            let samples = Samples {
                leaf: &**leaf,
                indices,
                spans: spans.zip(leaf.ragged()),
            };
            copy(samples, &part.slot, first, scratch)?;
        }
        Ok(())
    }
}

/// Samples to copy.
#[derive(Clone, Copy)]
struct Samples<'a> {
    leaf: &'a dyn Column,
    indices: &'a [usize],
    /// The range of each sample and the array that has it, if they are known.
    spans: Option<(&'a [Range<usize>], &'a Ragged)>,
}

impl Samples<'_> {
    /// Prefetches a sample that is copied soon, if there is one.
    fn prefetch(self, at: usize) {
        let Some(&index) = self.indices.get(at) else {
            return;
        };
        match self.spans {
            Some((spans, ragged)) => ragged.prefetch_rows(spans[at].clone()),
            None => self.leaf.prefetch(index),
        }
    }

    /// Copies one of them.
    fn copy(self, at: usize, scratch: &mut Scratch, out: &mut [u8]) -> Result<()> {
        let Some((spans, ragged)) = self.spans else {
            let gathered = self.leaf.gather(&[self.indices[at]], scratch, out);
            return gathered.map_err(|error| error.at(at));
        };
        ragged.copy_rows(spans[at].clone(), scratch, out);
        Ok(())
    }
}

fn copy(samples: Samples<'_>, slot: &Slot, first: usize, scratch: &mut Scratch) -> Result<()> {
    let Samples { leaf, indices, .. } = samples;
    if let Some(each) = slot.each() {
        for (place, (slot, index)) in each[first..].iter().zip(indices).enumerate() {
            let sample = Samples {
                leaf,
                indices: std::slice::from_ref(index),
                spans: None,
            };
            let copied = copy(sample, slot, 0, scratch);
            copied.map_err(|error| error.at(place))?;
        }
        return Ok(());
    }
    let layout = leaf.layout();
    match (layout.kind, slot.writer()) {
        (Kind::Rows | Kind::Ragged | Kind::Lists, Some(writer)) => {
            let range = first..first + indices.len();
            let mut out = writer
                .rows(range)
                .ok_or(Error::WrittenTwice { position: first })?;
            leaf.gather(indices, scratch, &mut out)?;
        }
        (Kind::Rows | Kind::Ragged, None) => copy_each(samples, slot, first, scratch)?,
        (Kind::Text, _) if !layout.fetches => {
            slot.keep_texts(first, leaf.texts(indices)?);
        }
        (Kind::Bytes, _) if !layout.fetches => {
            slot.keep_bytes(first, leaf.bytes(indices)?);
        }
        (Kind::Lists, None) if slot.expected_shape(first).is_some() => {
            copy_each(samples, slot, first, scratch)?;
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

/// Copies samples of different shapes.
fn copy_each(samples: Samples<'_>, slot: &Slot, first: usize, scratch: &mut Scratch) -> Result<()> {
    let Samples { leaf, indices, .. } = samples;
    if let Some(mut out) = slot.block(first, indices.len())? {
        return leaf.gather(indices, scratch, &mut out);
    }
    (0..AHEAD).for_each(|at| samples.prefetch(at));
    let written = slot.write(first, indices.len(), |at, place| {
        samples.prefetch(at + AHEAD);
        samples.copy(at, scratch, place)
    });
    if written? {
        return Ok(());
    }
    let itemsize = leaf.layout().dtype.itemsize();
    for at in 0..indices.len() {
        samples.prefetch(at + AHEAD);
        let Some(shape) = slot.expected_shape(first + at) else {
            return Ok(()); // the samples do not fit together: `Slot::finish` returns the error
        };
        let mut buffer = slot.sample_mut(first + at, shape, itemsize)?;
        samples.copy(at, scratch, &mut buffer)?;
        buffer.commit();
    }
    Ok(())
}
