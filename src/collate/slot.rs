//! Where the samples of one field meet, each written or kept by whichever thread made it.

use super::joined::Joined;
use super::packed::Packed;
use super::padded::Padded;
use super::{Dense, Field, Loose, Seat, Shape, bytes_of};
use crate::error::{Error, Result};
use crate::memory::{Destination, Dtype, RowsMut, Writer, lease};
use crate::planted::{Bug, planted};
use crate::sync::{Mutex, lock};

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
        shape: Shape,
    },
    Loose(Mutex<Vec<Option<Loose>>>),
    Texts(Mutex<Vec<Box<str>>>),
    Bytes(Mutex<Vec<Box<[u8]>>>),
    Lists(Vec<Slot>),
    Padded(Box<Padded>),
    Joined(Joined),
    Packed(Packed),
    Apart(Vec<Slot>),
    Refused(Error),
}

impl Slot {
    /// Makes a slot for `rows` samples of one `shape`, written to `memory`.
    pub fn fixed(memory: Destination, rows: usize, shape: Shape, dtype: Dtype) -> Slot {
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

    /// Makes a slot of samples that stay by themselves, of a slot for each.
    pub fn apart(slots: Vec<Slot>) -> Slot {
        Slot {
            dtype: Dtype::UInt8,
            kind: Kind::Apart(slots),
        }
    }

    pub(super) fn padded(padded: Padded) -> Slot {
        Slot {
            dtype: Dtype::UInt8,
            kind: Kind::Padded(Box::new(padded)),
        }
    }

    pub(super) fn joined(joined: Joined) -> Slot {
        Slot {
            dtype: Dtype::UInt8,
            kind: Kind::Joined(joined),
        }
    }

    pub(super) fn packed(packed: Packed) -> Slot {
        Slot {
            dtype: Dtype::UInt8,
            kind: Kind::Packed(packed),
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

    /// Shape of the sample at `position`, where samples of different shapes were announced.
    pub fn announced(&self, position: usize) -> Option<&[usize]> {
        match &self.kind {
            Kind::Padded(padded) => Some(padded.shape(position)),
            Kind::Joined(joined) => Some(joined.shape(position)),
            Kind::Packed(packed) => Some(packed.shape(position)),
            _ => None,
        }
    }

    /// Claims the places of neighbouring samples, if padded ones fill theirs.
    pub fn block(&self, first: usize, samples: usize) -> Result<Option<RowsMut<'_>>> {
        match &self.kind {
            Kind::Padded(padded) => padded.block(first, samples),
            _ => Ok(None),
        }
    }

    /// Has neighbouring samples written to their places, if they are padded ones that lie there in one piece
    /// each, in their own element type; returns whether they were. `write` gets the number of one among them,
    /// and its place.
    pub fn write(
        &self,
        first: usize,
        samples: usize,
        write: impl FnMut(usize, &mut [u8]) -> Result<()>,
    ) -> Result<bool> {
        match &self.kind {
            Kind::Padded(padded) => padded.write(first, samples, write),
            _ => Ok(false),
        }
    }

    /// Returns where the sample at `position` is written, of this shape and with elements of `itemsize`
    /// bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`]: another shape was announced.
    pub fn seat(&self, position: usize, shape: &[usize], itemsize: usize) -> Result<Seat<'_>> {
        let announced = match &self.kind {
            Kind::Fixed { shape, .. } => Some(&shape[..]),
            _ => self.announced(position),
        };
        if let Some(announced) = announced.filter(|&announced| announced != shape) {
            return Err(Error::Shape {
                expected: announced.to_vec(),
                found: shape.to_vec(),
            });
        }
        match &self.kind {
            Kind::Fixed { writer, .. } => {
                let row = writer.rows(position..position + 1);
                Ok(Seat::row(row.ok_or(Error::Twice { position })?))
            }
            Kind::Padded(padded) => padded.seat(position),
            Kind::Joined(joined) => joined.seat(position),
            Kind::Packed(packed) => packed.seat(position),
            _ => {
                let memory = lease(bytes_of(shape, itemsize))?;
                let shape = Shape::from_slice(shape);
                Ok(Seat::loose(self, position, Loose { memory, shape }))
            }
        }
    }

    /// The slots of samples that stay by themselves.
    pub fn each(&self) -> Option<&[Slot]> {
        match &self.kind {
            Kind::Apart(slots) => Some(slots),
            _ => None,
        }
    }

    /// The slot that the sample at `position` is written to, and its position in that.
    pub fn of(&self, position: usize) -> (&Slot, usize) {
        match self.each() {
            Some(slots) => (&slots[position], 0),
            None => (self, position),
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

    /// Writes samples to their seats, and joins them.
    pub fn filled(self, samples: &[Dense], dtype: Dtype) -> Result<Field> {
        for (position, sample) in samples.iter().enumerate() {
            let mut seat = self.seat(position, &sample.shape, dtype.itemsize())?;
            seat.copy_from_slice(sample.memory.bytes());
            seat.leave();
        }
        self.finish(true)
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
                let mut memory = writer.finish();
                if planted(Bug::WrongByte)
                    && let Some(byte) = memory.bytes_mut().last_mut()
                {
                    *byte ^= 1;
                }
                Ok(Field::Dense(Dense {
                    memory,
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
            Kind::Padded(padded) => padded.finish().map(Field::Padded),
            Kind::Joined(joined) => joined.finish().map(Field::Joined),
            Kind::Packed(packed) => packed.finish().map(Field::Packed),
            Kind::Apart(slots) => {
                let each = slots.into_iter().map(|slot| slot.finish(false));
                each.collect::<Result<_>>().map(Field::Apart)
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
            first: shape.into_vec(),
            other: other.into_vec(),
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
