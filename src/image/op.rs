//! The operations that a user can choose; names and meanings are torchvision's.
//!
//! Owns the conversion of an operation to actions on an image of known size. Adding one is a variant here
//! with an arm in each `match`; random ones are listed in `random`.

use super::action::Kernel;
use super::erasure::Erasure;
use super::random::{Nested, Random};
use super::{Action, Draws, Key, Movement, Rotation, Shape, pad};
use crate::{Error, Result};

/// One operation of an image pipeline.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// The same action for every image.
    Action(Action),
    /// Scales the image.
    Resize(Size, Kernel),
    /// Crops the centre; pixels outside of the image are black.
    CenterCrop {
        /// Rows of the result.
        height: usize,
        /// Columns of the result.
        width: usize,
    },
    /// Translates, scales and shears the image within its size.
    Movement(Movement),
    /// Rotates the image.
    Rotation(Rotation),
    /// An action with random parameters for each image.
    Random(Random),
    /// Some of several operations.
    Nested(Nested),
}

/// The size that an image is scaled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Pixels of the shorter side; the longer one keeps the proportion, rounded down.
    Shorter {
        /// Pixels of the shorter side.
        size: usize,
        /// Maximum pixels of the longer side; the shorter one then keeps the proportion.
        longest: Option<usize>,
    },
    /// Both sides, without regard to the proportion.
    Exact {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
}

/// The actions for one image, and the image's size after the last of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What is done with the image, in order.
    pub actions: Vec<Action>,
    /// Shape of the image after the actions.
    pub(super) shape: Shape,
    /// Rectangles of the sample that are overwritten at the end.
    pub erased: Vec<Erasure>,
}

impl Plan {
    /// Makes an empty plan for an image of `shape`.
    pub fn new(shape: Shape) -> Self {
        Self {
            actions: Vec::new(),
            shape,
            erased: Vec::new(),
        }
    }

    /// Adds an action.
    pub fn push(&mut self, action: Action) {
        self.shape = action.shape(self.shape);
        self.actions.push(action);
    }

    /// Returns the shape of the image after the actions.
    pub fn shape(&self) -> Shape {
        self.shape
    }
}

impl Op {
    /// Adds the operation's actions to `plan`, for the image after the plan's actions. `place` numbers the
    /// operation within the pipeline, for its draws.
    ///
    /// # Errors
    ///
    /// [`Error::ImageMismatch`]: the operation cannot be applied to an image of this size.
    /// [`Error::Transform`]: its result is too large for memory, or a crop exceeds the image.
    pub fn plan(&self, key: Key, place: u32, plan: &mut Plan) -> Result<()> {
        let shape = plan.shape();
        let outside = |what: String| {
            let reason = format!("the image has {}x{} pixels", shape.height, shape.width);
            Err(Error::transform(what, reason))
        };
        match self {
            Self::Action(Action::Crop(region)) if !region.lies_in(shape) => {
                return outside(format!("crop {region:?}"));
            }
            Self::Action(Action::Resize {
                part: Some(part), ..
            }) if !part.lies_in(shape) => return outside(format!("scale {part:?}")),
            Self::Action(action) => plan.push(action.clone()),
            Self::Resize(size, kernel) => {
                let (height, width) = size.of(shape.height, shape.width);
                kernel.check((shape.height, shape.width), (height, width))?;
                plan.push(Action::Resize {
                    height,
                    width,
                    kernel: *kernel,
                    part: None,
                });
            }
            Self::CenterCrop { height, width } => pad::center_crop(*height, *width, plan),
            Self::Movement(movement) => plan.push(Action::Affine(movement.of(shape))),
            Self::Rotation(rotation) => rotation.plan(plan),
            Self::Random(random) => random.plan(Draws::new(key, place), plan)?,
            Self::Nested(nested) => nested.plan(key, place, plan)?,
        }
        let shape = plan.shape();
        shape.bytes().map(drop).ok_or_else(|| shape.too_large())
    }

    /// Returns how many places the operation takes: one, plus those of the operations within.
    pub fn places(&self) -> u32 {
        match self {
            Self::Nested(nested) => 1 + nested.ops().map(Self::places).sum::<u32>(),
            _ => 1,
        }
    }

    /// Returns true if `found` is true for the operation or for one within.
    pub fn any(&self, found: &dyn Fn(&Self) -> bool) -> bool {
        let within = |nested: &Nested| nested.ops().any(|op| op.any(found));
        found(self) || matches!(self, Self::Nested(nested) if within(nested))
    }

    /// Returns true if the operation draws.
    pub fn is_random(&self) -> bool {
        matches!(self, Self::Random(_) | Self::Nested(_))
    }

    /// Returns the bytes of a pixel after the operation, if they are the same for all images; `before` is the
    /// same for its input.
    pub fn fixed_channels(&self, before: Option<usize>) -> Option<usize> {
        match self {
            Self::Action(action) => action.channels().or(before),
            Self::Nested(nested) => nested.fixed(before, Self::fixed_channels),
            Self::Resize(..)
            | Self::CenterCrop { .. }
            | Self::Movement(_)
            | Self::Rotation(_)
            | Self::Random(_) => before,
        }
    }

    /// Returns (height, width) after the operation if it does not depend on the image; `before` is the same
    /// for its input.
    pub fn fixed_size(&self, before: Option<(usize, usize)>) -> Option<(usize, usize)> {
        let same_for = |(height, width)| {
            let mut plan = Plan::new(Shape::new(height, width, 3));
            self.plan(Key::default(), 0, &mut plan).ok()?;
            Some((plan.shape().height, plan.shape().width))
        };
        match self {
            Self::CenterCrop { height, width } | Self::Resize(Size::Exact { height, width }, _) => {
                Some((*height, *width))
            }
            Self::Action(_) | Self::Resize(..) | Self::Rotation(_) => same_for(before?),
            Self::Movement(_) => before,
            Self::Random(random) => random.fixed_size(before),
            Self::Nested(nested) => nested.fixed(before, Self::fixed_size),
        }
    }
}

impl Size {
    /// Returns (height, width) of an image of `height` by `width` pixels once scaled.
    ///
    /// As torchvision's `_compute_resized_output_size`: its `int(size * long / short)` divides in
    /// floating point, which for these magnitudes truncates to the same integer.
    pub fn of(self, height: usize, width: usize) -> (usize, usize) {
        let (size, longest) = match self {
            Self::Exact { height, width } => return (height, width),
            Self::Shorter { size, longest } => (size, longest),
        };
        let (short, long) = (height.min(width).max(1), height.max(width));
        let (mut short_to, mut long_to) = (size, in_proportion(size, long, short));
        if let Some(longest) = longest.filter(|&longest| long_to > longest) {
            (short_to, long_to) = (in_proportion(longest, short_to, long_to), longest);
        }
        if width <= height {
            (long_to, short_to)
        } else {
            (short_to, long_to)
        }
    }
}

/// Returns `value * by / of`, rounded down; `of` must not be 0. Saturates.
fn in_proportion(value: usize, by: usize, of: usize) -> usize {
    let exact = value as u128 * by as u128 / of as u128;
    usize::try_from(exact).unwrap_or(usize::MAX)
}
