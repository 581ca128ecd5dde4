//! Mirror images.

use super::{Frame, Pixels};
use crate::Result;

/// Mirrors left and right.
pub(super) fn horizontal(source: Pixels<'_>, target: &mut Frame) -> Result<()> {
    target.reset(source.shape())?;
    for (row, into) in source.rows().zip(target.rows_mut()) {
        match source.channels() {
            3 => reverse::<3>(row, into),
            _ => reverse::<1>(row, into),
        }
    }
    Ok(())
}

/// Mirrors top and bottom.
pub(super) fn vertical(source: Pixels<'_>, target: &mut Frame) -> Result<()> {
    target.reset(source.shape())?;
    for (row, into) in source.rows().rev().zip(target.rows_mut()) {
        into.copy_from_slice(row);
    }
    Ok(())
}

fn reverse<const C: usize>(row: &[u8], into: &mut [u8]) {
    let pixels = row.as_chunks::<C>().0.iter().rev();
    for (pixel, target) in pixels.zip(into.as_chunks_mut::<C>().0) {
        *target = *pixel;
    }
}
