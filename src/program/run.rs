//! Runs a program for one iterator; implements [`Work`].

use std::cell::RefCell;
use std::ops::Range;
use std::time::Instant;

use super::attempts::{Attempts, BadSample};
use super::copying;
use super::{FallbackDecoder, Fetched, Options, Program, Refusal, Request};
use crate::collate::{Field, Method, Shape, Slot};
use crate::column::{Column, Kind, Place, Scratch, holder};
use crate::error::{Error, Result};
use crate::memory::{Destination, ReadGuard};
use crate::order::Indices;
use crate::stats::Stages;
use crate::stream::{Again, Chunk, Completion, Work};
use crate::sync::Arc;

thread_local! {
    static INDICES: RefCell<(Vec<usize>, Scratch)> = RefCell::default();
}

/// A program, with the options of one iterator.
#[derive(Clone)]
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
    /// The findings of earlier attempts at the batch; None for the first.
    pub attempts: Option<Box<Attempts>>,
}

impl Task {
    /// Describes the first batch of an iterator, in memory of the program's own.
    pub(super) fn first(indices: Indices, batched: bool) -> Task {
        Task {
            indices,
            first: 0,
            batched,
            destinations: Vec::new(),
            attempts: None,
        }
    }
}

/// The row range of each sample in one array, in batch order: looked up once, when the batch is begun.
pub(super) type Spans = Vec<Range<usize>>;

/// One field of a batch while it is being made.
#[derive(Debug)]
pub(super) struct FieldSlot {
    /// The memory of its samples.
    pub(super) slot: Slot,
    /// The ranges of the samples in the source array; empty if they are not in one, or it is not needed.
    pub(super) spans: Spans,
}

impl From<Slot> for FieldSlot {
    fn from(slot: Slot) -> FieldSlot {
        let spans = Spans::new();
        FieldSlot { slot, spans }
    }
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
    fn part(&self, number: usize, task: &Task, given: Vec<Destination>) -> Result<FieldSlot> {
        let is_ruled = !matches!(self.program.rules[number].method, Method::Stack);
        if is_ruled && self.program.leaves[number].layout().kind.is_numbers() {
            return self.ruled(number, &task.indices, given);
        }
        self.stacked(number, task, given).map(FieldSlot::from)
    }

    /// Makes the slot of a leaf whose samples are stacked.
    fn stacked(&self, number: usize, task: &Task, given: Vec<Destination>) -> Result<Slot> {
        let (leaf, rows) = (&self.program.leaves[number], task.indices.len());
        let layout = leaf.layout();
        let shape = match layout.kind {
            Kind::Text => return Ok(Slot::texts(rows)),
            Kind::Bytes => return Ok(Slot::bytes(rows)),
            Kind::Ragged | Kind::Array => match self.common_shape(number, &task.indices) {
                Ok(shape) => shape,
                Err(error) => return Ok(Slot::refused(error)),
            },
            Kind::Lists => {
                let slot = self.lists(number, &task.indices);
                return Ok(slot.unwrap_or_else(Slot::refused));
            }
            Kind::Rows | Kind::Image => layout.shape.clone(),
        };
        let dtype = layout.dtype;
        let Some(shape) = shape else {
            return Ok(Slot::loose(rows, dtype));
        };
        let sample = shape.iter().product::<usize>() * dtype.itemsize();
        let bytes = sample.saturating_mul(rows); // saturates: the allocation then fails
        let memory = Destination::or_lease(given.into_iter().next(), bytes)
            .map_err(|error| self.of_only_file(error, &**leaf, &task.indices))?;
        Ok(Slot::fixed(memory, rows, shape, dtype))
    }

    /// Names the file of a batch of one sample, whose size decided the allocation.
    fn of_only_file(&self, error: Error, leaf: &dyn Column, indices: &Indices) -> Error {
        let only = (indices.len() == 1).then(|| self.program.resolve(indices.get(0)));
        let held = only
            .and_then(Result::ok)
            .and_then(|index| holder(leaf, index).ok());
        match held.and_then(|(column, at)| Some((column.blobs()?, at))) {
            Some((blobs, at)) => error.of_file(blobs.path(at)),
            None => error,
        }
    }

    /// Makes the slot of samples that are lists.
    fn lists(&self, number: usize, indices: &Indices) -> Result<Slot> {
        let leaf = &self.program.leaves[number];
        let samples = (0..indices.len())
            .map(|position| holder(&**leaf, self.program.resolve(indices.get(position))?));
        copying::slot(
            &samples.collect::<Result<Vec<_>>>()?,
            self.program.lists[number],
        )
    }

    /// Returns the common shape of the samples; None if one is not known yet.
    fn common_shape(&self, number: usize, indices: &Indices) -> Result<Option<Shape>> {
        if let Some(shape) = &self.program.leaves[number].layout().shape {
            return Ok(Some(shape.clone()));
        }
        let Some(shapes) = self.program.shapes(number, indices)?.0 else {
            return Ok(None);
        };
        let other = shapes.iter().position(|shape| *shape != shapes[0]);
        match other {
            None => Ok(shapes.into_iter().next()),
            Some(position) => {
                let as_lists = self.program.lists[number];
                let (first, other) = (&shapes[0], &shapes[position]);
                Err(Error::unequal(first, other, position, as_lists))
            }
        }
    }

    /// Computes samples that need nothing fetched, as [`Work::compute`] does.
    pub(super) fn compute_range(
        &self,
        batch: &OpenBatch,
        range: Range<usize>,
        begun: Instant,
        failures: &mut Vec<(usize, Error)>,
        stages: &mut Stages,
    ) {
        INDICES.with_borrow_mut(|(indices, scratch)| {
            indices.clear();
            for position in range.clone() {
                match self.program.resolve(batch.indices.get(position)) {
                    Ok(index) => indices.push(index),
                    Err(error) => {
                        failures.push((position, error));
                        break; // a sample in front of it may be bad, too, and is then named
                    }
                }
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
        });
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
            let (column, at) = holder(&**leaf, index)?;
            if leaf.layout().fetches && !column.layout().fetches {
                let kept = copying::keep(column, &[at], slot, position);
                kept.map_err(|error| error.placed().1)?;
            }
            let blob = column.blobs().and_then(|_| blobs.next());
            let place = Place {
                slot,
                position,
                key: self.options.key(index, place, number),
                switches: self.options.switches,
            };
            if let Some(refused) = column.decode(at, blob, place, stages)? {
                return Ok(Some(Refusal {
                    refused,
                    leaf: number,
                    rest: blobs.collect(),
                }));
            }
        }
        Ok(None)
    }
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
            let leaves = 0..self.program.leaves.len();
            let parts = leaves.map(|number| {
                let given = destinations.next().unwrap_or_default();
                self.part(number, &task, given)
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

    fn fetch(&self, batch: &OpenBatch, position: usize, stages: &mut Stages) -> Result<Fetched> {
        let index = self.program.resolve(batch.indices.get(position))?;
        self.program.read(index, stages)
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
            Chunk::Range(range) => self.compute_range(batch, range, begun, failures, stages),
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
                            failures.push((position, refusal.refused.error));
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
            first,
            batched,
            attempts,
            parts,
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
            (Err(error), Some(attempts)) => Err(self.declined(error, attempts.planned(), first)),
            (Err(error), None) => Err(self.declined(error, &indices, first)),
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
        let Some(tolerance) = self.options.tolerance else {
            let error = self.first_failure(seq, &batch, failures);
            return Err(error.of_batch(&batch.indices, batch.first));
        };
        self.attempt(tolerance, seq, batch, failures)
    }
}
