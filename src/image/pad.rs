//! Padding around an image, and the crop of its centre.

use super::{Action, Frame, Pixels, Plan, Region};
use crate::{Error, Result};

/// The kind of the pixels that are added; the names are torchvision's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// One value for each channel.
    Constant,
    /// The outermost pixels repeated.
    Edge,
    /// The image mirrored at its outermost pixels, which are not repeated.
    Reflect,
    /// The image mirrored at its edges.
    Symmetric,
}

impl Padding {
    /// Finds torchvision's `padding_mode`.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Constant, Self::Edge, Self::Reflect, Self::Symmetric]
            .into_iter()
            .find(|padding| padding.name() == name)
    }

    /// Returns torchvision's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Edge => "edge",
            Self::Reflect => "reflect",
            Self::Symmetric => "symmetric",
        }
    }

    /// Returns which pixel of a side of `len`, at least 1, is at index `at` after `before` pixels were added
    /// in front. Mirrors as often as needed, as `numpy.pad` does.
    fn index(self, at: usize, before: usize, len: usize) -> usize {
        let (period, overlap) = match self {
            Self::Constant | Self::Edge => return at.saturating_sub(before).min(len - 1),
            Self::Reflect => (2 * (len - 1), 0),
            Self::Symmetric => (2 * len, 1),
        };
        if period == 0 {
            return 0;
        }
        let at = (at + period - before % period) % period;
        if at < len { at } else { period - overlap - at }
    }
}

/// The number of pixels added on each side, and their kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Pad {
    /// Columns before the first.
    pub left: usize,
    /// Rows before the first.
    pub top: usize,
    /// Columns after the last.
    pub right: usize,
    /// Rows after the last.
    pub bottom: usize,
    /// The kind of the pixels that are added.
    pub mode: Padding,
    /// The value of each channel, for constant padding.
    pub fill: [u8; 3],
}

impl Pad {
    /// Returns (height, width) of an image of `height` by `width` pixels after padding.
    pub fn size(&self, height: usize, width: usize) -> (usize, usize) {
        (
            height.saturating_add(self.top).saturating_add(self.bottom),
            width.saturating_add(self.left).saturating_add(self.right),
        )
    }

    /// Pads `source` to `target`.
    pub(super) fn run(&self, source: Pixels<'_>, target: &mut Frame) -> Result<()> {
        self.check(source.height(), source.width())?;
        let (height, width) = self.size(source.height(), source.width());
        target.reset(source.shape().sized(height, width))?;
        match source.channels() {
            3 => self.pad::<3>(source, target, self.fill),
            _ => self.pad::<1>(source, target, [self.fill[0]]),
        }
        Ok(())
    }

    fn pad<const C: usize>(&self, source: Pixels<'_>, target: &mut Frame, fill: [u8; C]) {
        let inner = self.left..self.left + source.width();
        if self.mode == Padding::Constant {
            target.pixels_mut().as_chunks_mut().0.fill(fill);
            for (row, into) in source.rows().zip(target.rows_mut().skip(self.top)) {
                let into = into.as_chunks_mut::<C>().0;
                into[inner.clone()].copy_from_slice(row.as_chunks().0);
            }
            return;
        }
        for (at, into) in target.rows_mut().enumerate() {
            let row = source.row(self.mode.index(at, self.top, source.height()));
            let (row, into) = (row.as_chunks::<C>().0, into.as_chunks_mut::<C>().0);
            into[inner.clone()].copy_from_slice(row);
            for at in (0..inner.start).chain(inner.end..into.len()) {
                into[at] = row[self.mode.index(at, self.left, row.len())];
            }
        }
    }

    fn check(&self, height: usize, width: usize) -> Result<()> {
        if self.mode == Padding::Constant || height.min(width) > 0 {
            return Ok(());
        }
        Err(Error::transform(
            format!("pad an image of {height}x{width} pixels ({:?})", self.mode),
            "the image has no pixel to repeat",
        ))
    }
}

/// Adds torchvision's `center_crop` to `plan`: the crop of the central `height` by `width` pixels. Pixels outside of the image are black.
pub(super) fn center_crop(height: usize, width: usize, plan: &mut Plan) {
    let shape = plan.shape();
    if height > shape.height || width > shape.width {
        let down = height.saturating_sub(shape.height);
        let across = width.saturating_sub(shape.width);
        plan.push(Action::Pad(Pad {
            left: across / 2,
            top: down / 2,
            right: across.div_ceil(2),
            bottom: down.div_ceil(2),
            mode: Padding::Constant,
            fill: [0; 3],
        }));
    }
    let shape = plan.shape();
    if (shape.height, shape.width) != (height, width) {
        plan.push(Action::Crop(Region::new(
            start(shape.height - height),
            start(shape.width - width),
            height,
            width,
        )));
    }
}

/// Returns half of `surplus`, rounding halves to even as Python does.
fn start(surplus: usize) -> usize {
    surplus / 2 + usize::from(surplus % 4 == 3)
}
