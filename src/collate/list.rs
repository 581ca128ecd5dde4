//! Lists of numbers: torch's `default_collate` makes one tensor of each place in them.

use super::Dense;
use crate::error::Result;
use crate::memory::{Destination, lease};

/// Side of the square of elements that is turned at once, so that both sides stay in the cache.
const BLOCK: usize = 32;

/// Turns `(B, ...)` into `(..., B)`, so that the values of each place lie side by side.
pub(super) fn by_place(field: Dense) -> Result<Dense> {
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
