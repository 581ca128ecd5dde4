//! The middle of an image: torchvision's `center_crop`, one dimension at a time.

use std::ops::Range;

use super::Frame;
use crate::Result;

/// Where `crop` pixels around the middle of `size` pixels lie, along one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// What is taken of the image.
    pub(super) taken: Range<usize>,
    /// Black pixels before it.
    pub(super) before: usize,
    /// Pixels of the result.
    pub(super) size: usize,
}

impl Window {
    /// Takes the middle. A smaller crop starts at `round((size - crop) / 2)`, halves to even as
    /// Python rounds; a larger one has `(crop - size) / 2` black pixels before the image, rounded
    /// down.
    pub(super) fn center(size: usize, crop: usize) -> Self {
        if crop > size {
            return Self {
                taken: 0..size,
                before: (crop - size) / 2,
                size: crop,
            };
        }
        let surplus = size - crop;
        let start = surplus / 2 + usize::from(surplus % 4 == 3);
        Self {
            taken: start..start + crop,
            before: 0,
            size: crop,
        }
    }
}

/// Cuts `rows` by `columns` out of `source`.
pub(super) fn crop(
    source: &Frame,
    rows: &Window,
    columns: &Window,
    target: &mut Frame,
) -> Result<()> {
    blacken(target, rows, columns)?;
    let (from, to) = (source.stride(), target.stride());
    let bytes = columns.taken.start * 3..columns.taken.end * 3;
    for (count, row) in rows.taken.clone().enumerate() {
        let start = (rows.before + count) * to + columns.before * 3;
        target.pixels_mut()[start..start + bytes.len()]
            .copy_from_slice(&source.pixels()[row * from..][bytes.clone()]);
    }
    Ok(())
}

/// Gives `target` the windows' size; its pixels are black unless all of them come from the image.
pub(super) fn blacken(target: &mut Frame, rows: &Window, columns: &Window) -> Result<()> {
    target.reset(rows.size, columns.size)?;
    if rows.taken.len() < rows.size || columns.taken.len() < columns.size {
        target.pixels_mut().fill(0);
    }
    Ok(())
}
