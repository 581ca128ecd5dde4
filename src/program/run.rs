//! Runs a program for one iterator; implements [`Work`].

use std::cell::RefCell;
use std::time::Instant;

use super::attempts::{Attempts, BadSample};
use super::image::Decoded;
use super::spans::FieldSlot;
use super::tree;
use super::{
    Blob, FallbackDecoder, Fetched, Kind, Leaf, Options, Program, Refusal, Request, Scratch,
};
use crate::collate::{Field, Method, Slot};
use crate::column::Blobs;
use crate::decode::Format;
use crate::error::{Error, Result};
use crate::memory::{Destination, ReadGuard};
use crate::order::Indices;
use crate::stats::Stages;
use crate::stream::{Again, Chunk, Completion, Fetch, Work};
use crate::sync::Arc;

thread_local! {
    static INDICES: RefCell<(Vec<usize>, Scratch)> = RefCell::default();
}

/// A program, with the options of one iterator.
#[derive(Clone, Debug)]
pub struct Run {
    /// The program.
    pub program: Arc<Program>,
    /// The options.
    pub options: Options,
    /// Decodes refused files; without it they stay refused.
    pub fallback: Option<Arc<dyn FallbackDecoder>>,
    /// Keeps the memory that it reads alive.
    _guard: ReadGuard,
}

/// A batch to make.
#[derive(Debug)]
pub struct Task {
    /// Its samples.
    pub indices: Indices,
    /// Position of its first sample in the iterator's stream of samples.
    pub first: u64,
    /// True to give fields a leading batch dimension; otherwise there is exactly one index.
    pub batched: bool,
    /// Memory for the fields. Empty, or for each leaf either the tensors of [`Program::tensors`] or nothing,
    /// so that the program allocates them.
    pub destinations: Vec<Vec<Destination>>,
    /// What earlier attempts at the batch have found; None for the first.
    pub attempts: Option<Box<Attempts>>,
}

/// A batch while it is being made.
#[derive(Debug)]
pub struct OpenBatch {
    pub(super) indices: Indices,
    pub(super) first: u64,
    pub(super) batched: bool,
    pub(super) attempts: Option<Box<Attempts>>,
    parts: Vec<FieldSlot>,
}

impl OpenBatch {
    /// Returns the place of a sample in the iterator's stream of samples.
    fn place(&self, position: usize) -> u64 {
        let attempts = self.attempts.as_ref();
        let position = attempts.map_or(position, |attempts| attempts.source(position));
        self.first + position as u64
    }
}

/// A finished batch.
#[derive(Debug)]
pub struct Finished {
    /// Its fields; none if all samples are bad.
    pub fields: Vec<Field>,
    /// Number of planned samples.
    pub samples: usize,
    /// Number of retries of samples whose storage failed.
    pub retried: u64,
    /// The bad samples, in the order of their positions.
    pub bad: Vec<BadSample>,
}

impl Run {
    /// Makes a run of a program.
    pub fn new(
        program: Arc<Program>,
        options: Options,
        fallback: Option<Arc<dyn FallbackDecoder>>,
    ) -> Run {
        Run {
            program,
            options,
            fallback,
            _guard: ReadGuard::take(),
        }
    }

    /// Makes the slot of a leaf.
    fn part(&self, place: usize, task: &Task, given: Vec<Destination>) -> Result<FieldSlot> {
        let is_ruled = !matches!(self.program.rules[place].method, Method::Stack);
        if is_ruled && self.program.leaves[place].kind().is_numbers() {
            return self.ruled(place, &task.indices, given);
        }
        self.stacked(place, task, given).map(FieldSlot::from)
    }

    /// Makes the slot of a leaf whose samples are stacked.
    fn stacked(&self, place: usize, task: &Task, given: Vec<Destination>) -> Result<Slot> {
        let (leaf, rows) = (&self.program.leaves[place], task.indices.len());
        let shape = match leaf.kind() {
            Kind::Text => return Ok(Slot::texts(rows)),
            Kind::Bytes => return Ok(Slot::bytes(rows)),
            Kind::Ragged | Kind::Array => match self.common_shape(place, &task.indices) {
                Ok(shape) => shape,
                Err(error) => return Ok(Slot::refused(error)),
            },
            Kind::Lists => {
                let slot = self.lists(place, &task.indices);
                return Ok(slot.unwrap_or_else(Slot::refused));
            }
            Kind::Rows | Kind::Image => leaf.fixed_shape(),
        };
        let dtype = leaf.dtype();
        let Some(shape) = shape else {
            return Ok(Slot::loose(rows, dtype));
        };
        let sample = shape.iter().product::<usize>() * dtype.itemsize();
        let bytes = sample.saturating_mul(rows); // saturates: the allocation then fails
        let memory = Destination::or_lease(given.into_iter().next(), bytes)
            .map_err(|error| self.of_only_file(error, leaf, &task.indices))?;
        Ok(Slot::fixed(memory, rows, shape.into(), dtype))
    }

    /// Names the file of a batch of one sample, whose size decided the allocation.
    fn of_only_file(&self, error: Error, leaf: &Leaf, indices: &Indices) -> Error {
        let only = (indices.len() == 1).then(|| self.program.resolve(indices.get(0)));
        match only.and_then(Result::ok).map(|index| leaf.at(index)) {
            Some(Ok((Leaf::Record(record), at))) => error.of_file(record.blobs().path(at)),
            _ => error,
        }
    }

    /// Calls `body` with the samples' indices, each below the length, in memory that the thread keeps.
    pub(super) fn resolved<T>(
        &self,
        indices: &Indices,
        body: impl FnOnce(&[usize]) -> Result<T>,
    ) -> Result<T> {
        INDICES.with_borrow_mut(|(resolved, _)| {
            resolved.clear();
            for position in 0..indices.len() {
                resolved.push(self.program.resolve(indices.get(position))?);
            }
            body(resolved)
        })
    }

    /// Makes the slot of samples that are lists.
    fn lists(&self, place: usize, indices: &Indices) -> Result<Slot> {
        let leaf = &self.program.leaves[place];
        let samples = (0..indices.len())
            .map(|position| leaf.at(self.program.resolve(indices.get(position))?));
        tree::slot(
            &samples.collect::<Result<Vec<_>>>()?,
            self.program.lists[place],
        )
    }

    /// Returns the common shape of the samples; None if one is not known yet.
    fn common_shape(&self, place: usize, indices: &Indices) -> Result<Option<Vec<usize>>> {
        let leaf = &self.program.leaves[place];
        if let Some(shape) = leaf.fixed_shape() {
            return Ok(Some(shape));
        }
        let shape = |position| leaf.shape(self.program.resolve(indices.get(position))?);
        let Some(first) = shape(0)? else {
            return Ok(None);
        };
        for position in 1..indices.len() {
            let Some(other) = shape(position)? else {
                return Ok(None);
            };
            if other != first {
                return Err(if self.program.lists[place] {
                    Error::UnequalLists {
                        first: first.into_vec(),
                        other: other.into_vec(),
                    }
                } else {
                    Error::Unequal {
                        first: first.into_vec(),
                        other: other.into_vec(),
                        position,
                    }
                });
            }
        }
        Ok(Some(first.into_vec()))
    }

    /// Makes the missing leaves of one sample; returns the first file that is refused.
    pub(super) fn make(
        &self,
        batch: &OpenBatch,
        position: usize,
        index: usize,
        fetched: Fetched,
        stages: &mut Stages,
    ) -> Result<Option<Refusal>> {
        let refusal = self.decode(batch, position, index, fetched, stages)?;
        if refusal.is_none() {
            let copied = INDICES.with_borrow_mut(|(_, scratch)| {
                self.copy(&batch.parts, position, &[index], scratch)
            });
            copied.map_err(|error| error.placed().1)?;
        }
        Ok(refusal)
    }

    /// Decodes the missing leaves of one sample, up to an image that is refused.
    fn decode(
        &self,
        batch: &OpenBatch,
        position: usize,
        index: usize,
        fetched: Fetched,
        stages: &mut Stages,
    ) -> Result<Option<Refusal>> {
        let place = batch.place(position);
        let mut blobs = fetched.blobs.into_iter();
        let leaves = self.program.leaves.iter().enumerate();
        for ((number, leaf), part) in leaves.zip(&batch.parts).skip(fetched.first) {
            let (slot, position) = part.slot.of(position);
            let (image, at) = match leaf.at(index)? {
                (Leaf::Image(image), at) => (image, at),
                (Leaf::Record(record), at) => {
                    let begun = Instant::now();
                    record.make(at, blobs.next(), slot, position)?;
                    stages.decode += begun.elapsed();
                    continue;
                }
                (column, at) => {
                    keep_text_or_bytes(leaf, column, at, slot, position)?;
                    continue;
                }
            };
            let mut blob = image.blobs().and_then(|_| blobs.next());
            let key = self.options.key(index, place, number);
            let begun = Instant::now();
            let switches = self.options.switches;
            let made = image.decode(at, blob.as_mut(), key, switches, |decoded| {
                let decoded_at = Instant::now();
                stages.decode += decoded_at - begun;
                put(decoded, slot, position, leaf.dtype().itemsize())?;
                stages.transform += decoded_at.elapsed();
                Ok(())
            });
            let (Some(Blob::Encoded(bytes)), Some((files, reading))) = (blob, image.encoded())
            else {
                made?;
                continue;
            };
            if let Err(error @ Error::Decode { .. }) = made {
                return Ok(Some(Refusal {
                    format: Format::of(&bytes),
                    source: files.leave(at, bytes),
                    reading,
                    error,
                    leaf: number,
                    rest: blobs.collect(),
                }));
            }
            made?;
            Blobs::recycle(bytes);
        }
        Ok(None)
    }
}

/// Keeps the text or bytes of a column that fetches nothing, in a leaf of which other parts do.
fn keep_text_or_bytes(
    leaf: &Leaf,
    column: &Leaf,
    at: usize,
    slot: &Slot,
    position: usize,
) -> Result<()> {
    match leaf.kind() {
        Kind::Text if leaf.fetches() => slot.keep_texts(position, [column.text(at)?]),
        Kind::Bytes if leaf.fetches() => slot.keep_bytes(position, [column.bytes(at)?]),
        _ => {}
    }
    Ok(())
}

/// Writes a sample to its slot.
fn put(decoded: Decoded<'_>, slot: &Slot, position: usize, itemsize: usize) -> Result<()> {
    if let Some(writer) = slot.writer() {
        let row = writer.rows(position..position + 1);
        return decoded.write(&mut row.ok_or(Error::WrittenTwice { position })?);
    }
    let shape = match slot.expected_shape(position) {
        Some(expected_shape) => expected_shape.to_vec(),
        None => decoded.shape(),
    };
    let mut buffer = slot.sample_mut(position, &shape, itemsize)?;
    decoded.write(&mut buffer)?;
    buffer.commit();
    Ok(())
}

impl Work for Run {
    type Task = Task;
    type Batch = OpenBatch;
    type Fetched = Fetched;
    type Output = Finished;

    fn samples(&self, task: &Task) -> usize {
        task.indices.len()
    }

    fn fetches(&self) -> bool {
        self.program.fetches
    }

    fn cost_ns(&self) -> f64 {
        self.program.cost_ns()
    }

    fn begin(&self, mut task: Task) -> Result<OpenBatch> {
        let rows = task.indices.len();
        if rows == 0 {
            return Err(Error::Empty);
        }
        let mut destinations = std::mem::take(&mut task.destinations).into_iter();
        let parts = self.packed(&task.indices).unwrap_or_else(|| {
            let places = 0..self.program.leaves.len();
            let parts = places.map(|place| {
                let given = destinations.next().unwrap_or_default();
                self.part(place, &task, given)
            });
            parts.collect()
        })?;
        Ok(OpenBatch {
            indices: task.indices,
            first: task.first,
            batched: task.batched,
            attempts: task.attempts,
            parts,
        })
    }

    fn index(&self, batch: &OpenBatch, position: usize) -> i64 {
        batch.indices.get(position)
    }

    fn fetch(
        &self,
        batch: &Arc<OpenBatch>,
        position: usize,
        _later: &dyn Fn() -> Completion<Self>,
        stages: &mut Stages,
    ) -> Result<Fetch<Fetched>> {
        let index = self.program.resolve(batch.indices.get(position))?;
        Ok(Fetch::Ready(self.program.read(index, stages)?))
    }

    fn fetched_bytes(&self, fetched: &Fetched) -> usize {
        fetched.bytes()
    }

    fn compute(
        &self,
        batch: &OpenBatch,
        chunk: Chunk<Fetched>,
        begun: Instant,
        later: &dyn Fn(usize) -> Completion<Self>,
        failures: &mut Vec<(usize, Error)>,
        stages: &mut Stages,
    ) {
        match chunk {
            Chunk::Range(range) => INDICES.with_borrow_mut(|(indices, scratch)| {
                indices.clear();
                for position in range.clone() {
                    match self.program.resolve(batch.indices.get(position)) {
                        Ok(index) => indices.push(index),
                        Err(error) => failures.push((position, error)),
                    }
                }
                if !failures.is_empty() {
                    return; // the batch fails; positions and indices no longer pair up
                }
                if let Err(error) = self.copy(&batch.parts, range.start, indices, scratch) {
                    let (place, error) = error.placed();
                    failures.push((range.start + place, error));
                }
                stages.transform += begun.elapsed();
                if self.program.has_images {
                    for (position, &index) in range.zip(indices.iter()) {
                        let fetched = Fetched::default();
                        let made = self.decode(batch, position, index, fetched, stages);
                        failures.extend(made.err().map(|error| (position, error)));
                    }
                }
            }),
            Chunk::Fetched(samples) => {
                for (position, fetched) in samples {
                    let index = self.program.resolve(batch.indices.get(position));
                    let made =
                        index.and_then(|index| self.make(batch, position, index, fetched, stages));
                    match (made, &self.fallback) {
                        (Ok(None), _) => {}
                        (Ok(Some(refusal)), Some(fallback)) => {
                            fallback.decode(Request::new(refusal, later(position)));
                        }
                        (Ok(Some(refusal)), None) => {
                            failures.push((position, refusal.error));
                        }
                        (Err(error), _) => failures.push((position, error)),
                    }
                }
            }
        }
    }

    fn finish(&self, batch: OpenBatch) -> Result<Finished> {
        let OpenBatch {
            indices,
            batched,
            attempts,
            parts,
            ..
        } = batch;
        let parts = parts.into_iter().zip(&self.program.lists);
        let fields = parts.enumerate().map(|(leaf, (part, &list))| {
            let to_error = |source| Error::Leaf {
                leaf,
                source: Box::new(source),
            };
            let field = part.slot.finish(batched).map_err(to_error)?;
            let field = match field {
                Field::Separate(samples) => self.joined(leaf, samples, &indices),
                field if list && batched => field.transpose_lists(),
                field => Ok(field),
            };
            self.program.rules[leaf].completed(field?)
        });
        let fields: Result<Vec<Field>> = fields.collect();
        let fields = fields.and_then(|fields| self.check_together(fields, &indices));
        match (fields, attempts) {
            (Ok(fields), Some(attempts)) => Ok(attempts.finished(fields)),
            (Ok(fields), None) => Ok(Finished {
                fields,
                samples: indices.len(),
                retried: 0,
                bad: Vec::new(),
            }),
            // Python finds the bad samples itself
            (Err(error), Some(attempts)) => Err(self.declined(error, attempts.planned())),
            (Err(error), None) => Err(self.declined(error, &indices)),
        }
    }

    fn is_tolerant(&self) -> bool {
        self.options.tolerance.is_some()
    }

    fn again(
        &self,
        seq: u64,
        batch: OpenBatch,
        failures: Vec<(usize, Error)>,
    ) -> Result<Again<Task, Finished>> {
        match self.options.tolerance {
            Some(tolerance) => self.attempt(tolerance, seq, batch, failures),
            None => Err(self.first_failure(seq, &batch, failures)),
        }
    }
}
