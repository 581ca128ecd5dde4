//! Copies samples that need no decoding, and makes the slots of lists: one for each list position, as in torch's
//! `default_collate`. Lists are arrays if they are nested lists of numbers with one length at each depth, unless the
//! caller wants lists.

use std::ops::Range;

use super::run::{FieldSlot, Run};
use crate::collate::{Shape, Slot};
use crate::column::{Column, Kind, Ragged, Scratch, holder};
use crate::error::{Error, Result};
use crate::memory::{Destination, lease};

/// Number of samples to prefetch ahead.
const AHEAD: usize = 8;

impl Run {
    /// Copies the samples at positions `first..first + indices.len()` of a batch, of columns that are not decoded.
    /// Of several bad samples the error names the first one, whichever leaf it is bad in.
    pub(super) fn copy(
        &self,
        parts: &[FieldSlot],
        first: usize,
        mut indices: &[usize],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut copied = Ok(());
        let leaves = self.program.leaves.iter().zip(parts);
        for (leaf, part) in leaves {
            if indices.is_empty() {
                break;
            }
            let spans = part.spans.get(first..first + indices.len());
            let samples = Samples {
                leaf: &**leaf,
                indices,
                spans: spans.zip(leaf.ragged()),
            };
            if let Err(error) = copy(samples, &part.slot, first, scratch) {
                let (place, error) = error.placed();
                indices = &indices[..place]; // other leaves may fail in front of it
                copied = Err(error.at(place));
            }
        }
        copied
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
            let mut out = writer.rows(range)?;
            leaf.gather(indices, scratch, &mut out)?;
        }
        (Kind::Rows | Kind::Ragged, None) => copy_each(samples, slot, first, scratch)?,
        (Kind::Text | Kind::Bytes, _) if !layout.fetches => keep(leaf, indices, slot, first)?,
        (Kind::Lists, None) if slot.expected_shape(first).is_some() => {
            copy_each(samples, slot, first, scratch)?;
        }
        (Kind::Lists, None) => {
            for (place, &index) in indices.iter().enumerate() {
                let put = put(leaf, index, slot, first + place, scratch);
                put.map_err(|error| error.placed().1.at(place))?; // of the sample, not of its item
            }
        }
        _ => {}
    }
    Ok(())
}

/// Keeps the texts, or the bytes, of samples from `position` on; does nothing for samples of any other kind.
pub(super) fn keep(
    column: &dyn Column,
    indices: &[usize],
    slot: &Slot,
    position: usize,
) -> Result<()> {
    match column.layout().kind {
        Kind::Text => {
            let all = column.bytes(indices)?.into_iter().zip(indices);
            let texts = all.enumerate().map(|(place, (bytes, &index))| {
                let text = String::from_utf8(bytes.into_vec()).map_err(|error| Error::Utf8 {
                    index,
                    source: error.utf8_error(),
                });
                text.map(String::into_boxed_str)
                    .map_err(|error| error.at(place))
            });
            slot.keep_texts(position, texts.collect::<Result<Vec<_>>>()?);
        }
        Kind::Bytes => slot.keep_bytes(position, column.bytes(indices)?),
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

/// Makes the slot of samples, at least one, each given as [`holder`] returns it.
///
/// # Errors
///
/// The samples do not fit together: torch's error.
pub(super) fn slot(samples: &[(&dyn Column, usize)], as_lists: bool) -> Result<Slot> {
    let array = |&(column, at): &(&dyn Column, usize)| match column.lists() {
        Some(_) if as_lists => Ok(None),
        _ => column.shape(at),
    };
    let shapes = samples.iter().map(array).collect::<Result<Vec<_>>>()?;
    if let Some(Some(shape)) = shapes.first() {
        return fixed(samples[0].0, shape, &shapes, as_lists);
    }
    let (first, at) = match samples
        .first()
        .map(|&(column, at)| (column.lists(), column, at))
    {
        Some((Some(lists), _, at)) => (lists, at),
        Some((None, column, _)) if column.layout().kind == Kind::Bytes => {
            return Ok(Slot::bytes(samples.len()));
        }
        _ => return Ok(Slot::texts(samples.len())),
    };
    let len = first.range(at)?.len();
    let unequal = |other| Error::UnequalLists {
        first: vec![len],
        other,
    };
    let starts = samples.iter().map(|&(column, at)| match column.lists() {
        Some(lists) => {
            let range = lists.range(at)?;
            let fits = range.len() == len;
            fits.then_some((lists, range.start))
                .ok_or_else(|| unequal(vec![range.len()]))
        }
        None => Err(unequal(Vec::new())),
    });
    let starts = starts.collect::<Result<Vec<_>>>()?;
    let places = (0..len).map(|place| {
        let items = starts
            .iter()
            .map(|(lists, start)| holder(lists.items(), start + place));
        slot(&items.collect::<Result<Vec<_>>>()?, as_lists)
    });
    Ok(Slot::lists(places.collect::<Result<_>>()?))
}

/// Makes the slot of samples that are arrays of one shape, that of the first.
fn fixed(
    column: &dyn Column,
    shape: &[usize],
    shapes: &[Option<Shape>],
    as_lists: bool,
) -> Result<Slot> {
    let dtype = column.layout().dtype;
    if let Some(position) = shapes.iter().position(Option::is_none) {
        return Err(Error::NotTensor { position });
    }
    let mut others = shapes.iter().flatten().enumerate();
    if let Some((position, other)) = others.find(|(_, other)| other[..] != *shape) {
        return Err(Error::unequal(shape, other, position, as_lists));
    }
    let bytes = shape.iter().product::<usize>() * dtype.itemsize();
    let memory = lease(bytes.saturating_mul(shapes.len()))?; // saturates: the allocation then fails
    let memory = Destination::Lease(memory);
    Ok(Slot::fixed(
        memory,
        shapes.len(),
        Shape::from_slice(shape),
        dtype,
    ))
}

/// Copies the sample of a column at `index` to `position` of the slot that [`slot`] made.
fn put(
    column: &dyn Column,
    index: usize,
    slot: &Slot,
    position: usize,
    scratch: &mut Scratch,
) -> Result<()> {
    let (column, at) = holder(column, index)?;
    let kind = column.layout().kind;
    match (column.lists(), slot.places()) {
        (Some(lists), Some(places)) => {
            let range = lists.range(at)?;
            if range.len() != places.len() {
                return Err(lists.changed(at));
            }
            range
                .zip(places)
                .try_for_each(|(item, place)| put(lists.items(), item, place, position, scratch))
        }
        _ if matches!(kind, Kind::Text | Kind::Bytes) => keep(column, &[at], slot, position),
        _ => {
            let Some(writer) = slot.writer() else {
                return Ok(()); // the samples do not fit together: `Slot::finish` returns the error
            };
            column.gather(&[at], scratch, &mut writer.rows(position..position + 1)?)
        }
    }
}
