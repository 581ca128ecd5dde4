//! `AutoAugment`, `RandAugment` and `TrivialAugmentWide`: augmentations that are chosen for each image.
//!
//! Owns torchvision's `_augmentation_space` and `_apply_op`, for Pillow images. Invariant: a magnitude has
//! the bits of the element of `torch.linspace` that torchvision would take.

use super::policy::Policy;
use crate::image::{Action, Draws, Interpolation, Movement, Plan, Rotation, Shape};
use Augmentation as A;

/// Applies augmentations that are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Augment {
    /// The way in which they are drawn.
    pub choice: Choice,
    /// The parameters with which they are applied.
    pub augmenter: Augmenter,
}

/// The way in which augmentations are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// `AutoAugment`: a pair of the policy, all equally likely. Each of the two has its own probability, and
    /// its magnitude, of ten levels.
    Pair(Policy),
    /// `RandAugment`: augmentations that are equally likely, all of one magnitude.
    Several {
        /// Number of augmentations.
        count: u32,
        /// Their magnitude, below the augmenter's bins.
        level: u32,
    },
    /// `TrivialAugmentWide`: one augmentation; all augmentations and all magnitudes are equally likely.
    One,
}

impl Augment {
    pub(crate) fn plan(&self, draws: &mut Draws, plan: &mut Plan) {
        let augmenter = &self.augmenter;
        match self.choice {
            Choice::Pair(policy) => {
                for step in draws.one_of(policy.pairs()) {
                    if draws.happens(f64::from(step.tenths) / 10.0) {
                        augmenter.plan(step.what, step.level, draws, plan);
                    }
                }
            }
            Choice::Several { count, level } => {
                for _ in 0..count {
                    let what = draws.one_of(&Augmentation::CHOICE);
                    augmenter.plan(what, level, draws, plan);
                }
            }
            Choice::One => {
                let what = draws.one_of(&Augmentation::CHOICE);
                let level = draws.below(augmenter.bins);
                augmenter.plan(what, level, draws, plan);
            }
        }
    }
}

/// A kind of augmentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names are torchvision's
pub(super) enum Augmentation {
    Identity,
    ShearX,
    ShearY,
    TranslateX,
    TranslateY,
    Rotate,
    Brightness,
    Color,
    Contrast,
    Sharpness,
    Posterize,
    Solarize,
    AutoContrast,
    Equalize,
    Invert,
}

impl Augmentation {
    /// The augmentations of `RandAugment` and `TrivialAugmentWide`.
    pub(super) const CHOICE: [Self; 14] = [
        A::Identity,
        A::ShearX,
        A::ShearY,
        A::TranslateX,
        A::TranslateY,
        A::Rotate,
        A::Brightness,
        A::Color,
        A::Contrast,
        A::Sharpness,
        A::Posterize,
        A::Solarize,
        A::AutoContrast,
        A::Equalize,
    ];

    /// Returns true if its magnitude is negated half of the time.
    fn is_signed(self) -> bool {
        !matches!(
            self,
            A::Identity | A::Posterize | A::Solarize | A::AutoContrast | A::Equalize | A::Invert
        )
    }
}

/// The parameters with which augmentations are applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Augmenter {
    /// Number of magnitude levels; at least 2.
    pub bins: u32,
    /// True for the magnitudes of `TrivialAugmentWide`.
    pub wide: bool,
    /// True to round as `torchvision.transforms.v2` does.
    pub second: bool,
    /// The interpolation between source pixels.
    pub interpolation: Interpolation,
    /// The value of each channel for missing pixels.
    pub fill: [u8; 3],
}

impl Augmenter {
    /// Adds an augmentation of magnitude `level`, below [`Augmenter::bins`], to `plan`; draws its sign.
    #[allow(clippy::cast_sign_loss)] // the number of bits is at least 2
    pub(super) fn plan(&self, what: A, level: u32, draws: &mut Draws, plan: &mut Plan) {
        let mut magnitude = self.magnitude(what, level, plan.shape());
        if what.is_signed() && draws.below(2) == 1 {
            magnitude = -magnitude;
        }
        match what {
            A::Identity => {}
            A::ShearX => self.move_by(Movement::sloping(magnitude, 0.0), plan),
            A::ShearY => self.move_by(Movement::sloping(0.0, magnitude), plan),
            A::TranslateX => self.translate((magnitude.trunc(), 0.0), plan),
            A::TranslateY => self.translate((0.0, magnitude.trunc()), plan),
            A::Rotate => Rotation {
                angle: magnitude,
                expand: false,
                center: None,
                interpolation: self.interpolation,
                fill: self.fill,
            }
            .plan(plan),
            A::Brightness => plan.push(Action::Brightness(1.0 + magnitude)),
            A::Color => plan.push(Action::Saturation(1.0 + magnitude)),
            A::Contrast => plan.push(Action::Contrast(1.0 + magnitude)),
            A::Sharpness => plan.push(Action::Sharpness(1.0 + magnitude)),
            A::Posterize => plan.push(Action::Posterize(magnitude as u8)),
            A::Solarize => plan.push(Action::Solarize(magnitude)),
            A::AutoContrast => plan.push(Action::Autocontrast),
            A::Equalize => plan.push(Action::Equalize),
            A::Invert => plan.push(Action::Invert),
        }
    }

    fn translate(&self, translate: (f64, f64), plan: &mut Plan) {
        let movement = Movement {
            translate,
            ..Movement::NONE
        };
        self.move_by(movement, plan);
    }

    fn move_by(&self, movement: Movement, plan: &mut Plan) {
        let movement = Movement {
            interpolation: self.interpolation,
            fill: self.fill,
            ..movement
        };
        plan.push(Action::Affine(movement.of(plan.shape())));
    }

    fn magnitude(&self, what: A, level: u32, shape: Shape) -> f64 {
        let pick = |narrow: f64, wide: f64| if self.wide { wide } else { narrow };
        let moved = |side: usize| pick(150.0 / 331.0 * side as f64, 32.0);
        let up_to = |most: f64| self.element(0.0, most, level);
        match what {
            A::Identity | A::AutoContrast | A::Equalize | A::Invert => 0.0,
            A::ShearX | A::ShearY => up_to(pick(0.3, 0.99)),
            A::TranslateX => up_to(moved(shape.width)),
            A::TranslateY => up_to(moved(shape.height)),
            A::Rotate => up_to(pick(30.0, 135.0)),
            A::Brightness | A::Color | A::Contrast | A::Sharpness => up_to(pick(0.9, 0.99)),
            A::Posterize => self.bits(level, pick(4.0, 6.0)),
            A::Solarize if self.second => 255.0 * self.element(1.0, 0.0, level),
            A::Solarize => self.element(255.0, 0.0, level),
        }
    }

    /// Returns the number of bits kept of a value, at the highest level `most` fewer than all.
    fn bits(&self, level: u32, most: f64) -> f64 {
        let fewer = level as f32 / (f64::from(self.bins - 1) / most) as f32;
        f64::from(if self.second {
            (8.0 - fewer).round_ties_even()
        } else {
            8.0 - fewer.round_ties_even()
        })
    }

    /// Returns an element of `torch.linspace(start, end, bins)`, computed with fused multiply-adds.
    fn element(&self, start: f64, end: f64, at: u32) -> f64 {
        let (start, end, last) = (start as f32, end as f32, self.bins - 1);
        let step = (end - start) / last as f32;
        f64::from(if at < self.bins / 2 {
            step.mul_add(at as f32, start)
        } else {
            (-step).mul_add((last - at) as f32, end)
        })
    }
}
