//! What happens to one encoded image on its way into a batch.
//!
//! Owns the order of operations and the memory between them. Refuses operations in an order that
//! means nothing. Invariant: a sample's shape follows from the image's size alone.

use super::center_crop::{Window, crop};
use super::resample::{Resampler, Scaling};
use super::write::Tables;
use super::{Filter, Frame, Op, PassOrder, Size};
use crate::decode::jpeg;
use crate::memory::Dtype;
use crate::{Error, Result};

/// Operations on one image, ready to run on any thread.
#[derive(Debug)]
pub struct Pipeline {
    steps: Vec<Step>,
    /// Present when samples are floats.
    tables: Option<Box<Tables>>,
}

/// Operations on pixels, a resize and the crop after it being one.
#[derive(Debug)]
enum Step {
    Resize {
        size: Size,
        filter: Filter,
        order: PassOrder,
        crop: Option<(usize, usize)>,
    },
    CenterCrop {
        height: usize,
        width: usize,
    },
}

/// Memory that one thread uses for all its images.
#[derive(Debug, Default)]
pub struct Scratch {
    decoded: Frame,
    made: Frame,
    next: Frame,
    resampler: Resampler,
}

impl Pipeline {
    /// Checks `ops` and puts them together.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`]: an operation that cannot follow the one before, or an empty size.
    pub fn new(ops: Vec<Op>) -> Result<Self> {
        let (mut steps, mut tables) = (Vec::new(), None::<Box<Tables>>);
        for op in ops {
            match (op, &mut tables) {
                (Op::ToTensor, None) => tables = Some(Tables::to_tensor()),
                (Op::ToTensor, Some(_)) => {
                    return Err(refuse("apply ToTensor twice", "leave the second one out"));
                }
                (Op::Normalize { .. }, None) => {
                    return Err(refuse("normalize bytes", "put ToTensor() before Normalize"));
                }
                (Op::Normalize { mean, std }, Some(tables)) => {
                    if std.contains(&0.0) {
                        return Err(refuse(
                            "divide by a std that is 0 in single precision",
                            "give a larger one",
                        ));
                    }
                    tables.normalize(mean, std);
                }
                (Op::Resize { .. }, Some(_)) => {
                    return Err(refuse("resize a tensor", "put Resize before ToTensor()"));
                }
                (Op::CenterCrop { .. }, Some(_)) => {
                    return Err(refuse("crop a tensor", "put CenterCrop before ToTensor()"));
                }
                (
                    Op::Resize {
                        size,
                        filter,
                        order,
                    },
                    None,
                ) => {
                    let (height, width) = size.of(1, 1);
                    if height.min(width) == 0 {
                        return Err(refuse("resize to no pixels", "give a size of 1 or more"));
                    }
                    steps.push(Step::Resize {
                        size,
                        filter,
                        order,
                        crop: None,
                    });
                }
                (Op::CenterCrop { height: 0, .. } | Op::CenterCrop { width: 0, .. }, None) => {
                    return Err(refuse("crop to no pixels", "give a size of 1 or more"));
                }
                (Op::CenterCrop { height, width }, None) => match steps.last_mut() {
                    Some(Step::Resize {
                        crop: crop @ None, ..
                    }) => *crop = Some((height, width)),
                    _ => steps.push(Step::CenterCrop { height, width }),
                },
            }
        }
        Ok(Self { steps, tables })
    }

    /// Returns the type of a sample's elements: uint8, or float32 after `ToTensor`.
    pub fn dtype(&self) -> Dtype {
        if self.tables.is_some() {
            Dtype::Float32
        } else {
            Dtype::UInt8
        }
    }

    /// Returns the shape of every sample, if it does not depend on the image.
    pub fn fixed_shape(&self) -> Option<Vec<usize>> {
        let fixed = self.steps.iter().any(|step| match step {
            Step::Resize { size, crop, .. } => crop.is_some() || matches!(size, Size::Exact { .. }),
            Step::CenterCrop { .. } => true,
        });
        // A resize by the shorter side keeps what was fixed before it fixed.
        fixed.then(|| self.shape_of(1, 1))
    }

    /// Returns the shape of the sample made of an image of `height` by `width` pixels: `(H, W, 3)`
    /// of bytes, `(3, H, W)` of floats.
    pub fn shape_of(&self, height: usize, width: usize) -> Vec<usize> {
        let (height, width) = self
            .steps
            .iter()
            .fold((height, width), |(height, width), step| {
                step.size(height, width)
            });
        if self.tables.is_some() {
            vec![3, height, width]
        } else {
            vec![height, width, 3]
        }
    }

    /// Decodes an image into `scratch`; returns its (height, width).
    ///
    /// # Errors
    ///
    /// [`Error::Decode`], without a path.
    pub fn decode(&self, encoded: &[u8], scratch: &mut Scratch) -> Result<(usize, usize)> {
        jpeg::decode(encoded, &mut scratch.decoded)?;
        Ok((scratch.decoded.height(), scratch.decoded.width()))
    }

    /// Makes the sample of the image decoded last and writes it into `out`.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`]: `out` has another size than the sample, or there is no memory.
    pub fn apply(&self, scratch: &mut Scratch, out: &mut [u8]) -> Result<()> {
        let shape = self.shape_of(scratch.decoded.height(), scratch.decoded.width());
        let bytes = shape.iter().product::<usize>() * self.dtype().itemsize();
        if out.len() != bytes {
            return Err(Error::Transform {
                what: format!("write a sample of shape {shape:?}"),
                reason: format!("it has {bytes} bytes and its slot {}", out.len()),
            });
        }
        let Scratch {
            decoded,
            made,
            next,
            resampler,
        } = scratch;
        let mut source = &*decoded;
        for step in &self.steps {
            step.run(source, resampler, next)?;
            std::mem::swap(made, next);
            source = made;
        }
        match &self.tables {
            Some(tables) => tables.write(source, out),
            None => out.copy_from_slice(source.pixels()),
        }
        Ok(())
    }
}

impl Step {
    fn size(&self, height: usize, width: usize) -> (usize, usize) {
        match self {
            Self::Resize { size, crop, .. } => crop.unwrap_or_else(|| size.of(height, width)),
            Self::CenterCrop { height, width } => (*height, *width),
        }
    }

    fn run(&self, source: &Frame, resampler: &mut Resampler, target: &mut Frame) -> Result<()> {
        match *self {
            Self::Resize {
                size,
                filter,
                order,
                crop,
            } => {
                let (height, width) = size.of(source.height(), source.width());
                let (tall, wide) = crop.unwrap_or((height, width));
                let rows = Window::center(height, tall);
                let columns = Window::center(width, wide);
                let scaling = Scaling {
                    height,
                    width,
                    filter,
                    order,
                    rows,
                    columns,
                };
                resampler.resize(source, &scaling, target)
            }
            Self::CenterCrop { height, width } => {
                let rows = Window::center(source.height(), height);
                crop(
                    source,
                    &rows,
                    &Window::center(source.width(), width),
                    target,
                )
            }
        }
    }
}

fn refuse(what: &str, remedy: &str) -> Error {
    Error::Transform {
        what: what.into(),
        reason: remedy.into(),
    }
}
