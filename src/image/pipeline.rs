//! The operations on one image, from decoding to the batch.
//!
//! Owns the order of operations and the memory between them. Invariant: a sample depends only on the encoded
//! bytes, the operations and the key of its draws.

use super::op::{Op, Plan};
use super::output::{Layout, Output};
use super::random::{Random, nested};
use super::resample::Resampler;
use super::{Action, Frame, Key, Pixels, Region, Shape, erasure};
use crate::memory::Dtype;
use crate::{Error, Result};

/// Operations on one image, ready to run on any thread.
#[derive(Debug)]
pub struct Pipeline {
    ops: Vec<Op>,
    output: Output,
    /// (rows, columns) of every sample, if they do not depend on the image.
    size: Option<(usize, usize)>,
    /// Bytes of a pixel, if it is the same for all.
    channels: Option<usize>,
}

/// Memory that one thread uses for all its images.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The decoded image.
    pub decoded: Frame,
    work: Work,
}

#[derive(Debug, Default)]
struct Work {
    made: Frame,
    next: Frame,
    resampler: Resampler,
}

impl Pipeline {
    /// Makes a pipeline. `source` is known about the images: (rows, columns) and the bytes of a pixel, each
    /// if all images have the same.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`]: an operation that makes images without pixels; or an erasure that is not the
    /// last step, or whose value does not fit the sample.
    pub fn new(
        ops: Vec<Op>,
        output: Output,
        source: (Option<(usize, usize)>, Option<usize>),
    ) -> Result<Self> {
        let mut size = source.0;
        for op in &ops {
            size = op.fixed_size(size);
            if size.is_some_and(|(height, width)| height.min(width) == 0) {
                return Err(Error::transform(
                    "make images of no pixels",
                    "give a size of 1 or more",
                ));
            }
        }
        check_erasing(&ops, &output)?;
        let channels = ops
            .iter()
            .fold(source.1, |before, op| op.fixed_channels(before));
        Ok(Self {
            ops,
            output,
            size,
            channels,
        })
    }

    /// Returns true if samples depend on the key of their draws.
    pub fn is_random(&self) -> bool {
        self.ops.iter().any(Op::is_random)
    }

    /// Returns the type of a sample's elements.
    pub fn dtype(&self) -> Dtype {
        self.output.dtype()
    }

    /// Returns true if samples are the pixels themselves: bytes, channels last.
    pub fn makes_pixels(&self) -> bool {
        matches!(self.output, Output::Bytes(Layout::Hwc))
    }

    /// Returns the shape of every sample, if it does not depend on the image; None for samples too large for
    /// memory, each of which is refused when it is planned.
    pub fn fixed_shape(&self) -> Option<Vec<usize>> {
        let ((height, width), channels) = (self.size?, self.channels?);
        let shape = Shape::new(height, width, channels);
        self.check(shape).ok()?;
        Some(self.output.sample_shape(shape))
    }

    /// Refuses samples, of images of `shape`, that are too large for memory.
    fn check(&self, shape: Shape) -> Result<()> {
        let bytes = self.output.sample_bytes(shape).map(drop);
        bytes.ok_or_else(|| shape.too_large())
    }

    /// Returns the shape of the sample that a plan makes.
    pub fn sample_shape(&self, plan: &Plan) -> Vec<usize> {
        self.output.sample_shape(plan.shape())
    }

    /// Draws the actions for an image of `shape`.
    ///
    /// # Errors
    ///
    /// [`Error::Channels`]: the image is neither grey nor RGB. [`Error::Transform`]: an operation cannot be
    /// applied to the image, or its result is too large for memory. [`Error::Broadcast`]: the result has another
    /// number of channels than the output.
    pub fn plan(&self, shape: Shape, key: Key) -> Result<Plan> {
        let is_copy = self.ops.is_empty() && matches!(self.output, Output::Bytes(_));
        if !is_copy && !matches!(shape.channels, 1 | 3) {
            self.output.check(shape)?;
            return Err(Error::Channels {
                channels: shape.channels,
            });
        }
        let mut plan = Plan::new(shape);
        nested::run(&self.ops, key, 0, &mut plan)?;
        self.check(plan.shape())?;
        self.output.check(plan.shape())?;
        Ok(plan)
    }

    /// Returns the region of an image of `shape` that the sample depends on.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`]: an operation cannot be applied to the image.
    pub fn wanted(&self, plan: &Plan, shape: Shape, scratch: &mut Scratch) -> Result<Region> {
        let (rest, region) = take_crops(&plan.actions, shape);
        let Some((action, after)) = rest.split_first() else {
            return Ok(region);
        };
        let shape = shape.sized(region.height, region.width);
        let (_, window) = take_crops(after, action.shape(shape));
        Ok(match action.scaling(shape, window) {
            Some(scaling) => region.inside(scratch.work.resampler.reach(&scaling)?),
            None => region,
        })
    }

    /// Makes the sample of an image of `shape` and writes it to `out`. [`Scratch::decoded`] holds the region
    /// `held` of the image, which must contain the region that [`Pipeline::wanted`] returned.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`]: `out` has another size than the sample, an operation cannot be applied to the
    /// image, or there is no memory.
    pub fn apply(
        &self,
        plan: &Plan,
        shape: Shape,
        held: Region,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<()> {
        let Scratch { decoded, work } = scratch;
        self.run(plan, shape, (decoded.view(), held), work, out)
    }

    /// Makes the sample of an image that `frame` holds whole, and writes it to `out`.
    ///
    /// # Errors
    ///
    /// As [`Pipeline::apply`].
    pub fn apply_to(
        &self,
        frame: &Frame,
        plan: &Plan,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<()> {
        let shape = frame.shape();
        let whole = (frame.view(), Region::whole(shape));
        self.run(plan, shape, whole, &mut scratch.work, out)
    }

    /// Runs on a part of an image of `shape`; `held` is the part and its region.
    fn run(
        &self,
        plan: &Plan,
        shape: Shape,
        held: (Pixels<'_>, Region),
        work: &mut Work,
        out: &mut [u8],
    ) -> Result<()> {
        let sample_shape = self.sample_shape(plan);
        let bytes = sample_shape.iter().product::<usize>() * self.dtype().itemsize();
        if out.len() != bytes {
            return Err(Error::transform(
                format!("write a sample of shape {sample_shape:?}"),
                format!("it has {bytes} bytes, but its slot has {}", out.len()),
            ));
        }
        let Work {
            made,
            next,
            resampler,
        } = work;
        let (mut source, mut held) = held;
        let mut shape = shape;
        let mut rest = &plan.actions[..];
        loop {
            let (actions, region) = take_crops(rest, shape);
            let Some((action, after)) = actions.split_first() else {
                self.output.write(source.part(region.within(held)), out);
                let itemsize = self.dtype().itemsize();
                let mut erased = plan.erased.iter();
                return erased.try_for_each(|part| part.run(plan.shape, itemsize, out));
            };
            let before = shape.sized(region.height, region.width);
            let (cropped, window) = take_crops(after, action.shape(before));
            if let Some(scaling) = action.scaling(before, window) {
                let reach = region.inside(resampler.reach(&scaling)?);
                resampler.resize(source.part(reach.within(held)), &scaling, next)?;
                rest = cropped;
            } else {
                action.run(source.part(region.within(held)), resampler, next)?;
                rest = after;
            }
            std::mem::swap(made, next);
            (shape, held) = (made.shape(), Region::whole(made.shape()));
            source = made.view();
        }
    }
}

/// Refuses an erasure that is not the last step, or whose value does not fit the sample.
fn check_erasing(ops: &[Op], output: &Output) -> Result<()> {
    let refuse = |reason: &str| Error::transform("erase parts of a sample", reason);
    let erases = |op: &&Op| matches!(op, Op::Random(Random::Erasing(_)));
    let last = ops.iter().rev().take_while(erases).count();
    let (before, erasing) = ops.split_at(ops.len() - last);
    if before.iter().any(|op| op.any(&|op| erases(&op))) {
        return Err(refuse("move RandomErasing after all other operations"));
    }
    for op in erasing {
        if let Op::Random(Random::Erasing(erasing)) = op
            && let Some(reason) = erasure::refusal(erasing.value.as_deref(), output)
        {
            return Err(refuse(reason));
        }
    }
    Ok(())
}

/// Splits the leading crops off `actions`: returns the remaining actions, and the region of an image of
/// `shape` that the crops keep.
fn take_crops(actions: &[Action], shape: Shape) -> (&[Action], Region) {
    let mut region = Region::whole(shape);
    let mut rest = actions;
    while let Some((Action::Crop(inner), after)) = rest.split_first() {
        region = region.inside(*inner);
        rest = after;
    }
    (rest, region)
}

#[cfg(test)]
mod tests {
    use super::super::random::Nested;
    use super::super::{Filter, Kernel, Pad, Padding, PassOrder, Size, Turn};
    use super::*;

    const BYTES: Output = Output::Bytes(Layout::Hwc);
    const SOURCE: Shape = Shape::new(9, 12, 3);

    fn pad(by: usize) -> Op {
        Op::Action(Action::Pad(Pad {
            left: by,
            top: by,
            right: by,
            bottom: by,
            mode: Padding::Constant,
            fill: [0; 3],
        }))
    }

    fn resize(size: Size, filter: Filter) -> Op {
        Op::Resize(size, Kernel::Pillow(filter, PassOrder::AcrossFirst))
    }

    /// Makes a sample of a black image into a slot of `bytes`.
    fn sample(ops: Vec<Op>, bytes: usize) -> Result<()> {
        let pipeline = Pipeline::new(ops, BYTES, (None, Some(SOURCE.channels)))?;
        let mut scratch = Scratch::default();
        scratch.decoded.reset(SOURCE)?;
        let plan = pipeline.plan(SOURCE, Key::default())?;
        pipeline.wanted(&plan, SOURCE, &mut scratch)?;
        let whole = Region::whole(SOURCE);
        pipeline.apply(&plan, SOURCE, whole, &mut scratch, &mut vec![0; bytes])
    }

    #[test]
    fn what_no_memory_can_hold_is_refused() {
        let exact = |height, width| Size::Exact { height, width };
        let shorter = |size, longest| Size::Shorter { size, longest };
        let turned = Op::Action(Action::Turn(Turn::Left));
        for ops in [
            vec![pad(1 << 62)],
            vec![pad(usize::MAX), pad(usize::MAX)],
            vec![pad(1 << 31), turned],
            vec![Op::Nested(Nested::Apply(1.0, vec![pad(1 << 62)]))],
            vec![resize(exact(1 << 40, 1 << 40), Filter::Nearest)],
            vec![resize(exact(1 << 59, 1), Filter::Nearest)],
            vec![resize(exact(1 << 59, 1), Filter::Bilinear)],
            vec![resize(shorter(usize::MAX, None), Filter::Bilinear)],
            vec![resize(shorter(1 << 62, Some(usize::MAX)), Filter::Box)],
            vec![Op::CenterCrop {
                height: 1 << 62,
                width: 1 << 62,
            }],
        ] {
            let what = format!("{ops:?}");
            let made = sample(ops, 0);
            let refused = matches!(made, Err(Error::Transform { .. } | Error::Memory { .. }));
            assert!(refused, "{what}");
        }
    }

    #[test]
    fn what_no_memory_can_hold_has_no_shape() {
        let crop = |height, width| vec![Op::CenterCrop { height, width }];
        let made = |ops| Pipeline::new(ops, BYTES, (None, Some(3))).expect("pixels");
        assert_eq!(made(crop(1 << 62, 1)).fixed_shape(), None);
        assert_eq!(made(crop(4, 5)).fixed_shape(), Some(vec![4, 5, 3]));
    }

    #[test]
    fn a_crop_lies_in_the_image() {
        let crop = |top, left, height, width| {
            let region = Region::new(top, left, height, width);
            sample(vec![Op::Action(Action::Crop(region))], height * width * 3)
        };
        crop(0, 0, 9, 12).expect("the whole image");
        crop(8, 11, 1, 1).expect("its last pixel");
        for (top, left, height, width) in [(0, 0, 10, 1), (0, 12, 1, 1), (9, 0, 1, 1)] {
            let refused = crop(top, left, height, width);
            assert!(matches!(refused, Err(Error::Transform { .. })));
        }
        let far = Region::new(usize::MAX, 0, 1, 1);
        assert!(!far.lies_in(SOURCE));
    }

    #[test]
    fn a_slot_of_another_size_is_refused() {
        let made = sample(vec![pad(1)], 11 * 14 * 3 - 1);
        assert!(matches!(made, Err(Error::Transform { .. })));
        sample(vec![pad(1)], 11 * 14 * 3).expect("its own size");
    }
}
