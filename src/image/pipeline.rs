//! What happens to one image on its way into a batch.
//!
//! Owns the order of operations and the memory between them. Invariant: a sample depends on the encoded
//! bytes, the operations and the key of its draws alone.

use super::op::{Op, Plan};
use super::output::Output;
use super::resample::Resampler;
use super::{Action, Frame, Key, Region, Shape};
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
    /// Where an image is decoded to.
    pub decoded: Frame,
    made: Frame,
    next: Frame,
    resampler: Resampler,
}

impl Pipeline {
    /// Puts operations together. `source` is what is known of the images: (rows, columns) if all are
    /// alike, and the bytes of a pixel.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`]: an operation that makes images of no pixels.
    pub fn new(
        ops: Vec<Op>,
        output: Output,
        source: (Option<(usize, usize)>, Option<usize>),
    ) -> Result<Self> {
        let mut size = source.0;
        for op in &ops {
            size = op.fixed_size(size);
            if size.is_some_and(|(height, width)| height.min(width) == 0) {
                return Err(Error::Transform {
                    what: "make images of no pixels".into(),
                    reason: "give a size of 1 or more".into(),
                });
            }
        }
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

    /// Tells whether samples depend on the key of their draws.
    pub fn is_random(&self) -> bool {
        self.ops.iter().any(Op::is_random)
    }

    /// Returns the type of a sample's elements.
    pub fn dtype(&self) -> Dtype {
        self.output.dtype()
    }

    /// Returns the shape of every sample, if it does not depend on the image.
    pub fn fixed_shape(&self) -> Option<Vec<usize>> {
        let ((height, width), channels) = (self.size?, self.channels?);
        Some(self.output.sample_shape(Shape {
            height,
            width,
            channels,
        }))
    }

    /// Returns the shape of the sample that a plan makes.
    pub fn sample_shape(&self, plan: &Plan) -> Vec<usize> {
        self.output.sample_shape(plan.shape())
    }

    /// Draws what is done to an image of `shape`.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`]: an operation cannot take the image.
    pub fn plan(&self, shape: Shape, key: Key) -> Result<Plan> {
        let mut plan = Plan::new(shape);
        for (place, op) in self.ops.iter().enumerate() {
            op.plan(key, place as u32, &mut plan)?;
        }
        Ok(plan)
    }

    /// Returns the part of an image of `shape` that the sample is made of.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`]: an operation cannot take the image.
    pub fn wanted(&self, plan: &Plan, shape: Shape, scratch: &mut Scratch) -> Result<Region> {
        let (rest, region) = take_crops(&plan.actions, shape);
        let Some((action, after)) = rest.split_first() else {
            return Ok(region);
        };
        let shape = shape.sized(region.height, region.width);
        let (_, window) = take_crops(after, action.shape(shape));
        Ok(match action.scaling(shape, window) {
            Some(scaling) => region.inside(scratch.resampler.reach(&scaling)?),
            None => region,
        })
    }

    /// Makes the sample of an image of `shape` and writes it into `out`. `held` is the region that
    /// [`Scratch::decoded`] holds of the image; what [`Pipeline::wanted`] told lies inside.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`]: `out` has another size than the sample, an operation cannot take the
    /// image, or there is no memory.
    pub fn apply(
        &self,
        plan: &Plan,
        shape: Shape,
        held: Region,
        scratch: &mut Scratch,
        out: &mut [u8],
    ) -> Result<()> {
        let sample_shape = self.sample_shape(plan);
        let bytes = sample_shape.iter().product::<usize>() * self.dtype().itemsize();
        if out.len() != bytes {
            return Err(Error::Transform {
                what: format!("write a sample of shape {sample_shape:?}"),
                reason: format!("it has {bytes} bytes and its slot {}", out.len()),
            });
        }
        let Scratch {
            decoded,
            made,
            next,
            resampler,
        } = scratch;
        let mut source = decoded.view();
        let mut held = held;
        let mut shape = shape;
        let mut rest = &plan.actions[..];
        loop {
            let (actions, region) = take_crops(rest, shape);
            let Some((action, after)) = actions.split_first() else {
                self.output.write(source.part(region.within(held)), out);
                return Ok(());
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

/// Splits the crops off the front of `actions`: returns what follows, and the region of an image of
/// `shape` that they keep.
fn take_crops(actions: &[Action], shape: Shape) -> (&[Action], Region) {
    let mut region = Region::whole(shape);
    let mut rest = actions;
    while let Some((Action::Crop(inner), after)) = rest.split_first() {
        region = region.inside(*inner);
        rest = after;
    }
    (rest, region)
}
