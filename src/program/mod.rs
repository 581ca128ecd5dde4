//! What is done for one batch: fetch, decode, transform, collate, over the leaves of a sample.
//!
//! Owns the recipe; runs (indices) without Python. Knows neither threads nor order: a
//! [`Stream`](crate::stream::Stream) calls it through [`Work`].

mod leaf;

use std::cell::RefCell;
use std::time::Instant;

pub use leaf::{Image, Leaf};

use crate::collate::{Field, Loose, Slot};
use crate::column::Blobs;
use crate::error::{Error, Result};
use crate::memory::{Destination, lease};
use crate::order::Indices;
use crate::stats::Stages;
use crate::stream::{Chunk, Completion, Fetch, Work};
use crate::sync::Arc;

/// First guess of what a decoded sample costs, in nanoseconds.
const DECODE_NS: f64 = 1_000_000.0;
/// First guess of what copying a row costs: a cache miss, and its bytes.
const ROW_NS: f64 = 20.0;
const ROW_BYTES_PER_NS: f64 = 8.0;

thread_local! {
    static INDICES: RefCell<(Vec<usize>, Vec<usize>)> = RefCell::default();
}

/// The leaves of a sample, over columns of one length.
#[derive(Debug)]
pub struct Program {
    leaves: Vec<Arc<Leaf>>,
    len: usize,
    fetches: bool,
    /// Bytes of a sample's leaves of known shape.
    sample_bytes: usize,
    /// Whether that is all of them.
    planned: bool,
}

/// A batch to make.
#[derive(Debug)]
pub struct Task {
    /// Its samples.
    pub indices: Indices,
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
    batched: bool,
    slots: Vec<Slot>,
}

/// The encoded bytes of a sample, one entry per leaf that has files.
pub type Encoded = Vec<Vec<u8>>;

impl Program {
    /// Makes a program of leaves of one length; None if their lengths differ or there are none.
    pub fn new(leaves: Vec<Arc<Leaf>>) -> Option<Program> {
        let len = leaves.first()?.len();
        let fetches = leaves.iter().any(|leaf| leaf.blobs().is_some());
        if leaves.iter().any(|leaf| leaf.len() != len) {
            return None;
        }
        let sample_bytes = |leaf: &Arc<Leaf>| {
            let elements: usize = leaf.fixed_shape()?.iter().product();
            Some(elements * leaf.dtype().itemsize())
        };
        Some(Program {
            sample_bytes: leaves.iter().filter_map(sample_bytes).sum(),
            planned: leaves.iter().all(|leaf| leaf.fixed_shape().is_some()),
            leaves,
            len,
            fetches,
        })
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The leaves.
    pub fn leaves(&self) -> &[Arc<Leaf>] {
        &self.leaves
    }

    /// Bytes that a batch of `samples` is planned to take; fields of unknown shape count 0.
    pub fn planned_bytes(&self, samples: usize) -> usize {
        self.sample_bytes.saturating_mul(samples)
    }

    /// Whether the shapes of all fields are known before samples are made.
    pub fn is_planned(&self) -> bool {
        self.planned
    }

    /// Makes one sample on the calling thread: the same code, and so the same bits, as in a batch.
    pub fn sample(self: &Arc<Self>, index: i64) -> Result<Vec<Field>> {
        let indices = Indices::list([index]);
        let batch = self.begin(Task {
            indices,
            batched: false,
            destinations: Vec::new(),
        })?;
        let mut stages = Stages::default();
        let mut failures = Vec::new();
        let chunk = if self.fetches {
            Chunk::Fetched(vec![(0, self.read(self.resolve(index)?, &mut stages)?)])
        } else {
            Chunk::Range(0..1)
        };
        self.compute(&batch, chunk, &mut failures, &mut stages);
        match failures.pop() {
            Some((_, error)) => Err(error),
            None => self.finish(batch, &mut stages),
        }
    }

    /// Turns an index as Python understands it into one below the length.
    fn resolve(&self, index: i64) -> Result<usize> {
        let from_start = if index < 0 {
            index + self.len.cast_signed() as i64
        } else {
            index
        };
        usize::try_from(from_start)
            .ok()
            .filter(|&at| at < self.len)
            .ok_or(Error::Index {
                index,
                len: self.len,
            })
    }

    fn read(&self, index: usize, stages: &mut Stages) -> Result<Encoded> {
        let begun = Instant::now();
        let mut encoded = Encoded::new();
        for leaf in &self.leaves {
            if let Some(blobs) = leaf.blobs() {
                let bytes = blobs.fetch(index)?;
                stages.read_bytes += bytes.len() as u64;
                encoded.push(bytes);
            }
        }
        stages.read += begun.elapsed();
        Ok(encoded)
    }

    /// Copies the rows of positions `first..first + indices.len()` of a batch.
    fn copy_rows(
        &self,
        batch: &Making,
        first: usize,
        indices: &[usize],
        starts: &mut Vec<usize>,
    ) -> Result<()> {
        for (leaf, slot) in self.leaves.iter().zip(&batch.slots) {
            if let (Leaf::Rows(rows), Some(writer)) = (&**leaf, slot.writer()) {
                let range = first..first + indices.len();
                let mut out = writer.rows(range).ok_or(Error::Twice { position: first })?;
                rows.gather(indices, starts, &mut out);
            }
        }
        Ok(())
    }

    fn decode(
        &self,
        batch: &Making,
        position: usize,
        index: usize,
        encoded: Encoded,
        stages: &mut Stages,
    ) -> Result<()> {
        let mut encoded = encoded.into_iter();
        for (leaf, slot) in self.leaves.iter().zip(&batch.slots) {
            let Leaf::Image(image) = &**leaf else {
                continue;
            };
            let bytes = encoded.next().unwrap_or_default();
            let begun = Instant::now();
            image.decode(index, &bytes, |decoded| {
                let decoded_at = Instant::now();
                stages.decode += decoded_at - begun;
                if let Some(writer) = slot.writer() {
                    let row = writer.rows(position..position + 1);
                    decoded.write(&mut row.ok_or(Error::Twice { position })?)?;
                } else {
                    let shape = decoded.shape().to_vec();
                    let elements: usize = shape.iter().product();
                    let mut memory = lease(elements * leaf.dtype().itemsize())?;
                    decoded.write(&mut memory)?;
                    slot.keep(position, Loose { memory, shape });
                }
                stages.transform += decoded_at.elapsed();
                Ok(())
            })?;
            Blobs::recycle(bytes);
        }
        Ok(())
    }
}

impl Work for Arc<Program> {
    type Task = Task;
    type Batch = Making;
    type Fetched = Encoded;
    type Output = Vec<Field>;

    fn samples(&self, task: &Task) -> usize {
        task.indices.len()
    }

    fn fetches(&self) -> bool {
        self.fetches
    }

    fn cost_ns(&self) -> f64 {
        if self.fetches {
            DECODE_NS
        } else {
            ROW_NS * self.leaves.len() as f64 + self.planned_bytes(1) as f64 / ROW_BYTES_PER_NS
        }
    }

    fn begin(&self, task: Task) -> Result<Making> {
        let rows = task.indices.len();
        if rows == 0 {
            return Err(Error::Empty);
        }
        let mut destinations = task.destinations.into_iter();
        let slots = self.leaves.iter().map(|leaf| {
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
        let index = self.resolve(batch.indices.get(position))?;
        Ok(Fetch::Ready(self.read(index, stages)?))
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
                    match self.resolve(batch.indices.get(position)) {
                        Ok(index) => indices.push(index),
                        Err(error) => failures.push((position, error)),
                    }
                }
                if failures.is_empty()
                    && let Err(error) = self.copy_rows(batch, range.start, indices, starts)
                {
                    failures.push((range.start, error));
                }
                stages.transform += begun.elapsed();
            }),
            Chunk::Fetched(samples) => INDICES.with_borrow_mut(|(_, starts)| {
                for (position, encoded) in samples {
                    let made = self.resolve(batch.indices.get(position)).and_then(|index| {
                        self.decode(batch, position, index, encoded, stages)?;
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
