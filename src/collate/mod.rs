//! How samples become one field of a batch.
//!
//! Owns the place where a field is put together. Samples whose shape is known before they are made
//! are written straight into the batch's memory; others are kept apart until all of them are there,
//! then copied once. Stacks as torch's `default_collate` does: unequal shapes are an error.

use crate::error::{Error, Result};
use crate::memory::{Destination, Dtype, Lease, Writer, lease};
use crate::sync::{Mutex, lock};

/// One field of a finished batch: dense, in C order.
#[derive(Debug)]
pub struct Field {
    /// Its memory.
    pub memory: Destination,
    /// Its shape; `(B, ...)` for a batch.
    pub shape: Vec<usize>,
    /// Its element type.
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

    /// The writer of the batch's memory, if shapes are known.
    pub fn writer(&self) -> Option<&Writer> {
        match &self.kind {
            Kind::Fixed { writer, .. } => Some(writer),
            Kind::Loose(_) => None,
        }
    }

    /// Keeps the sample at `position` until all are there; only for shapes that are not known.
    pub fn keep(&self, position: usize, sample: Loose) {
        if let Kind::Loose(samples) = &self.kind {
            lock(samples)[position] = Some(sample);
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
                Ok(Field {
                    memory: writer.finish(),
                    shape,
                    dtype,
                })
            }
            Kind::Loose(samples) => {
                let samples = std::mem::take(&mut *lock(&samples));
                let samples: Option<Vec<Loose>> = samples.into_iter().collect();
                stack(samples.ok_or(Error::Abandoned)?, batched, dtype)
            }
        }
    }
}

fn stack(mut samples: Vec<Loose>, batched: bool, dtype: Dtype) -> Result<Field> {
    if !batched && let Some(Loose { memory, shape }) = samples.pop() {
        return Ok(Field {
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
    Ok(Field {
        memory: Destination::Lease(memory),
        shape,
        dtype,
    })
}
