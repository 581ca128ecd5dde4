//! The memory of one field while its batch is being made; any thread may write a sample.

use super::packed::Packed;
use super::padded::Padded;
use super::ragged::Joined;
use super::sample_mut::Memory;
use super::{Dense, Field, Loose, SampleMut, Shape, bytes_of};
use crate::error::{Error, Result};
use crate::memory::{Destination, Dtype, RowsMut, Writer, lease};
use crate::planted::{Bug, planted};
use crate::sync::{Mutex, lock};

/// The memory of one field while its batch is being made.
#[derive(Debug)]
pub struct Slot(Storage);

#[derive(Debug)]
enum Storage {
    Fixed {
        writer: Writer,
        rows: usize,
        shape: Shape,
        dtype: Dtype,
    },
    Loose {
        samples: Mutex<Vec<Option<Loose>>>,
        dtype: Dtype,
    },
    Texts(Mutex<Vec<Box<str>>>),
    Bytes(Mutex<Vec<Box<[u8]>>>),
    Lists(Vec<Slot>),
    Padded(Box<Padded>),
    Joined(Joined),
    Packed(Packed),
    Separate(Vec<Slot>),
    Refused(Error),
}

impl Slot {
    /// Makes a slot for `rows` samples of one `shape`, written to `memory`.
    pub fn fixed(memory: Destination, rows: usize, shape: Shape, dtype: Dtype) -> Slot {
        let row_bytes = shape.iter().product::<usize>() * dtype.itemsize();
        Slot(Storage::Fixed {
            writer: Writer::new(memory, rows, row_bytes),
            rows,
            shape,
            dtype,
        })
    }

    /// Makes a slot for `rows` samples of unknown shapes.
    pub fn loose(rows: usize, dtype: Dtype) -> Slot {
        let samples = std::iter::repeat_with(|| None).take(rows).collect();
        let samples = Mutex::new(samples);
        Slot(Storage::Loose { samples, dtype })
    }

    /// Makes a slot for `rows` texts.
    pub fn texts(rows: usize) -> Slot {
        let texts = vec![Box::default(); rows];
        Slot(Storage::Texts(Mutex::new(texts)))
    }

    /// Makes a slot for the bytes of `rows` samples.
    pub fn bytes(rows: usize) -> Slot {
        let all = vec![Box::default(); rows];
        Slot(Storage::Bytes(Mutex::new(all)))
    }

    /// Makes a slot for samples that are lists of one length, with one slot for each list position.
    pub fn lists(places: Vec<Slot>) -> Slot {
        Slot(Storage::Lists(places))
    }

    /// Makes a slot for separate samples, with one slot for each.
    pub fn separate(slots: Vec<Slot>) -> Slot {
        Slot(Storage::Separate(slots))
    }

    pub(super) fn padded(padded: Padded) -> Slot {
        Slot(Storage::Padded(Box::new(padded)))
    }

    pub(super) fn joined(joined: Joined) -> Slot {
        Slot(Storage::Joined(joined))
    }

    pub(super) fn packed(packed: Packed) -> Slot {
        Slot(Storage::Packed(packed))
    }

    /// Makes a slot for samples that do not fit together; [`Slot::finish`] returns the error.
    pub fn refused(error: Error) -> Slot {
        Slot(Storage::Refused(error))
    }

    /// Returns the writer of the batch's memory, if all samples have one known shape.
    pub fn writer(&self) -> Option<&Writer> {
        match &self.0 {
            Storage::Fixed { writer, .. } => Some(writer),
            _ => None,
        }
    }

    /// Returns the expected shape of the sample at `position`, in a field of known but different shapes.
    pub fn expected_shape(&self, position: usize) -> Option<&[usize]> {
        match &self.0 {
            Storage::Padded(padded) => Some(padded.shape(position)),
            Storage::Joined(joined) => Some(joined.shape(position)),
            Storage::Packed(packed) => Some(packed.shape(position)),
            _ => None,
        }
    }

    /// Claims the rows of neighbouring samples, if they are padded and fill them.
    pub fn block(&self, first: usize, samples: usize) -> Result<Option<RowsMut<'_>>> {
        match &self.0 {
            Storage::Padded(padded) => padded.block(first, samples),
            _ => Ok(None),
        }
    }

    /// Calls `write` for neighbouring samples, with the number of each among them and its memory, if they are
    /// padded, contiguous in their rows, and not cast; returns false otherwise.
    pub fn write(
        &self,
        first: usize,
        samples: usize,
        write: impl FnMut(usize, &mut [u8]) -> Result<()>,
    ) -> Result<bool> {
        match &self.0 {
            Storage::Padded(padded) => padded.write(first, samples, write),
            _ => Ok(false),
        }
    }

    /// Claims the memory for the sample at `position`, of this shape and with elements of `itemsize` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`]: another shape was expected.
    pub fn sample_mut(
        &self,
        position: usize,
        shape: &[usize],
        itemsize: usize,
    ) -> Result<SampleMut<'_>> {
        let expected_shape = match &self.0 {
            Storage::Fixed { shape, .. } => Some(&shape[..]),
            _ => self.expected_shape(position),
        };
        if let Some(expected_shape) =
            expected_shape.filter(|&expected_shape| expected_shape != shape)
        {
            return Err(Error::Shape {
                expected: expected_shape.to_vec(),
                found: shape.to_vec(),
            });
        }
        match &self.0 {
            Storage::Fixed { writer, .. } => {
                let row = writer.rows(position..position + 1)?;
                let all = 0..row.len();
                Ok(SampleMut(Memory::Row(row, all)))
            }
            Storage::Padded(padded) => padded.sample_mut(position),
            Storage::Joined(joined) => joined.sample_mut(position),
            Storage::Packed(packed) => packed.sample_mut(position),
            _ => {
                let memory = lease(bytes_of(shape, itemsize))?;
                let shape = Shape::from_slice(shape);
                let loose = Loose { memory, shape };
                Ok(SampleMut(Memory::Loose(self, position, loose)))
            }
        }
    }

    /// Returns the slots of separate samples.
    pub fn each(&self) -> Option<&[Slot]> {
        match &self.0 {
            Storage::Separate(slots) => Some(slots),
            _ => None,
        }
    }

    /// Returns the slot of the sample at `position`, and its position in that.
    pub fn of(&self, position: usize) -> (&Slot, usize) {
        match self.each() {
            Some(slots) => (&slots[position], 0),
            None => (self, position),
        }
    }

    /// Returns the slots of the list positions, if samples are lists.
    pub fn places(&self) -> Option<&[Slot]> {
        match &self.0 {
            Storage::Lists(places) => Some(places),
            _ => None,
        }
    }

    /// Keeps the sample at `position` until all are there; only for unknown shapes.
    pub fn keep(&self, position: usize, sample: Loose) {
        if let Storage::Loose { samples, .. } = &self.0 {
            lock(samples)[position] = Some(sample);
        }
    }

    /// Keeps texts, from `position` on.
    pub fn keep_texts(&self, position: usize, texts: impl IntoIterator<Item = Box<str>>) {
        if let Storage::Texts(kept) = &self.0 {
            for (place, text) in lock(kept)[position..].iter_mut().zip(texts) {
                *place = text;
            }
        }
    }

    /// Keeps the bytes of samples, from `position` on.
    pub fn keep_bytes(&self, position: usize, all: impl IntoIterator<Item = Box<[u8]>>) {
        if let Storage::Bytes(kept) = &self.0 {
            for (place, bytes) in lock(kept)[position..].iter_mut().zip(all) {
                *place = bytes;
            }
        }
    }

    /// Writes samples to the slot, and finishes it.
    pub fn filled(self, samples: &[Dense], dtype: Dtype) -> Result<Field> {
        for (position, sample) in samples.iter().enumerate() {
            let mut buffer = self.sample_mut(position, &sample.shape, dtype.itemsize())?;
            buffer.copy_from_slice(sample.memory.bytes());
            buffer.commit();
        }
        self.finish(true)
    }

    /// Returns the field. Without `batched` there is one sample, and it gets no leading dimension.
    pub fn finish(self, batched: bool) -> Result<Field> {
        match self.0 {
            Storage::Fixed {
                writer,
                rows,
                mut shape,
                dtype,
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
            Storage::Loose { samples, dtype } => {
                let samples = std::mem::take(&mut *lock(&samples));
                let samples: Option<Vec<Loose>> = samples.into_iter().collect();
                stack(samples.ok_or(Error::Abandoned)?, batched, dtype).map(Field::Dense)
            }
            Storage::Texts(texts) => Ok(Field::Texts(std::mem::take(&mut *lock(&texts)))),
            Storage::Bytes(all) => Ok(Field::Bytes(std::mem::take(&mut *lock(&all)))),
            Storage::Lists(places) => {
                let places = places.into_iter().map(|place| place.finish(batched));
                places.collect::<Result<_>>().map(Field::Lists)
            }
            Storage::Padded(padded) => padded.finish().map(Field::Padded),
            Storage::Joined(joined) => joined.finish().map(Field::Joined),
            Storage::Packed(packed) => packed.finish().map(Field::Packed),
            Storage::Separate(slots) => {
                let each = slots.into_iter().map(|slot| slot.finish(false));
                each.collect::<Result<_>>().map(Field::Separate)
            }
            Storage::Refused(error) => Err(error),
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
        let other = &samples[position].shape;
        return Err(Error::unequal(&shape, other, position, false));
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
