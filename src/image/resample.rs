//! Scaling as Pillow: a pass along each dimension, with 8 bits in between.
//!
//! Owns the order of the passes and which of them run (`ImagingResampleInner` of `Resample.c`).
//! Refuses empty images. Invariant: a pixel of the result depends on its place in the whole result,
//! not on the window that is asked for; rows and columns outside of the window are not computed,
//! nor are pixels of the source looked at that the window does not need.

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use super::avx2::{self, Avx2};
use super::taps::Taps;
use super::{Filter, Frame, PassOrder, Pixels, Region, nearest, scalar};
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
#[derive(Clone, Debug)]
pub(super) struct Scaling {
    /// (rows, columns) of the whole source.
    pub(super) from: (usize, usize),
    /// (rows, columns) of the whole result.
    pub(super) to: (usize, usize),
    /// How pixels are weighted.
    pub(super) filter: Filter,
    /// Which pass comes first.
    pub(super) order: PassOrder,
    /// What is wanted of the result.
    pub(super) window: Region,
}

impl Scaling {
    fn rows(&self) -> Range<usize> {
        self.window.top..self.window.top + self.window.height
    }

    fn columns(&self) -> Range<usize> {
        self.window.left..self.window.left + self.window.width
    }
}

impl Resampler {
    /// Returns the part of the source that the window of the result is made of.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`]: an empty image or size, or no memory.
    pub(super) fn reach(&mut self, scaling: &Scaling) -> Result<Region> {
        let Scaling {
            from,
            to,
            filter,
            window,
            ..
        } = *scaling;
        if from.0.min(from.1).min(to.0).min(to.1) == 0 {
            return Err(Error::Transform {
                what: format!("resize to {}x{}", to.0, to.1),
                reason: format!("the image has {}x{} pixels", from.0, from.1),
            });
        }
        if from == to {
            return Ok(window);
        }
        let (rows, columns) = if filter == Filter::Nearest {
            nearest::positions(from.0, to.0, scaling.rows(), &mut self.rows);
            nearest::positions(from.1, to.1, scaling.columns(), &mut self.columns);
            (span(&self.rows), span(&self.columns))
        } else {
            self.down.prepare(from.0, to.0, filter, scaling.rows())?;
            self.across
                .prepare(from.1, to.1, filter, scaling.columns())?;
            let rows = if from.0 == to.0 {
                scaling.rows()
            } else {
                self.down.reach()
            };
            let columns = if from.1 == to.1 {
                scaling.columns()
            } else {
                self.across.reach()
            };
            (rows, columns)
        };
        Ok(Region {
            top: rows.start,
            left: columns.start,
            height: rows.len(),
            width: columns.len(),
        })
    }

    /// Scales into `target`. `source` is what [`Resampler::reach`] returned of the whole source.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`]: an empty image or size, or no memory.
    pub(super) fn resize(
        &mut self,
        source: Pixels<'_>,
        scaling: &Scaling,
        target: &mut Frame,
    ) -> Result<()> {
        let Scaling {
            from, to, window, ..
        } = *scaling;
        let reach = self.reach(scaling)?;
        assert_eq!(
            (source.height(), source.width()),
            (reach.height, reach.width),
            "the part that was asked for"
        );
        target.reset(source.shape().sized(window.height, window.width))?;
        if from == to {
            for (row, into) in source.rows().zip(target.rows_mut()) {
                into.copy_from_slice(row);
            }
            return Ok(());
        }
        if scaling.filter == Filter::Nearest {
            let (columns, left) = (&mut self.columns, reach.left);
            for column in columns.iter_mut() {
                *column -= left;
            }
            for (row, into) in self.rows.iter().zip(target.rows_mut()) {
                nearest::row(
                    source.row(row - reach.top),
                    columns,
                    source.channels(),
                    into,
                );
            }
            return Ok(());
        }
        let Self {
            across,
            down,
            between,
            ..
        } = self;
        if from.1 == to.1 {
            pass_down(source, reach.top, down, target);
        } else if from.0 == to.0 {
            pass_across(source, reach.left, across, target);
        } else if scaling.order.down_first((from.0, to.0), (from.1, to.1)) {
            between.reset(source.shape().sized(window.height, reach.width))?;
            pass_down(source, reach.top, down, between);
            pass_across(between.view(), reach.left, across, target);
        } else {
            between.reset(source.shape().sized(reach.height, window.width))?;
            pass_across(source, reach.left, across, between);
            pass_down(between.view(), reach.top, down, target);
        }
        Ok(())
    }
}

/// Returns the range that ascending positions lie in.
fn span(positions: &[usize]) -> Range<usize> {
    match (positions.first(), positions.last()) {
        (Some(&first), Some(&last)) => first..last + 1,
        _ => 0..0,
    }
}

/// Scales every row of `source` along its length. The weights count pixels from `left` pixels before
/// the first of `source`.
fn pass_across(source: Pixels<'_>, left: usize, taps: &Taps, target: &mut Frame) {
    let channels = source.channels();
    let mut rows = 0..source.height();
    let mut targets = target.rows_mut();
    #[cfg(target_arch = "x86_64")]
    if channels == 3
        && let Some(avx2) = Avx2::detect()
    {
        while rows.len() >= avx2::ROWS {
            let from = [(); avx2::ROWS].map(|()| source.onward(rows.next().unwrap_or_default()));
            let into = [(); avx2::ROWS].map(|()| targets.next().unwrap_or_default());
            avx2.across(from, left, taps, into);
        }
    }
    for (row, into) in rows.zip(targets) {
        match channels {
            3 => scalar::across::<3>(source.row(row), left, taps, into),
            _ => scalar::across::<1>(source.row(row), left, taps, into),
        }
    }
}

/// Makes rows of weighted rows of `source`. The weights count rows from one `above` rows above the
/// first of `source`.
fn pass_down(source: Pixels<'_>, above: usize, taps: &Taps, target: &mut Frame) {
    let stride = source.stride();
    for (output, (span, into)) in taps.spans().iter().zip(target.rows_mut()).enumerate() {
        let from = source.onward(span.start - above);
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
    use crate::image::Shape;

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
            wide.reset(Shape {
                height: avx2::ROWS,
                width: from,
                channels: 3,
            })
            .unwrap();
            noise(seed, wide.room());
            let rows = std::array::from_fn(|row| wide.view().onward(row));
            let mut vector = [(); avx2::ROWS].map(|()| vec![0; to * 3]);
            avx2.across(rows, 0, &taps, vector.each_mut().map(Vec::as_mut_slice));
            for (row, made) in rows.iter().zip(vector) {
                let mut plain = vec![0; to * 3];
                scalar::across::<3>(row, 0, &taps, &mut plain);
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
