//! Rows of fixed size: one array, shared with its owner, never copied as a whole.

use std::ops::Range;
use std::sync::Arc;

use super::convert::{Conversion, Convert};
use super::{Column, Layout};
use crate::collate::{self, Array};
use crate::error::Result;
use crate::memory::{Dtype, View, gather, prefetch};

/// The rows of an array of shape `(N, ...)`; a sample is one row, without the first dimension.
#[derive(Clone, Debug)]
pub struct Rows {
    view: Arc<View>,
    /// Type of the array's elements.
    dtype: Dtype,
    convert: Option<Arc<Convert>>,
    len: usize,
    layout: Arc<Layout>,
    /// Bytes of a row of the array.
    row_bytes: usize,
    /// Byte offset of the first element in `view`.
    first: usize,
    /// Bytes from one row to the next.
    step: isize,
    /// Strides within a row, in bytes; None if a row is one block.
    strides: Option<Vec<isize>>,
}

impl Rows {
    /// Takes an array of `shape` `(N, ...)` whose first element is at byte `first` of `view`.
    ///
    /// `strides` are in bytes, one per dimension, and may be 0 or negative. None if an element of the array
    /// would lie outside of `view`, a row is too large for memory, or the array has no first dimension.
    pub fn new(
        view: View,
        first: usize,
        shape: &[usize],
        strides: &[isize],
        dtype: Dtype,
    ) -> Option<Rows> {
        let (&len, row_shape) = shape.split_first()?;
        let (&step, row_strides) = strides.split_first()?;
        let elements = row_shape
            .iter()
            .try_fold(1, |all: usize, &n| all.checked_mul(n))?;
        let row_bytes = elements.checked_mul(dtype.itemsize())?;
        isize::try_from(row_bytes).ok()?;
        if elements > 0 && len > 0 {
            let reach = |positive: bool| -> Option<isize> {
                shape
                    .iter()
                    .zip(strides)
                    .try_fold(0_isize, |sum, (&n, &stride)| {
                        let extent = stride.checked_mul(isize::try_from(n).ok()? - 1)?;
                        let counts = (extent > 0) == positive;
                        sum.checked_add(if counts { extent } else { 0 })
                    })
            };
            let low = first.checked_add_signed(reach(false)?)?;
            let high = first
                .checked_add_signed(reach(true)?)?
                .checked_add(dtype.itemsize())?;
            if low > high || high > view.len() {
                return None;
            }
        }
        let mut packed = dtype.itemsize().cast_signed();
        let mut is_packed = true;
        for (&n, &stride) in row_shape.iter().zip(row_strides).rev() {
            is_packed &= n == 1 || stride == packed;
            packed = packed.saturating_mul(n.cast_signed()); // overflows only if another dimension is 0
        }
        Some(Rows {
            view: Arc::new(view),
            dtype,
            convert: None,
            len,
            layout: Arc::new(Layout::rows(dtype, row_shape)),
            row_bytes,
            first,
            step,
            strides: (!is_packed && elements > 0).then(|| row_strides.to_vec()),
        })
    }

    /// Converts elements while they are copied; None if a step is not native, or steps come in an order that is not.
    pub fn converted(mut self, steps: Vec<Conversion>) -> Option<Rows> {
        if !steps.is_empty() {
            let elements = self.row_bytes / self.dtype.itemsize();
            let convert = Convert::new(self.dtype, elements, steps)?;
            Arc::make_mut(&mut self.layout).dtype = convert.to();
            self.convert = Some(Arc::new(convert));
        }
        Some(self)
    }

    /// Returns true if elements are converted.
    pub(super) fn is_cast(&self) -> bool {
        self.convert.is_some()
    }

    /// Returns the memory that rows are read from.
    pub fn view(&self) -> &Arc<View> {
        &self.view
    }

    /// Returns the address of the array's first element.
    pub fn address(&self) -> usize {
        self.view.as_ptr().addr() + self.first
    }

    /// Returns the element type of a sample.
    pub fn dtype(&self) -> Dtype {
        self.layout.dtype
    }

    /// Returns the shape of one row.
    pub fn row_shape(&self) -> &[usize] {
        &self.layout.row_shape
    }

    /// Returns the bytes of one sample.
    pub fn row_bytes(&self) -> usize {
        self.row_bytes / self.dtype.itemsize() * self.dtype().itemsize()
    }

    /// Copies the rows of `range`, which must end at [`Rows::len`] or before.
    pub(super) fn copy_range(&self, range: Range<usize>, scratch: &mut Scratch, out: &mut [u8]) {
        match (self.block(range.clone()), &self.convert) {
            (Some(bytes), None) => out.copy_from_slice(bytes),
            (Some(bytes), Some(convert)) => convert.run(bytes, &mut scratch.spare, out),
            (None, _) => self.copy_rows(range, scratch, out),
        }
    }

    /// Prefetches the rows of `range`, which are read soon.
    pub(super) fn prefetch_rows(&self, range: Range<usize>) {
        prefetch(self.block(range).unwrap_or_default());
    }

    /// Copies the row at `index`, which must be below [`Rows::len`]; the rows must not be cast.
    pub fn copy(&self, index: usize, out: &mut [u8]) {
        self.copy_one(self.start(index), out);
    }

    /// Returns the memory of the row at `index`, which must be below [`Rows::len`]; rows must be one element.
    #[inline]
    pub(super) fn row(&self, index: usize) -> &[u8] {
        self.view.bytes(self.start(index), self.row_bytes)
    }

    /// Returns all rows if each is one element of `N` bytes, and they are contiguous.
    pub(super) fn elements<const N: usize>(&self) -> Option<&[[u8; N]]> {
        let is_one =
            self.row_bytes == N && self.layout.row_shape.is_empty() && self.convert.is_none();
        let block = is_one.then(|| self.block(0..self.len)).flatten();
        block.map(|bytes| bytes.as_chunks().0)
    }

    /// Returns the memory of the rows of `range` if they are contiguous.
    pub(super) fn block(&self, range: Range<usize>) -> Option<&[u8]> {
        let is_block = self.strides.is_none()
            && (range.len() <= 1 || self.step == self.row_bytes.cast_signed());
        let bytes = range.len() * self.row_bytes;
        is_block.then(|| match bytes {
            0 => &[],
            bytes => self.view.bytes(self.start(range.start), bytes),
        })
    }

    /// Returns true if any range of rows is one block of their own elements.
    pub(super) fn is_block(&self) -> bool {
        self.convert.is_none() && self.block(0..self.len).is_some()
    }

    fn copy_rows(
        &self,
        indices: impl Iterator<Item = usize>,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) {
        let Scratch {
            starts,
            unconverted,
            spare,
            ..
        } = scratch;
        starts.clear();
        starts.extend(indices.map(|index| self.start(index)));
        let Some(convert) = &self.convert else {
            return self.copy_all(starts, out);
        };
        unconverted.resize(starts.len() * self.row_bytes, 0);
        self.copy_all(starts, unconverted);
        convert.run(unconverted, spare, out);
    }

    fn start(&self, index: usize) -> usize {
        debug_assert!(index < self.len);
        let offset = self.step.wrapping_mul(index.cast_signed());
        self.first.wrapping_add_signed(offset)
    }

    fn copy_all(&self, starts: &[usize], out: &mut [u8]) {
        if self.strides.is_none() {
            gather(&self.view, starts, self.row_bytes, out);
        } else {
            for (&start, row) in starts.iter().zip(out.chunks_exact_mut(self.row_bytes)) {
                self.copy_one(start, row);
            }
        }
    }

    fn copy_one(&self, start: usize, out: &mut [u8]) {
        match &self.strides {
            None => out.copy_from_slice(self.view.bytes(start, self.row_bytes)),
            Some(strides) => {
                let array = Array {
                    bytes: self.view.bytes(0, self.view.len()),
                    first: start,
                    shape: &self.layout.row_shape,
                    strides,
                };
                collate::copy(array, self.dtype.itemsize(), out);
            }
        }
    }
}

impl Column for Rows {
    fn len(&self) -> usize {
        self.len
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn gather(&self, indices: &[usize], scratch: &mut Scratch, out: &mut [u8]) -> Result<()> {
        self.copy_rows(indices.iter().copied(), scratch, out);
        Ok(())
    }

    fn prefetch(&self, index: usize) {
        self.prefetch_rows(index..index + 1);
    }
}

/// Memory that a thread keeps for its next copies.
#[derive(Debug, Default)]
pub struct Scratch {
    starts: Vec<usize>,
    unconverted: Vec<u8>,
    spare: Vec<u8>,
    lists: Vec<Vec<usize>>,
}

impl Scratch {
    /// Returns an empty list, to be given back to [`Scratch::keep`].
    pub(super) fn indices(&mut self) -> Vec<usize> {
        let mut list = self.lists.pop().unwrap_or_default();
        list.clear();
        list
    }

    /// Keeps a list for its memory.
    pub(super) fn keep(&mut self, list: Vec<usize>) {
        self.lists.push(list);
    }
}
