//! How samples become one field of a batch.
//!
//! Owns the place where a field is put together. Samples whose shape is known before they are made
//! are written straight into the batch's memory; others are kept apart until all of them are there,
//! then copied once. Stacks as torch's `default_collate` does: unequal shapes are an error.

mod array;
mod fill;
mod list;
mod mask;
mod mismatch;
mod pack;
mod pad;
mod ragged;

use crate::error::{Error, Result};
use crate::memory::{Destination, Dtype, Lease, Writer, lease};
use crate::sync::{Mutex, lock};

pub use array::{Array, Side, copy};
pub use fill::{Element, Fill};
pub use mismatch::Mismatch;
pub use pack::{Bins, Overlong, kept};
pub use pad::{Layout, Pad, Sizes};
pub use ragged::Flat;

use list::by_place;

/// One field of a finished batch.
#[derive(Debug)]
pub enum Field {
    /// Numbers.
    Dense(Dense),
    /// A text for each sample.
    Texts(Vec<Box<str>>),
    /// Bytes for each sample.
    Bytes(Vec<Box<[u8]>>),
    /// Samples that are lists: a field for each place in them.
    Lists(Vec<Field>),
}

impl Field {
    /// Bytes of its values.
    pub fn bytes(&self) -> usize {
        match self {
            Field::Dense(dense) => dense.memory.len(),
            Field::Texts(texts) => texts.iter().map(|text| text.len()).sum(),
            Field::Bytes(all) => all.iter().map(|bytes| bytes.len()).sum(),
            Field::Lists(places) => places.iter().map(Field::bytes).sum(),
        }
    }

    /// Turns a batch of lists of numbers into the numbers of each place, also in lists of lists.
    pub fn by_place(self) -> Result<Field> {
        match self {
            Field::Dense(dense) => by_place(dense).map(Field::Dense),
            Field::Texts(_) | Field::Bytes(_) => Ok(self),
            Field::Lists(places) => {
                let places = places.into_iter().map(Field::by_place);
                places.collect::<Result<_>>().map(Field::Lists)
            }
        }
    }
}

/// Numbers in C order.
#[derive(Debug)]
pub struct Dense {
    /// Their memory.
    pub memory: Destination,
    /// Their shape; `(B, ...)` for a batch.
    pub shape: Vec<usize>,
    /// Their type.
    pub dtype: Dtype,
}

/// A sample that is kept apart.
#[derive(Debug)]
pub struct Loose {
    /// Its bytes, in C order.
    pub memory: Lease,
    /// Its shape.
    pub shape: Vec<usize>,
}

/// Where the samples of one field meet.
#[derive(Debug)]
pub struct Slot {
    dtype: Dtype,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Fixed {
        writer: Writer,
        rows: usize,
        shape: Vec<usize>,
    },
    Loose(Mutex<Vec<Option<Loose>>>),
    Texts(Mutex<Vec<Box<str>>>),
    Bytes(Mutex<Vec<Box<[u8]>>>),
    Lists(Vec<Slot>),
    Refused(Error),
}

impl Slot {
    /// Makes a slot for `rows` samples of one `shape`, written to `memory`.
    pub fn fixed(memory: Destination, rows: usize, shape: Vec<usize>, dtype: Dtype) -> Slot {
        let row_bytes = shape.iter().product::<usize>() * dtype.itemsize();
        Slot {
            dtype,
            kind: Kind::Fixed {
                writer: Writer::new(memory, rows, row_bytes),
                rows,
                shape,
            },
        }
    }

    /// Makes a slot for `rows` samples whose shapes are not known yet.
    pub fn loose(rows: usize, dtype: Dtype) -> Slot {
        let samples = std::iter::repeat_with(|| None).take(rows).collect();
        Slot {
            dtype,
            kind: Kind::Loose(Mutex::new(samples)),
        }
    }

    /// Makes a slot for `rows` texts.
    pub fn texts(rows: usize) -> Slot {
        let texts = vec![Box::default(); rows];
        Slot {
            dtype: Dtype::UInt8,
            kind: Kind::Texts(Mutex::new(texts)),
        }
    }

    /// Makes a slot for the bytes of `rows` samples.
    pub fn bytes(rows: usize) -> Slot {
        let all = vec![Box::default(); rows];
        Slot {
            dtype: Dtype::UInt8,
            kind: Kind::Bytes(Mutex::new(all)),
        }
    }

    /// Makes a slot for samples that are lists of one length, of a slot for each place in them.
    pub fn lists(places: Vec<Slot>) -> Slot {
        Slot {
            dtype: Dtype::UInt8,
            kind: Kind::Lists(places),
        }
    }

    /// Makes a slot of samples that do not fit together; the error comes once they are all made.
    pub fn refused(error: Error) -> Slot {
        Slot {
            dtype: Dtype::UInt8,
            kind: Kind::Refused(error),
        }
    }

    /// The writer of the batch's memory, if shapes are known.
    pub fn writer(&self) -> Option<&Writer> {
        match &self.kind {
            Kind::Fixed { writer, .. } => Some(writer),
            _ => None,
        }
    }

    /// The writer of the batch's memory and the shape of each of its samples, if shapes are known.
    pub fn fixed_rows(&self) -> Option<(&Writer, &[usize])> {
        match &self.kind {
            Kind::Fixed { writer, shape, .. } => Some((writer, shape)),
            _ => None,
        }
    }

    /// The slots of each place in lists, if samples are such.
    pub fn places(&self) -> Option<&[Slot]> {
        match &self.kind {
            Kind::Lists(places) => Some(places),
            _ => None,
        }
    }

    /// Keeps the sample at `position` until all are there; only for shapes that are not known.
    pub fn keep(&self, position: usize, sample: Loose) {
        if let Kind::Loose(samples) = &self.kind {
            lock(samples)[position] = Some(sample);
        }
    }

    /// Keeps texts, from `position` on.
    pub fn keep_texts(&self, position: usize, texts: impl IntoIterator<Item = Box<str>>) {
        if let Kind::Texts(kept) = &self.kind {
            for (place, text) in lock(kept)[position..].iter_mut().zip(texts) {
                *place = text;
            }
        }
    }

    /// Keeps the bytes of samples, from `position` on.
    pub fn keep_bytes(&self, position: usize, all: impl IntoIterator<Item = Box<[u8]>>) {
        if let Kind::Bytes(kept) = &self.kind {
            for (place, bytes) in lock(kept)[position..].iter_mut().zip(all) {
                *place = bytes;
            }
        }
    }

    /// Joins the samples. Without `batched` there is one, and it gets no leading dimension.
    pub fn finish(self, batched: bool) -> Result<Field> {
        let dtype = self.dtype;
        match self.kind {
            Kind::Fixed {
                writer,
                rows,
                mut shape,
            } => {
                if batched {
                    shape.insert(0, rows);
                }
                Ok(Field::Dense(Dense {
                    memory: writer.finish(),
                    shape,
                    dtype,
                }))
            }
            Kind::Loose(samples) => {
                let samples = std::mem::take(&mut *lock(&samples));
                let samples: Option<Vec<Loose>> = samples.into_iter().collect();
                stack(samples.ok_or(Error::Abandoned)?, batched, dtype).map(Field::Dense)
            }
            Kind::Texts(texts) => Ok(Field::Texts(std::mem::take(&mut *lock(&texts)))),
            Kind::Bytes(all) => Ok(Field::Bytes(std::mem::take(&mut *lock(&all)))),
            Kind::Lists(places) => {
                let places = places.into_iter().map(|place| place.finish(batched));
                places.collect::<Result<_>>().map(Field::Lists)
            }
            Kind::Refused(error) => Err(error),
        }
    }
}

fn stack(mut samples: Vec<Loose>, batched: bool, dtype: Dtype) -> Result<Dense> {
    if !batched && let Some(Loose { memory, shape }) = samples.pop() {
        return Ok(Dense {
            memory: Destination::Lease(memory),
            shape,
            dtype,
        });
    }
    let mut shape = samples
        .first()
        .map(|first| first.shape.clone())
        .unwrap_or_default();
    if let Some(position) = samples.iter().position(|sample| sample.shape != shape) {
        let other = samples.swap_remove(position).shape;
        return Err(Error::Unequal {
            first: shape,
            other,
            position,
        });
    }
    let row_bytes = shape.iter().product::<usize>() * dtype.itemsize();
    let mut memory = lease(samples.len() * row_bytes)?;
    for (sample, row) in samples
        .iter()
        .zip(memory.chunks_exact_mut(row_bytes.max(1)))
    {
        row.copy_from_slice(&sample.memory);
    }
    shape.insert(0, samples.len());
    Ok(Dense {
        memory: Destination::Lease(memory),
        shape,
        dtype,
    })
}
