//! Plans the size of a batch, as far as it is known before it is made, and how much of its stream's budget it takes.
//!
//! Owns the shapes of the tensors that samples are written to in place, and the sum of their bytes, by which
//! batches of very different size share a budget. Inspects samples only when the budget may be exceeded.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::Program;
use super::run::Spans;
use crate::collate::{Method, Packs, Shape, bytes_of, sizes};
use crate::column::Kind;
use crate::error::Result;
use crate::memory::Dtype;
use crate::order::Indices;
use crate::sync::{Mutex, lock};

/// Number of samples to prefetch ahead.
const AHEAD: usize = 16;

/// Planned bytes of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The bytes that are known.
    pub bytes: usize,
    /// True if the shapes of all fields are known.
    pub is_whole: bool,
}

impl Program {
    /// Returns shapes and types of the tensors that the samples of a leaf are written to: the field, and its
    /// mask. None if they are not known, or if the field is made from the samples later.
    pub fn tensors(&self, number: usize, indices: &Indices) -> Option<Vec<(Shape, Dtype)>> {
        let (leaf, rule) = (&self.leaves[number], &self.rules[number]);
        if rule.to.is_some() {
            return None;
        }
        match &rule.method {
            Method::Stack if !self.lists[number] => {
                let shape = sizes(indices.len(), leaf.layout().shape.as_ref()?);
                Some(vec![(shape, leaf.layout().dtype)])
            }
            Method::Pad(padding) => {
                let mut shapes = self.shapes(number, indices).ok()?.0?;
                let dtype = rule.common_dtype(leaf.layout().dtype, &mut shapes);
                padding.tensors(dtype, indices.len(), &shapes)
            }
            _ => None,
        }
    }

    /// Returns the planned size of a batch of these samples.
    fn planned(&self, indices: &Indices) -> Planned {
        let mut planned = Planned {
            bytes: 0,
            is_whole: true,
        };
        for number in 0..self.leaves.len() {
            let known = self.planned_leaf(number, indices.len(), || {
                let shapes = self.shapes(number, indices).ok()?.0?;
                let each = shapes.iter().map(|shape| bytes_of(shape, 1));
                let elements = each.fold(0, usize::saturating_add);
                Some((shapes, elements))
            });
            let mean = || {
                self.leaves[number]
                    .sample_bytes()
                    .saturating_mul(indices.len())
            };
            planned.bytes = planned.bytes.saturating_add(known.unwrap_or_else(mean));
            planned.is_whole &= known.is_some();
        }
        planned
    }

    /// Returns the maximum planned size of a batch of so many samples, if it is known without looking at any.
    fn most(&self, samples: usize) -> Option<usize> {
        let mut each = self.leaves.iter().enumerate().map(|(number, leaf)| {
            self.planned_leaf(number, samples, || {
                let row_shape = &leaf.layout().row_shape;
                let rows = leaf.longest()?;
                let elements = bytes_of(row_shape, rows).saturating_mul(samples);
                Some((
                    [0, rows].map(|rows| sizes(rows, row_shape)).into(),
                    elements,
                ))
            })
        });
        each.try_fold(0_usize, |all, bytes| Some(all.saturating_add(bytes?)))
    }

    /// Returns the bytes of the field of so many samples; `spread` returns shapes between which theirs lie, and the sum
    /// of their elements.
    fn planned_leaf(
        &self,
        number: usize,
        samples: usize,
        spread: impl FnOnce() -> Option<(Vec<Shape>, usize)>,
    ) -> Option<usize> {
        let (leaf, rule) = (&self.leaves[number], &self.rules[number]);
        if matches!(leaf.layout().kind, Kind::Text | Kind::Bytes | Kind::Lists) {
            return None;
        }
        let itemsize = rule.to.unwrap_or(leaf.layout().dtype).itemsize();
        if let Some(shape) = &leaf.layout().shape
            && matches!(rule.method, Method::Stack | Method::Join | Method::Separate)
        {
            return Some(bytes_of(shape, itemsize).saturating_mul(samples));
        }
        let (shapes, elements) = spread()?;
        Some(match &rule.method {
            Method::Pad(padding) => {
                let dtype = rule.to.unwrap_or(leaf.layout().dtype);
                let tensors = padding.tensors(dtype, samples, &shapes)?;
                let each = tensors.iter();
                let each = each.map(|(shape, dtype)| bytes_of(shape, dtype.itemsize()));
                each.fold(0, usize::saturating_add)
            }
            Method::Pack(packs) => elements.saturating_mul(bytes_per_token(packs)),
            _ => elements.saturating_mul(itemsize),
        })
    }

    /// Returns the shape of each sample, and its rows in [`Column::ragged`](crate::column::Column::ragged) if it is
    /// taken from there; None for the shapes if one is not known yet, or is not an array.
    pub(super) fn shapes(
        &self,
        number: usize,
        indices: &Indices,
    ) -> Result<(Option<Vec<Shape>>, Spans)> {
        let leaf = &self.leaves[number];
        let index = |position| self.resolve(indices.get(position));
        if leaf.ragged().is_some() {
            let mut all = Vec::with_capacity(indices.len()); // a collected Result would grow step by step
            for position in 0..indices.len() {
                all.push(index(position)?);
            }
            if let Some(spans) = leaf.ranges(&all)? {
                let row_shape = &leaf.layout().row_shape;
                let shapes = spans.iter().map(|span| sizes(span.len(), row_shape));
                return Ok((Some(shapes.collect()), spans));
            }
        }
        let prefetch = |position| {
            if position < indices.len()
                && let Ok(index) = index(position)
            {
                leaf.prefetch_shape(index);
            }
        };
        let mut shapes = Vec::with_capacity(indices.len());
        let mut all_known = true;
        (0..AHEAD).for_each(prefetch);
        for position in 0..indices.len() {
            prefetch(position + AHEAD);
            match leaf.shape(index(position)?)? {
                Some(shape) => shapes.push(shape),
                None => all_known = false, // continue: a later sample's error comes first
            }
        }
        Ok((all_known.then_some(shapes), Spans::new()))
    }
}

/// Returns the bytes per token of everything made of a packed leaf.
fn bytes_per_token(packs: &Packs) -> usize {
    let extras = usize::from(packs.positions) + usize::from(packs.segments.is_some());
    8 * (packs.columns.len() + extras)
}

/// The budget of a stream, and the estimate for batches of unknown shapes, from the batches made so far.
#[derive(Debug)]
pub struct Budget {
    bytes: usize,
    /// Maximum of batches in flight.
    depth: AtomicUsize,
    /// A number of samples, and the maximum planned size of a batch of so many, if it is known.
    most: Mutex<(usize, Option<usize>)>,
    /// Size of all batches so far, in bytes.
    batch_bytes: AtomicU64,
    /// Size of the largest of them.
    largest_bytes: AtomicU64,
    /// Number of batches planned to take more than the whole budget.
    oversize: AtomicU64,
}

impl Budget {
    /// Makes the budget of a stream with at most `depth` batches in flight.
    pub fn new(bytes: usize, depth: usize) -> Budget {
        Budget {
            bytes,
            depth: AtomicUsize::new(depth),
            most: Mutex::new((0, Some(0))),
            batch_bytes: AtomicU64::new(0),
            largest_bytes: AtomicU64::new(0),
            oversize: AtomicU64::new(0),
        }
    }

    /// Changes the maximum of batches in flight.
    pub fn set_depth(&self, depth: usize) {
        self.depth.store(depth, Ordering::Relaxed);
    }

    /// Plans the size of a batch. Inspects its samples only if the batches in flight might exceed the budget.
    pub fn plan(&self, program: &Program, indices: &Indices) -> Planned {
        let samples = indices.len();
        let mut most = lock(&self.most);
        if most.0 != samples {
            *most = (samples, program.most(samples));
        }
        let depth = self.depth.load(Ordering::Relaxed);
        let fits = |&bytes: &usize| bytes.saturating_mul(depth) <= self.bytes;
        match most.1.filter(fits) {
            Some(bytes) => Planned {
                bytes,
                is_whole: true,
            },
            None => program.planned(indices),
        }
    }

    /// Returns the bytes that a batch counts for. With unknown shapes: half of the budget until one was made,
    /// so that two are in flight at first; then twice the largest so far, because its samples are copied once
    /// at the end.
    pub fn bytes(&self, planned: Planned) -> usize {
        if planned.is_whole {
            return planned.bytes;
        }
        match self.largest_bytes() as usize {
            0 => planned.bytes.max(self.bytes / 2),
            largest => planned.bytes.max(largest.saturating_mul(2)),
        }
    }

    /// Counts a batch that is admitted for `bytes`.
    pub fn count(&self, bytes: usize) {
        let is_oversize = bytes > self.bytes;
        self.oversize
            .fetch_add(u64::from(is_oversize), Ordering::Relaxed);
    }

    /// Records the size of a finished batch.
    pub fn took(&self, bytes: usize) {
        self.batch_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.largest_bytes
            .fetch_max(bytes as u64, Ordering::Relaxed);
    }

    /// Returns the size of all batches so far, in bytes.
    pub fn batch_bytes(&self) -> u64 {
        self.batch_bytes.load(Ordering::Relaxed)
    }

    /// Returns the size of the largest batch so far, in bytes.
    pub fn largest_bytes(&self) -> u64 {
        self.largest_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of batches planned to take more than the whole budget.
    pub fn oversize(&self) -> u64 {
        self.oversize.load(Ordering::Relaxed)
    }
}
