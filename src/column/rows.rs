//! Rows of fixed size: one array, shared with whoever made it, never copied as a whole.

use std::sync::Arc;

use crate::memory::{Dtype, View, gather};

/// The rows of an array of shape `(N, ...)`; a sample is one of them, without the first dimension.
#[derive(Clone, Debug)]
pub struct Rows {
    view: Arc<View>,
    dtype: Dtype,
    len: usize,
    row_shape: Vec<usize>,
    row_bytes: usize,
    /// Byte offset of the first element in `view`.
    first: usize,
    /// Bytes from one row to the next.
    step: isize,
    /// Bytes between neighbours along the dimensions of a row; None if a row is one block.
    strides: Option<Vec<isize>>,
}

impl Rows {
    /// Takes an array of `shape` `(N, ...)` whose first element is at byte `first` of `view`.
    ///
    /// `strides` are in bytes, one per dimension, and may be 0 or negative. None if an element of
    /// the array would be outside of `view`, or the array has no first dimension.
    pub fn new(
        view: View,
        first: usize,
        shape: &[usize],
        strides: &[isize],
        dtype: Dtype,
    ) -> Option<Rows> {
        let (&len, row_shape) = shape.split_first()?;
        let (&step, row_strides) = strides.split_first()?;
        let elements: usize = row_shape.iter().product();
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
            packed *= n.cast_signed();
        }
        Some(Rows {
            view: Arc::new(view),
            dtype,
            len,
            row_shape: row_shape.to_vec(),
            row_bytes: elements * dtype.itemsize(),
            first,
            step,
            strides: (!is_packed && elements > 0).then(|| row_strides.to_vec()),
        })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Element type.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Shape of one row.
    pub fn row_shape(&self) -> &[usize] {
        &self.row_shape
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Copies the rows at `indices`, each below [`Rows::len`], to `out`, one after the other.
    pub fn gather(&self, indices: &[usize], starts: &mut Vec<usize>, out: &mut [u8]) {
        starts.clear();
        starts.extend(indices.iter().map(|&index| {
            debug_assert!(index < self.len);
            self.first
                .wrapping_add_signed(self.step.wrapping_mul(index.cast_signed()))
        }));
        match &self.strides {
            None => gather(&self.view, starts, self.row_bytes, out),
            Some(strides) => {
                for (&start, row) in starts.iter().zip(out.chunks_exact_mut(self.row_bytes)) {
                    self.copy_strided(start, &self.row_shape, strides, row);
                }
            }
        }
    }

    /// Copies the row at `index`, which must be below [`Rows::len`].
    pub fn copy(&self, index: usize, out: &mut [u8]) {
        let start = self
            .first
            .wrapping_add_signed(self.step.wrapping_mul(index.cast_signed()));
        match &self.strides {
            None => out.copy_from_slice(self.view.bytes(start, self.row_bytes)),
            Some(strides) => self.copy_strided(start, &self.row_shape, strides, out),
        }
    }

    fn copy_strided(&self, start: usize, shape: &[usize], strides: &[isize], out: &mut [u8]) {
        let (Some((&n, shape)), Some((&stride, strides))) =
            (shape.split_first(), strides.split_first())
        else {
            out.copy_from_slice(self.view.bytes(start, out.len()));
            return;
        };
        let part_bytes = out.len() / n.max(1);
        for (at, part) in out.chunks_exact_mut(part_bytes.max(1)).enumerate() {
            let start = start.wrapping_add_signed(stride.wrapping_mul(at.cast_signed()));
            self.copy_strided(start, shape, strides, part);
        }
    }
}
