//! Scaling: a pass along each dimension, with 8 bits in between.
//!
//! Owns which passes run, in which order, and on which region of the image; [`Weights`] is the arithmetic of
//! each library. Refuses empty images. Invariant: a pixel of the result depends on its position in the whole
//! result, not on the requested window; rows and columns outside of the window are not computed, and source
//! pixels that the window does not need are not read.
use std::ops::Range;

use super::nearest::{self, Nearest, Positions};
use super::torch::{self, Interpolation};
use super::weights::{Span, Weights};
use super::{Filter, Frame, Kernel, PassOrder, Pixels, Region, pillow};
use crate::Result;

/// Weights and rows of the last resize, kept for the next one.
#[derive(Debug, Default)]
pub(super) struct Resampler {
    pillow: Passes<pillow::Taps>,
    torch: Passes<torch::Taps>,
    nearest: Nearest,
    between: Frame,
}

/// One dimension of a scaling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    /// Pixels of the whole source.
    pub(super) from: usize,
    /// Pixels of the whole result.
    pub(super) to: usize,
    /// The source coordinates at which the result begins and ends; the source's edges with torch's kernels.
    pub(super) sides: (f32, f32),
}

impl Axis {
    /// Scales all of the source.
    pub(super) fn whole(from: usize, to: usize) -> Self {
        let sides = (0.0, from as f32);
        Self { from, to, sides }
    }

    /// Returns true if the result is the source.
    fn is_same(&self) -> bool {
        self.from == self.to && self.sides == (0.0, self.to as f32)
    }
}

/// The parameters of a scaling.
#[derive(Clone, Debug)]
pub(super) struct Scaling {
    pub(super) height: Axis,
    pub(super) width: Axis,
    /// The kernel that weights and rounds pixels.
    pub(super) kernel: Kernel,
    /// The requested window of the result.
    pub(super) window: Region,
}

/// The part of the resampler that implements a kernel.
enum Method {
    Nearest(Positions),
    Pillow(Filter, PassOrder),
    Torch(Interpolation),
}

impl Scaling {
    pub(super) fn rows(&self) -> Range<usize> {
        self.window.top..self.window.top + self.window.height
    }

    pub(super) fn columns(&self) -> Range<usize> {
        self.window.left..self.window.left + self.window.width
    }

    fn method(&self) -> Method {
        match self.kernel {
            Kernel::Pillow(Filter::Nearest, _) => Method::Nearest(nearest::pillow_centers),
            Kernel::Pillow(filter, order) => Method::Pillow(filter, order),
            Kernel::Torch(interpolation) => {
                match interpolation.positions((self.height.to, self.width.to)) {
                    Some(positions) => Method::Nearest(positions),
                    None => Method::Torch(interpolation),
                }
            }
        }
    }
}

impl Resampler {
    /// Returns the region of the source that the window of the result depends on.
    pub(super) fn reach(&mut self, scaling: &Scaling) -> Result<Region> {
        let (height, width) = (scaling.height, scaling.width);
        let (from, to) = ((height.from, width.from), (height.to, width.to));
        scaling.kernel.check(from, to)?;
        if height.is_same() && width.is_same() {
            return Ok(scaling.window);
        }
        let (rows, columns) = match scaling.method() {
            Method::Nearest(positions) => self.nearest.prepare(scaling, positions)?,
            Method::Pillow(filter, _) => self.pillow.prepare(scaling, filter)?,
            Method::Torch(interpolation) => self.torch.prepare(scaling, interpolation)?,
        };
        Ok(Region::new(
            rows.start,
            columns.start,
            rows.len(),
            columns.len(),
        ))
    }

    /// Scales to `target`. `source` is the region that [`Resampler::reach`] returned.
    pub(super) fn resize(
        &mut self,
        source: Pixels<'_>,
        scaling: &Scaling,
        target: &mut Frame,
    ) -> Result<()> {
        let Scaling {
            height,
            width,
            window,
            ..
        } = *scaling;
        let reach = self.reach(scaling)?;
        assert_eq!(
            (source.height(), source.width()),
            (reach.height, reach.width),
            "the part that was asked for"
        );
        if height.is_same() && width.is_same() {
            return target.copy(source);
        }
        target.reset(source.shape().sized(window.height, window.width))?;
        let between = &mut self.between;
        match scaling.method() {
            Method::Nearest(_) => {
                self.nearest.run(source, reach, target);
                Ok(())
            }
            Method::Pillow(_, order) => {
                let down_first = order.down_first((height.from, height.to), (width.from, width.to));
                let passes = &self.pillow;
                passes.run(source, reach, scaling, down_first, between, target)
            }
            Method::Torch(_) => {
                let passes = &self.torch;
                passes.run(source, reach, scaling, false, between, target)
            }
        }
    }
}

/// The weights of both dimensions.
#[derive(Debug, Default)]
struct Passes<W> {
    across: W,
    down: W,
}

impl<W: Weights> Passes<W> {
    /// Computes the weights; returns the rows and columns of the source that they are for.
    fn prepare(
        &mut self,
        scaling: &Scaling,
        filter: W::Filter,
    ) -> Result<(Range<usize>, Range<usize>)> {
        self.down.prepare(scaling.height, filter, scaling.rows())?;
        self.across
            .prepare(scaling.width, filter, scaling.columns())?;
        let rows = if scaling.height.is_same() {
            scaling.rows()
        } else {
            reach(self.down.spans())
        };
        let columns = if scaling.width.is_same() {
            scaling.columns()
        } else {
            reach(self.across.spans())
        };
        Ok((rows, columns))
    }

    /// Runs a pass along each dimension that changes.
    fn run(
        &self,
        source: Pixels<'_>,
        reach: Region,
        scaling: &Scaling,
        down_first: bool,
        between: &mut Frame,
        target: &mut Frame,
    ) -> Result<()> {
        let window = scaling.window;
        let Self { across, down } = self;
        if scaling.width.is_same() {
            down.down(source, reach.top, target);
        } else if scaling.height.is_same() {
            across.across(source, reach.left, target);
        } else if down_first {
            between.reset(source.shape().sized(window.height, reach.width))?;
            down.down(source, reach.top, between);
            across.across(between.view(), reach.left, target);
        } else {
            between.reset(source.shape().sized(reach.height, window.width))?;
            across.across(source, reach.left, between);
            down.down(between.view(), reach.top, target);
        }
        Ok(())
    }
}

/// Returns the source pixels that any output needs; starts and ends must ascend.
fn reach(spans: &[Span]) -> Range<usize> {
    match (spans.first(), spans.last()) {
        (Some(first), Some(last)) => first.start..last.start + last.len,
        _ => 0..0,
    }
}
