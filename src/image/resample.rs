//! Scaling as Pillow: a pass along each dimension, with 8 bits in between.
//!
//! Owns the order of the passes and which of them run (`ImagingResampleInner` of `Resample.c`).
//! Refuses empty images. Invariant: a pixel of the result depends on its place in the whole result,
//! not on the window that is asked for; rows and columns outside of the window are not computed.

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use super::avx2::{self, Avx2};
use super::center_crop::{Window, blacken, crop};
use super::taps::Taps;
use super::{Filter, Frame, PassOrder, nearest, scalar};
use crate::{Error, Result};

/// Weights and rows of the last resize, kept for the next one.
#[derive(Debug, Default)]
pub(super) struct Resampler {
    across: Taps,
    down: Taps,
    between: Frame,
    columns: Vec<usize>,
    rows: Vec<usize>,
}

/// What to make of an image.
#[derive(Debug)]
pub(super) struct Scaling {
    /// Rows of the whole result.
    pub(super) height: usize,
    /// Columns of the whole result.
    pub(super) width: usize,
    /// How pixels are weighted.
    pub(super) filter: Filter,
    /// Which pass comes first.
    pub(super) order: PassOrder,
    /// The rows that are wanted of the result.
    pub(super) rows: Window,
    /// The columns that are wanted of the result.
    pub(super) columns: Window,
}

/// Where a pass puts its first pixel: (row, column).
type Place = (usize, usize);

impl Resampler {
    /// Scales `source` into `target`.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`]: an empty image or size, or no memory.
    pub(super) fn resize(
        &mut self,
        source: &Frame,
        scaling: &Scaling,
        target: &mut Frame,
    ) -> Result<()> {
        let Scaling {
            height,
            width,
            filter,
            ref rows,
            ref columns,
            ..
        } = *scaling;
        if source.height().min(source.width()).min(height).min(width) == 0 {
            return Err(Error::Transform {
                what: format!("resize to {height}x{width}"),
                reason: format!(
                    "the image has {}x{} pixels",
                    source.height(),
                    source.width()
                ),
            });
        }
        if (source.height(), source.width()) == (height, width) {
            return crop(source, rows, columns, target);
        }
        let place = (rows.before, columns.before);
        if filter == Filter::Nearest {
            blacken(target, rows, columns)?;
            self.nearest(source, scaling, target, place);
            return Ok(());
        }
        let Self {
            across,
            down,
            between,
            ..
        } = self;
        down.prepare(source.height(), height, filter, rows.taken.clone())?;
        across.prepare(source.width(), width, filter, columns.taken.clone())?;
        blacken(target, rows, columns)?;
        if source.width() == width {
            pass_down(source, 0, columns.taken.clone(), down, target, place);
        } else if source.height() == height {
            pass_across(source, rows.taken.clone(), across, target, place);
        } else if scaling
            .order
            .down_first((source.height(), height), (source.width(), width))
        {
            between.reset(rows.taken.len(), source.width())?;
            let needed = across.reach();
            pass_down(source, 0, needed.clone(), down, between, (0, needed.start));
            pass_across(between, 0..rows.taken.len(), across, target, place);
        } else {
            let needed = down.reach();
            between.reset(needed.len(), columns.taken.len())?;
            pass_across(source, needed.clone(), across, between, (0, 0));
            pass_down(
                between,
                needed.start,
                0..columns.taken.len(),
                down,
                target,
                place,
            );
        }
        Ok(())
    }

    fn nearest(&mut self, source: &Frame, scaling: &Scaling, target: &mut Frame, place: Place) {
        let Scaling {
            height,
            width,
            ref rows,
            ref columns,
            ..
        } = *scaling;
        nearest::positions(
            source.width(),
            width,
            columns.taken.clone(),
            &mut self.columns,
        );
        nearest::positions(source.height(), height, rows.taken.clone(), &mut self.rows);
        let targets = rows_from(target, place, self.columns.len());
        for (row, into) in self.rows.iter().zip(targets) {
            let from = &source.pixels()[row * source.stride()..];
            nearest::row(from, &self.columns, into);
        }
    }
}

/// Returns the parts of `frame`'s rows that lie right of and below `place`, `width` pixels each.
fn rows_from(
    frame: &mut Frame,
    place: Place,
    width: usize,
) -> impl Iterator<Item = &mut [u8]> + use<'_> {
    let stride = frame.stride();
    let bytes = place.1 * 3..(place.1 + width) * 3;
    frame
        .pixels_mut()
        .chunks_exact_mut(stride)
        .skip(place.0)
        .map(move |row| &mut row[bytes.clone()])
}

/// Scales `rows` of `source` along their length.
fn pass_across(source: &Frame, rows: Range<usize>, taps: &Taps, target: &mut Frame, place: Place) {
    let stride = source.stride();
    let mut targets = rows_from(target, place, taps.spans().len());
    #[cfg(target_arch = "x86_64")]
    let rows = match Avx2::detect() {
        Some(avx2) => {
            let whole = rows.len() / avx2::ROWS * avx2::ROWS;
            for first in (rows.start..rows.start + whole).step_by(avx2::ROWS) {
                let from = |row| &source.with_slack()[(first + row) * stride..];
                let into = [(); avx2::ROWS].map(|()| targets.next().unwrap_or_default());
                avx2.across(std::array::from_fn(from), taps, into);
            }
            rows.start + whole..rows.end
        }
        None => rows,
    };
    for (row, into) in rows.zip(targets) {
        scalar::across(&source.pixels()[row * stride..], taps, into);
    }
}

/// Makes rows of weighted rows of `source`, of the pixels in `columns`. The weights count rows from
/// one `above` rows above the first of `source`.
fn pass_down(
    source: &Frame,
    above: usize,
    columns: Range<usize>,
    taps: &Taps,
    target: &mut Frame,
    place: Place,
) {
    let stride = source.stride();
    let targets = rows_from(target, place, columns.len());
    for (output, (span, into)) in taps.spans().iter().zip(targets).enumerate() {
        let from = &source.pixels()[(span.start - above) * stride + columns.start * 3..];
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = Avx2::detect() {
            avx2.down(from, stride, taps, output, into);
            continue;
        }
        scalar::down(from, stride, taps, output, into);
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILTERS: [Filter; 5] = [
        Filter::Box,
        Filter::Bilinear,
        Filter::Hamming,
        Filter::Bicubic,
        Filter::Lanczos,
    ];

    fn noise(seed: u64, bytes: &mut [u8]) {
        let mut state = seed | 1;
        for byte in bytes {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            // Runs of extremes too: they reach the clip on both ends.
            *byte = match state >> 62 {
                0 => 0,
                1 => 255,
                _ => (state >> 40) as u8,
            };
        }
    }

    proptest! {
        #[test]
        fn vector_and_scalar_passes_agree(
            from in 1_usize..300,
            to in 1_usize..300,
            across in 1_usize..60,
            filter in prop::sample::select(&FILTERS),
            seed: u64,
        ) {
            let Some(avx2) = Avx2::detect() else { return Ok(()) };
            let mut taps = Taps::default();
            taps.prepare(from, to, filter, 0..to).unwrap();

            let mut wide = Frame::default();
            wide.reset(avx2::ROWS, from).unwrap();
            noise(seed, wide.room());
            let rows = std::array::from_fn(|row| &wide.with_slack()[row * from * 3..]);
            let mut vector = [(); avx2::ROWS].map(|()| vec![0; to * 3]);
            avx2.across(rows, &taps, vector.each_mut().map(Vec::as_mut_slice));
            for (row, made) in rows.iter().zip(vector) {
                let mut plain = vec![0; to * 3];
                scalar::across(row, &taps, &mut plain);
                prop_assert_eq!(made, plain);
            }

            let stride = across * 3;
            let mut tall = vec![0; from * stride];
            noise(seed, &mut tall);
            for output in 0..to {
                let source = &tall[taps.spans()[output].start * stride..];
                let (mut vector, mut plain) = (vec![0; stride], vec![0; stride]);
                avx2.down(source, stride, &taps, output, &mut vector);
                scalar::down(source, stride, &taps, output, &mut plain);
                prop_assert_eq!(vector, plain);
            }
        }
    }
}
