//! Lists in a batch: one slot for each list position, as in torch's `default_collate`.
//!
//! Owns the decision when lists are arrays: nested lists of numbers with one length at each depth, unless the
//! caller wants lists.

use crate::collate::{Shape, Slot};
use crate::column::{Column, Kind, Scratch, holder};
use crate::error::{Error, Result};
use crate::memory::{Destination, lease};

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
        return Err(if as_lists {
            Error::UnequalLists {
                first: shape.to_vec(),
                other: other.to_vec(),
            }
        } else {
            Error::Unequal {
                first: shape.to_vec(),
                other: other.to_vec(),
                position,
            }
        });
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
pub(super) fn put(
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
        _ if kind == Kind::Text => {
            slot.keep_texts(position, column.texts(&[at])?);
            Ok(())
        }
        _ if kind == Kind::Bytes => {
            slot.keep_bytes(position, column.bytes(&[at])?);
            Ok(())
        }
        _ => {
            let Some(writer) = slot.writer() else {
                return Ok(()); // the samples do not fit together: `Slot::finish` returns the error
            };
            let row = writer.rows(position..position + 1);
            column.gather(
                &[at],
                scratch,
                &mut row.ok_or(Error::WrittenTwice { position })?,
            )
        }
    }
}
