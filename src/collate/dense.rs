//! Dense arrays: their shapes, their memory, and the conversions of finished fields.

use smallvec::SmallVec;

use crate::error::Result;
use crate::memory::Cast;
use crate::memory::{Destination, Dtype, lease};

/// Side of the square of elements that is transposed at once, so that both sides stay in the cache.
const BLOCK: usize = 32;

/// Sizes of the dimensions of a sample.
pub type Shape = SmallVec<[usize; 4]>;

/// Returns `(rows, *row_shape)`.
#[inline]
pub fn sizes(rows: usize, row_shape: &[usize]) -> Shape {
    let mut shape = Shape::from_buf_and_len([rows, 0, 0, 0], 1);
    if !row_shape.is_empty() {
        shape.extend_from_slice(row_shape);
    }
    shape
}

/// An array in C order.
#[derive(Debug)]
pub struct Dense {
    /// Its memory.
    pub memory: Destination,
    /// Its shape; `(B, ...)` for a batch.
    pub shape: Shape,
    /// Its element type.
    pub dtype: Dtype,
}

impl Dense {
    /// Returns the values of an int64 array; negative ones as 0.
    pub(super) fn int64s(&self) -> Vec<usize> {
        let (numbers, _) = self.memory.bytes().as_chunks::<8>();
        let numbers = numbers.iter().map(|&bytes| i64::from_ne_bytes(bytes));
        numbers
            .map(|number| usize::try_from(number).unwrap_or(0))
            .collect()
    }

    /// Converts the elements to `to`.
    pub(super) fn cast(self, to: Dtype) -> Result<Dense> {
        let Some(cast) = Cast::new(self.dtype, to) else {
            return Ok(self);
        };
        let source = self.memory.bytes();
        let mut memory = lease(source.len() / self.dtype.itemsize() * to.itemsize())?;
        cast.run(source, &mut memory);
        Ok(Dense {
            memory: memory.into(),
            shape: self.shape,
            dtype: to,
        })
    }
}

/// Returns the bytes of an array; saturates.
pub fn bytes_of(shape: &[usize], itemsize: usize) -> usize {
    let sizes = shape.iter();
    sizes.fold(itemsize, |bytes, &size| bytes.saturating_mul(size))
}

/// Makes an int64 array.
pub fn int64s(shape: Shape, numbers: impl Iterator<Item = usize>) -> Result<Dense> {
    let mut memory = lease(bytes_of(&shape, 8))?;
    for (place, number) in memory.as_chunks_mut::<8>().0.iter_mut().zip(numbers) {
        *place = (number.cast_signed() as i64).to_ne_bytes();
    }
    Ok(Dense {
        memory: memory.into(),
        shape,
        dtype: Dtype::Int64,
    })
}

/// Transposes `(B, ...)` to `(..., B)`, so that the values of each list position are contiguous.
pub(super) fn transpose_lists(field: Dense) -> Result<Dense> {
    let mut shape = field.shape;
    let samples = shape.remove(0);
    let places = shape.iter().product();
    shape.push(samples);
    let source = field.memory.bytes();
    let mut memory = lease(source.len())?;
    match field.dtype.itemsize() {
        1 => turn::<1>(source, samples, places, &mut memory),
        2 => turn::<2>(source, samples, places, &mut memory),
        4 => turn::<4>(source, samples, places, &mut memory),
        8 => turn::<8>(source, samples, places, &mut memory),
        _ => turn::<16>(source, samples, places, &mut memory),
    }
    Ok(Dense {
        memory: Destination::Lease(memory),
        shape,
        dtype: field.dtype,
    })
}

fn turn<const N: usize>(source: &[u8], rows: usize, columns: usize, out: &mut [u8]) {
    let (source, _) = source.as_chunks::<N>();
    let (out, _) = out.as_chunks_mut::<N>();
    for top in (0..rows).step_by(BLOCK) {
        for left in (0..columns).step_by(BLOCK) {
            for row in top..rows.min(top + BLOCK) {
                for column in left..columns.min(left + BLOCK) {
                    out[column * rows + row] = source[row * columns + column];
                }
            }
        }
    }
}
