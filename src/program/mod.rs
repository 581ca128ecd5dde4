//! Makes a batch: fetch, decode, transform, collate, over the columns of a sample.
//!
//! Owns the recipe; makes samples from indices without Python. Knows neither threads nor order: a
//! [`Stream`](crate::stream::Stream) calls it through a [`Run`].

mod attempts;
mod copying;
mod fallback;
mod image;
mod picture;
mod planned;
mod record;
mod ruled;
mod run;

use std::path::PathBuf;
use std::time::Instant;

pub use attempts::{Attempts, BadSample, Tolerance};
use fallback::Refusal;
pub use fallback::{FallbackDecoder, Request};
pub use image::{Image, Source};
pub use picture::Picture;
pub use planned::{Budget, Planned};
pub use record::Contents;
pub use run::{Finished, OpenBatch, Run, Task};

use crate::collate::{Field, Method, Rule};
use crate::column::{Blob, Column, Kind, Refused, holder};
use crate::decode::Switches;
use crate::error::{Error, Result};
use crate::image::{Frame, Key};
use crate::order::Indices;
use crate::stats::Stages;
use crate::stream::{Work, is_cheap};
use crate::sync::Arc;

/// First guess of the cost of a decoded sample, in nanoseconds.
const DECODE_NS: f64 = 1_000_000.0;
/// First guess of the cost of transforming an image that needs no decoding, in nanoseconds.
const IMAGE_NS: f64 = 5_000.0;
/// First guess of the cost of copying a row, in nanoseconds: a cache miss, plus its bytes.
const ROW_NS: f64 = 20.0;
const ROW_BYTES_PER_NS: f64 = 8.0;

/// The columns of a sample, of one length: its leaves.
#[derive(Debug)]
pub struct Program {
    leaves: Vec<Arc<dyn Column>>,
    /// True for leaves that are lists: their batches have one tensor for each list position.
    lists: Vec<bool>,
    /// The collation rule of each leaf.
    rules: Vec<Rule>,
    len: usize,
    fetches: bool,
    has_images: bool,
    /// Bytes of a sample, as far as they are known before it is made.
    sample_bytes: usize,
    /// True if Python collates a batch whose fields do not fit together.
    falls_back: bool,
}

/// The settings by which the samples of one iterator are made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Seed of random operations.
    pub seed: u64,
    /// Number of resets of the iterator.
    pub epoch: u64,
    /// True if an index may come several times in an epoch; each time then has its own draws.
    pub repeats: bool,
    /// Pillow's setting for large images.
    pub switches: Switches,
    /// The policy for samples that cannot be made; without it they fail their batch.
    pub tolerance: Option<Tolerance>,
}

impl Options {
    /// Returns the key of a leaf, for the sample `index` at `place` in the iterator's stream.
    fn key(&self, index: usize, place: u64, leaf: usize) -> Key {
        Key {
            seed: self.seed,
            epoch: self.epoch,
            index: index as u64,
            draw: if self.repeats { place } else { 0 },
            leaf: leaf as u64,
        }
    }
}

/// The files of one sample, read but not decoded.
#[derive(Debug, Default)]
pub struct Fetched {
    /// The first leaf that is still to be made.
    first: usize,
    /// One entry for each leaf with files, from that one on.
    blobs: Vec<Blob>,
}

impl Program {
    /// Makes a program of leaves of one length; None if their lengths differ or there are none.
    ///
    /// `lists` says for each leaf whether its samples are lists of numbers, which torch collates by list
    /// position.
    pub fn new(leaves: Vec<Arc<dyn Column>>, lists: Vec<bool>) -> Option<Program> {
        let len = leaves.first()?.len();
        if lists.len() != leaves.len() || leaves.iter().any(|leaf| leaf.len() != len) {
            return None;
        }
        Some(Program {
            sample_bytes: leaves
                .iter()
                .fold(0, |sum, leaf| sum.saturating_add(leaf.sample_bytes())),
            has_images: leaves.iter().any(|leaf| leaf.layout().kind == Kind::Image),
            fetches: leaves.iter().any(|leaf| leaf.layout().fetches),
            rules: vec![Rule::default(); leaves.len()],
            leaves,
            lists,
            len,
            falls_back: false,
        })
    }

    /// Makes a program of the same samples, collated by `rules`, one for each leaf; None if their number
    /// differs, or if only some leaves are packed. `falls_back` says whether Python collates a batch whose fields
    /// do not fit together: its error is then [`Error::Declined`].
    pub fn collated(&self, rules: Vec<Rule>, falls_back: bool) -> Option<Program> {
        let packs = rules.iter().map(|rule| match &rule.method {
            Method::Pack(packs) => Some(packs.packing.is_some()),
            _ => None,
        });
        let packs: Vec<Option<bool>> = packs.collect();
        let is_packed = packs.first() == Some(&Some(true));
        let others = packs.get(1..).unwrap_or_default();
        if (!is_packed && packs.iter().any(Option::is_some))
            || (is_packed && others.iter().any(|other| *other != Some(false)))
        {
            return None;
        }
        (rules.len() == self.leaves.len()).then(|| Program {
            leaves: self.leaves.clone(),
            lists: self.lists.clone(),
            rules,
            falls_back,
            ..*self
        })
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the leaves.
    pub fn leaves(&self) -> &[Arc<dyn Column>] {
        &self.leaves
    }

    /// Returns true if something is fetched for a sample before it is computed.
    pub fn fetches(&self) -> bool {
        self.fetches
    }

    /// Returns true if a leaf is an image, whose file Python may be asked to decode.
    pub fn has_images(&self) -> bool {
        self.has_images
    }

    /// Returns true if samples depend on the seed.
    pub fn is_random(&self) -> bool {
        self.leaves.iter().any(|leaf| leaf.layout().is_random)
    }

    /// Returns a first guess of the cost of one sample, in nanoseconds.
    fn cost_ns(&self) -> f64 {
        if self.fetches {
            DECODE_NS
        } else {
            let each = if self.has_images { IMAGE_NS } else { ROW_NS };
            each * self.leaves.len() as f64 + self.sample_bytes as f64 / ROW_BYTES_PER_NS
        }
    }

    /// Returns true if, by the first guess, making a batch of so many samples is faster than waiting for it.
    pub fn is_cheap(&self, samples: usize) -> bool {
        !self.fetches && is_cheap(self.cost_ns(), samples)
    }

    /// Makes one sample on the calling thread, with the same code and so the same bits as in a batch.
    /// `fallback` decodes refused files on the same thread; None leaves them refused.
    pub fn sample(
        self: &Arc<Self>,
        index: i64,
        options: Options,
        fallback: impl Fn(&Refused) -> Option<Result<Frame>>,
    ) -> Result<Vec<Field>> {
        let run = Run::new(self.clone(), options, None);
        let batch = run.begin(Task::first(Indices::list([index]), false))?;
        let mut stages = Stages::default();
        let index = self.resolve(index)?;
        let mut fetched = self.read(index, &mut stages)?;
        while let Some(refusal) = run.make(&batch, 0, index, fetched, &mut stages)? {
            match fallback(&refusal.refused) {
                Some(frame) => fetched = refusal.answered(frame?),
                None => return Err(refusal.refused.error),
            }
        }
        Ok(run.finish(batch)?.fields)
    }

    /// Makes a batch on the calling thread, of samples for which nothing is fetched ([`Program::fetches`]).
    pub fn batch(self: &Arc<Self>, indices: Vec<i64>) -> Result<Vec<Field>> {
        assert!(!self.fetches, "a stream fetches");
        let (begun, samples) = (Instant::now(), indices.len());
        let run = Run::new(self.clone(), Options::default(), None);
        let batch = run.begin(Task::first(Indices::list(indices), true))?;
        let (mut failures, mut stages) = (Vec::new(), Stages::default());
        run.compute_range(&batch, 0..samples, begun, &mut failures, &mut stages);
        if let Some((_, error)) = failures.into_iter().next() {
            return Err(error);
        }
        Ok(run.finish(batch)?.fields)
    }

    /// Returns the first file of a sample; None if it has none.
    pub fn path(&self, index: i64) -> Option<PathBuf> {
        let index = self.resolve(index).ok()?;
        let columns = self.leaves.iter();
        let held = columns.filter_map(|leaf| holder(&**leaf, index).ok());
        let mut paths = held.filter_map(|(column, at)| Some(column.blobs()?.path(at)));
        let path = paths.find(|path| !path.as_os_str().is_empty())?;
        Some(path.to_owned())
    }

    /// Converts a Python index to one below the length.
    fn resolve(&self, index: i64) -> Result<usize> {
        let from_start = if index < 0 {
            index + self.len.cast_signed() as i64
        } else {
            index
        };
        let len = self.len;
        let place = usize::try_from(from_start).ok().filter(|&at| at < len);
        place.ok_or_else(|| Error::Index { index, len })
    }

    fn read(&self, index: usize, stages: &mut Stages) -> Result<Fetched> {
        let begun = Instant::now();
        let mut held = Vec::new();
        for leaf in &self.leaves {
            let (column, at) = holder(&**leaf, index)?;
            if let Some(blobs) = column.blobs() {
                let bytes = match blobs.fetch(at, column.part(at)?) {
                    // An unreadable file is refused with no bytes, so that torchvision raises its own error.
                    Err(Error::Read { .. }) if column.falls_back_if_unreadable() => Vec::new(),
                    other => other?,
                };
                stages.read_bytes += bytes.len() as u64;
                held.push(Blob::Encoded(bytes));
            }
        }
        stages.read += begun.elapsed();
        Ok(Fetched {
            first: 0,
            blobs: held,
        })
    }
}
