//! One encoded image whose pixels are made when they are asked for, as often as they are.

use once_cell::race::OnceBox;

use crate::Result;
use crate::decode::{Encoded, Reading, Switches};
use crate::image::{Frame, Key, Pipeline, Plan, Region, Shape};

/// An encoded image, and its pixels once they are kept.
#[derive(Debug)]
pub struct Picture<B> {
    encoded: B,
    reading: Reading,
    switches: Switches,
    shape: Shape,
    whole: OnceBox<Frame>,
}

impl<B: AsRef<[u8]>> Picture<B> {
    /// Reads the header.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`](crate::Error::Decode), without a path: it is not decoded here.
    pub fn open(encoded: B, reading: Reading, switches: Switches) -> Result<Self> {
        let shape = Encoded::open(encoded.as_ref(), reading, switches)?.shape();
        Ok(Self {
            encoded,
            reading,
            switches,
            shape,
            whole: OnceBox::new(),
        })
    }

    /// Size of the whole image.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Makes what `pipeline` makes of the image and writes it to `out`, by its plan. Decodes the part that is needed;
    /// or, to `keep` the pixels for the next time, all of them.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`](crate::Error::Decode), without a path: damaged, or cut short; and those of
    /// [`Pipeline::apply`].
    pub fn write(
        &self,
        pipeline: &Pipeline,
        plan: &Plan,
        keep: bool,
        out: &mut [u8],
    ) -> Result<()> {
        super::image::with_scratch(|scratch| match self.whole.get() {
            Some(frame) => pipeline.apply_to(frame, plan, scratch, out),
            None if keep => {
                let mut frame = Frame::default();
                self.decode(Region::whole(self.shape), &mut frame)?;
                pipeline.apply_to(
                    self.whole.get_or_init(|| Box::new(frame)),
                    plan,
                    scratch,
                    out,
                )
            }
            None => {
                let wanted = pipeline.wanted(plan, self.shape, scratch)?;
                let held = self.decode(wanted, &mut scratch.decoded)?;
                pipeline.apply(plan, self.shape, held, scratch, out)
            }
        })
    }

    /// Returns what is to be done to this image.
    ///
    /// # Errors
    ///
    /// As [`Pipeline::plan`].
    pub fn plan(&self, pipeline: &Pipeline) -> Result<Plan> {
        pipeline.plan(self.shape, Key::default())
    }

    fn decode(&self, wanted: Region, frame: &mut Frame) -> Result<Region> {
        let encoded = Encoded::open(self.encoded.as_ref(), self.reading, self.switches)?;
        encoded.decode(wanted, frame)
    }
}
