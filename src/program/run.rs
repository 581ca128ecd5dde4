//! A program at work for one iterator: its batches, as the engine sees them.

use std::cell::RefCell;
use std::time::Instant;

use super::image::Decoded;
use super::{Encoded, Leaf, Options, Program};
use crate::collate::{Field, Loose, Slot};
use crate::column::Blobs;
use crate::error::{Error, Result};
use crate::memory::{Destination, lease};
use crate::order::Indices;
use crate::stats::Stages;
use crate::stream::{Chunk, Completion, Fetch, Work};
use crate::sync::Arc;

thread_local! {
    static INDICES: RefCell<(Vec<usize>, Vec<usize>)> = RefCell::default();
}

/// A program, and what one iterator wants of it.
#[derive(Clone, Debug)]
pub struct Run {
    /// What is made.
    pub program: Arc<Program>,
    /// How.
    pub options: Options,
}

/// A batch to make.
#[derive(Debug)]
pub struct Task {
    /// Its samples.
    pub indices: Indices,
    /// Place of its first sample in the iterator's stream of samples.
    pub first: u64,
    /// Whether fields get a leading batch dimension; otherwise there is exactly one index.
    pub batched: bool,
    /// Memory that fields must be written to; empty, or one entry per leaf, where None leaves it
    /// to the program.
    pub destinations: Vec<Option<Destination>>,
}

/// A batch in the making.
#[derive(Debug)]
pub struct Making {
    indices: Indices,
    first: u64,
    batched: bool,
    slots: Vec<Slot>,
}

impl Run {
    /// Copies the rows of positions `first..first + indices.len()` of a batch.
    fn copy_rows(
        &self,
        batch: &Making,
        first: usize,
        indices: &[usize],
        starts: &mut Vec<usize>,
    ) -> Result<()> {
        for (leaf, slot) in self.program.leaves.iter().zip(&batch.slots) {
            if let (Leaf::Rows(rows), Some(writer)) = (&**leaf, slot.writer()) {
                let range = first..first + indices.len();
                let mut out = writer.rows(range).ok_or(Error::Twice { position: first })?;
                rows.gather(indices, starts, &mut out);
            }
        }
        Ok(())
    }

    /// Makes the images of one sample.
    fn make_images(
        &self,
        batch: &Making,
        position: usize,
        index: usize,
        encoded: Encoded,
        stages: &mut Stages,
    ) -> Result<()> {
        let key = self.options.key(index, batch.first + position as u64);
        let mut encoded = encoded.into_iter();
        for (leaf, slot) in self.program.leaves.iter().zip(&batch.slots) {
            let Leaf::Image(image) = &**leaf else {
                continue;
            };
            let bytes = match image.blobs() {
                Some(_) => encoded.next().unwrap_or_default(),
                None => Vec::new(),
            };
            let begun = Instant::now();
            image.decode(index, &bytes, key, self.options.switches, |decoded| {
                let decoded_at = Instant::now();
                stages.decode += decoded_at - begun;
                put(decoded, slot, position, leaf.dtype().itemsize())?;
                stages.transform += decoded_at.elapsed();
                Ok(())
            })?;
            if image.blobs().is_some() {
                Blobs::recycle(bytes);
            }
        }
        Ok(())
    }
}

/// Writes a sample to its place in a slot.
fn put(decoded: Decoded<'_>, slot: &Slot, position: usize, itemsize: usize) -> Result<()> {
    if let Some(writer) = slot.writer() {
        let row = writer.rows(position..position + 1);
        return decoded.write(&mut row.ok_or(Error::Twice { position })?);
    }
    let shape = decoded.shape();
    let mut memory = lease(shape.iter().product::<usize>() * itemsize)?;
    decoded.write(&mut memory)?;
    slot.keep(position, Loose { memory, shape });
    Ok(())
}

impl Work for Run {
    type Task = Task;
    type Batch = Making;
    type Fetched = Encoded;
    type Output = Vec<Field>;

    fn samples(&self, task: &Task) -> usize {
        task.indices.len()
    }

    fn fetches(&self) -> bool {
        self.program.fetches
    }

    fn cost_ns(&self) -> f64 {
        self.program.cost_ns()
    }

    fn begin(&self, task: Task) -> Result<Making> {
        let rows = task.indices.len();
        if rows == 0 {
            return Err(Error::Empty);
        }
        let mut destinations = task.destinations.into_iter();
        let slots = self.program.leaves.iter().map(|leaf| {
            let (dtype, given) = (leaf.dtype(), destinations.next().flatten());
            let Some(shape) = leaf.fixed_shape() else {
                return Ok(Slot::loose(rows, dtype));
            };
            let bytes = shape.iter().product::<usize>() * dtype.itemsize() * rows;
            let memory = match given {
                Some(memory) => memory,
                None => Destination::Lease(lease(bytes)?),
            };
            Ok(Slot::fixed(memory, rows, shape, dtype))
        });
        let slots = slots.collect::<Result<_>>()?;
        Ok(Making {
            indices: task.indices,
            first: task.first,
            batched: task.batched,
            slots,
        })
    }

    fn index(&self, batch: &Making, position: usize) -> i64 {
        batch.indices.get(position)
    }

    fn fetch(
        &self,
        batch: &Arc<Making>,
        position: usize,
        _later: &dyn Fn() -> Completion<Self>,
        stages: &mut Stages,
    ) -> Result<Fetch<Encoded>> {
        let index = self.program.resolve(batch.indices.get(position))?;
        Ok(Fetch::Ready(self.program.read(index, stages)?))
    }

    fn fetched_bytes(&self, encoded: &Encoded) -> usize {
        encoded.iter().map(Vec::len).sum()
    }

    fn compute(
        &self,
        batch: &Making,
        chunk: Chunk<Encoded>,
        failures: &mut Vec<(usize, Error)>,
        stages: &mut Stages,
    ) {
        let begun = Instant::now();
        match chunk {
            Chunk::Range(range) => INDICES.with_borrow_mut(|(indices, starts)| {
                indices.clear();
                for position in range.clone() {
                    match self.program.resolve(batch.indices.get(position)) {
                        Ok(index) => indices.push(index),
                        Err(error) => failures.push((position, error)),
                    }
                }
                if !failures.is_empty() {
                    return; // and so does the batch; positions and indices are no pairs
                }
                if let Err(error) = self.copy_rows(batch, range.start, indices, starts) {
                    failures.push((range.start, error));
                }
                stages.transform += begun.elapsed();
                if self.program.has_images {
                    for (position, &index) in range.zip(indices.iter()) {
                        let made = self.make_images(batch, position, index, Vec::new(), stages);
                        failures.extend(made.err().map(|error| (position, error)));
                    }
                }
            }),
            Chunk::Fetched(samples) => INDICES.with_borrow_mut(|(_, starts)| {
                for (position, encoded) in samples {
                    let made =
                        self.program
                            .resolve(batch.indices.get(position))
                            .and_then(|index| {
                                self.make_images(batch, position, index, encoded, stages)?;
                                self.copy_rows(batch, position, &[index], starts)
                            });
                    if let Err(error) = made {
                        failures.push((position, error));
                    }
                }
            }),
        }
    }

    fn finish(&self, batch: Making, stages: &mut Stages) -> Result<Vec<Field>> {
        let begun = Instant::now();
        let fields = batch
            .slots
            .into_iter()
            .map(|slot| slot.finish(batch.batched))
            .collect();
        stages.collate += begun.elapsed();
        fields
    }
}
