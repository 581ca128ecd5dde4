//! One encoded image, whose pixels are made whenever they are needed.

use once_cell::race::OnceBox;

use crate::Result;
use crate::decode::{Draft, Encoded, Reading, Switches};
use crate::image::{Frame, Key, Pipeline, Plan, Region, Shape};

/// An encoded image, and its pixels once they are kept.
#[derive(Debug)]
pub struct Picture<B> {
    encoded: B,
    reading: Reading,
    switches: Switches,
    draft: Option<Draft>,
    shape: Shape,
    whole: OnceBox<Frame>,
}

impl<B: AsRef<[u8]>> Picture<B> {
    /// Reads the header. With `draft`, the image is a draft of the file's.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`](crate::Error::Decode), without a path: native code does not decode it.
    pub fn open(
        encoded: B,
        reading: Reading,
        switches: Switches,
        draft: Option<Draft>,
    ) -> Result<Self> {
        let shape = header(encoded.as_ref(), reading, switches, draft)?.shape();
        Ok(Self {
            encoded,
            reading,
            switches,
            draft,
            shape,
            whole: OnceBox::new(),
        })
    }

    /// Returns the shape of the whole image.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Applies `pipeline` to the image by `plan` and writes the result to `out`. Decodes only the part that
    /// is needed, or with `keep` the whole image, and keeps it for the next time.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`](crate::Error::Decode), without a path: the file is damaged or truncated; and those
    /// of [`Pipeline::apply`].
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

    /// Returns the plan of `pipeline` for this image.
    pub fn plan(&self, pipeline: &Pipeline) -> Result<Plan> {
        pipeline.plan(self.shape, Key::default())
    }

    fn decode(&self, wanted: Region, frame: &mut Frame) -> Result<Region> {
        let encoded = self.encoded.as_ref();
        header(encoded, self.reading, self.switches, self.draft)?.decode(wanted, frame)
    }
}

fn header(
    encoded: &[u8],
    reading: Reading,
    switches: Switches,
    draft: Option<Draft>,
) -> Result<Encoded<'_>> {
    let encoded = Encoded::open(encoded, reading, switches)?;
    match draft {
        Some(draft) => encoded.drafted(draft),
        None => Ok(encoded),
    }
}
