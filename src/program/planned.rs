//! Plans the size of a batch, as far as it is known before it is made.
//!
//! Owns the shapes of the tensors that samples are written to in place, and the sum of their bytes, by which
//! batches of very different size share a budget.

use super::kind::Kind;
use super::{Leaf, Program};
use crate::collate::{Method, Packs, Shape, sizes};
use crate::memory::Dtype;
use crate::order::Indices;

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
    pub fn tensors(&self, place: usize, indices: &Indices) -> Option<Vec<(Shape, Dtype)>> {
        let (leaf, rule) = (&self.leaves[place], &self.rules[place]);
        if rule.to.is_some() {
            return None;
        }
        match &rule.method {
            Method::Stack if !self.lists[place] => {
                let shape = sizes(indices.len(), &leaf.fixed_shape()?);
                Some(vec![(shape, leaf.dtype())])
            }
            Method::Pad(padding) => {
                let mut shapes = self.known_shapes(leaf, indices)?;
                let dtype = rule.common_dtype(leaf.dtype(), &mut shapes);
                padding.tensors(dtype, indices.len(), &shapes)
            }
            _ => None,
        }
    }

    /// Returns the planned size of a batch of these samples.
    pub fn planned(&self, indices: &Indices) -> Planned {
        let mut planned = Planned {
            bytes: 0,
            is_whole: true,
        };
        for place in 0..self.leaves.len() {
            let known = self.planned_leaf(place, indices.len(), |leaf| self.spread(leaf, indices));
            let mean = || {
                self.leaves[place]
                    .sample_bytes()
                    .saturating_mul(indices.len())
            };
            planned.bytes = planned.bytes.saturating_add(known.unwrap_or_else(mean));
            planned.is_whole &= known.is_some();
        }
        planned
    }

    /// Returns the maximum planned size of a batch of so many samples, if it is known without looking at any.
    pub fn most(&self, samples: usize) -> Option<usize> {
        let widest = |leaf: &Leaf| {
            let rows = (leaf.kind() == Kind::Ragged).then(|| leaf.most_rows())??;
            let elements = bytes(leaf.row_shape(), rows).saturating_mul(samples);
            let shapes = [0, rows].map(|rows| sizes(rows, leaf.row_shape()));
            Some((shapes.into(), elements))
        };
        let leaves = 0..self.leaves.len();
        let mut each = leaves.map(|place| self.planned_leaf(place, samples, widest));
        each.try_fold(0_usize, |all, bytes| Some(all.saturating_add(bytes?)))
    }

    /// Returns the bytes of the field of so many samples, whose shapes lie between those that `spread`
    /// returns.
    fn planned_leaf(
        &self,
        place: usize,
        samples: usize,
        spread: impl Fn(&Leaf) -> Option<(Vec<Shape>, usize)>,
    ) -> Option<usize> {
        let (leaf, rule) = (&self.leaves[place], &self.rules[place]);
        if matches!(leaf.kind(), Kind::Text | Kind::Bytes | Kind::Lists) {
            return None;
        }
        let itemsize = rule.to.unwrap_or(leaf.dtype()).itemsize();
        if let Some(shape) = leaf.fixed_shape()
            && matches!(rule.method, Method::Stack | Method::Join | Method::Separate)
        {
            return Some(bytes(&shape, itemsize).saturating_mul(samples));
        }
        let (shapes, elements) = spread(leaf)?;
        Some(match &rule.method {
            Method::Pad(padding) => {
                let dtype = rule.to.unwrap_or(leaf.dtype());
                let tensors = padding.tensors(dtype, samples, &shapes)?;
                let each = tensors.iter();
                let each = each.map(|(shape, dtype)| bytes(shape, dtype.itemsize()));
                each.fold(0, usize::saturating_add)
            }
            Method::Pack(packs) => elements.saturating_mul(bytes_per_token(packs)),
            _ => elements.saturating_mul(itemsize),
        })
    }

    /// Returns shapes between which those of all samples lie, and the sum of their elements; returns all
    /// shapes where samples may differ in more than their rows.
    fn spread(&self, leaf: &Leaf, indices: &Indices) -> Option<(Vec<Shape>, usize)> {
        if leaf.kind() != Kind::Ragged {
            let shapes = self.known_shapes(leaf, indices)?;
            let each = shapes.iter().map(|shape| bytes(shape, 1));
            let elements = each.fold(0, usize::saturating_add);
            return Some((shapes, elements));
        }
        let (mut shortest, mut longest, mut sum) = (usize::MAX, 0, 0_usize);
        for position in 0..indices.len() {
            let index = self.resolve(indices.get(position)).ok()?;
            let rows = leaf.rows_of(index).ok()??;
            (shortest, longest) = (shortest.min(rows), longest.max(rows));
            sum = sum.saturating_add(rows);
        }
        let inner = leaf.row_shape();
        let shapes = [shortest.min(longest), longest].map(|rows| sizes(rows, inner));
        Some((shapes.into(), bytes(inner, sum)))
    }

    /// Returns the shapes of the samples, if all of them are known.
    fn known_shapes(&self, leaf: &Leaf, indices: &Indices) -> Option<Vec<Shape>> {
        let shape = |position| {
            let index = self.resolve(indices.get(position)).ok()?;
            leaf.shape(index).ok()?
        };
        (0..indices.len()).map(shape).collect()
    }
}

/// Returns the bytes per token of everything made of a packed leaf.
fn bytes_per_token(packs: &Packs) -> usize {
    let told = usize::from(packs.positions) + usize::from(packs.segments.is_some());
    8 * (packs.columns.len() + told)
}

fn bytes(shape: &[usize], itemsize: usize) -> usize {
    let sizes = shape.iter();
    sizes.fold(itemsize, |bytes, &size| bytes.saturating_mul(size))
}
