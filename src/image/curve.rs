//! Curves: a new value for each byte value, wherever in the image it is. Some are computed from the histogram:
//! `PIL.ImageOps.autocontrast` and `equalize`.

use super::to_byte::double_to_byte;
use super::{Frame, Pixels};
use crate::{Error, Result};

/// The new value of each of the 256 values.
#[derive(Clone, Copy)]
pub(super) struct Curve([u8; 256]);

impl Curve {
    /// Calls `becomes` for every value.
    pub(super) fn new(becomes: impl Fn(u8) -> u8) -> Self {
        Self(std::array::from_fn(|value| becomes(value as u8)))
    }

    /// Applies the same curve to all channels.
    pub(super) fn apply(&self, source: Pixels<'_>, target: &mut Frame) -> Result<()> {
        target.fill_rows(source, |row, into| {
            for (&value, into) in row.iter().zip(into) {
                *into = self.0[usize::from(value)];
            }
        })
    }
}

/// Applies a curve to each channel; a grey image uses the first.
fn apply_each(curves: &[Curve; 3], source: Pixels<'_>, target: &mut Frame) -> Result<()> {
    if source.channels() == 1 {
        return curves[0].apply(source, target);
    }
    target.fill_rows(source, |row, into| {
        let pixels = row.as_chunks::<3>().0.iter();
        for (pixel, into) in pixels.zip(into.as_chunks_mut::<3>().0) {
            *into = std::array::from_fn(|channel| curves[channel].0[usize::from(pixel[channel])]);
        }
    })
}

/// Inverts the image.
pub(super) fn invert(source: Pixels<'_>, target: &mut Frame) -> Result<()> {
    Curve::new(|value| 255 - value).apply(source, target)
}

/// Keeps the highest `bits` of each value.
pub(super) fn posterize(bits: u8, source: Pixels<'_>, target: &mut Frame) -> Result<()> {
    if !(1..=8).contains(&bits) {
        return Err(Error::transform(
            format!("posterize to {bits} bits"),
            "give 1 to 8",
        ));
    }
    let mask = 0xff << (8 - bits);
    Curve::new(|value| value & mask).apply(source, target)
}

/// Inverts values of at least `threshold`.
pub(super) fn solarize(threshold: f64, source: Pixels<'_>, target: &mut Frame) -> Result<()> {
    let becomes = |value: u8| {
        if f64::from(value) < threshold {
            value
        } else {
            255 - value
        }
    };
    Curve::new(becomes).apply(source, target)
}

/// The histogram of one channel.
type Counts = [u64; 256];

/// Stretches each channel, so that its darkest value becomes black and its lightest white.
pub(super) fn autocontrast(source: Pixels<'_>, target: &mut Frame) -> Result<()> {
    apply_each(
        &count(source).map(|counts| stretch(&counts)),
        source,
        target,
    )
}

/// Equalizes each channel's histogram.
pub(super) fn equalize(source: Pixels<'_>, target: &mut Frame) -> Result<()> {
    apply_each(&count(source).map(|counts| spread(&counts)), source, target)
}

/// Returns the histogram of each channel; that of a grey image for all three.
fn count(source: Pixels<'_>) -> [Counts; 3] {
    // Neighbours are often equal, and incrementing the same counter twice in a row waits for the first: every
    // byte of four pixels has its own counters.
    let mut counts = [[0_u32; 256]; 12];
    for row in source.rows() {
        let (groups, rest) = row.as_chunks::<12>();
        for group in groups {
            for at in 0..group.len() {
                counts[at][usize::from(group[at])] += 1;
            }
        }
        for (counts, &value) in counts.iter_mut().zip(rest) {
            counts[usize::from(value)] += 1;
        }
    }
    let channels = source.channels();
    std::array::from_fn(|channel| {
        let of_channel = counts.iter().skip(channel % channels).step_by(channels);
        of_channel.fold([0; 256], |mut sums, counts| {
            for (sum, &count) in sums.iter_mut().zip(counts) {
                *sum += u64::from(count);
            }
            sums
        })
    })
}

fn stretch(counts: &Counts) -> Curve {
    let used = |&value: &usize| counts[value] > 0;
    let (low, high) = ((0..256).find(used), (0..256).rfind(used));
    match (low, high) {
        (Some(low), Some(high)) if low < high => {
            let scale = 255.0 / (high - low) as f64;
            let offset = -(low as f64) * scale;
            Curve::new(|value| double_to_byte(f64::from(value) * scale + offset))
        }
        _ => Curve::new(|value| value),
    }
}

fn spread(counts: &Counts) -> Curve {
    let last = counts.iter().rfind(|&&count| count > 0);
    let all = counts.iter().sum::<u64>();
    let step = (all - last.copied().unwrap_or(0)) / 255;
    if step == 0 {
        return Curve::new(|value| value);
    }
    let mut below = step / 2;
    Curve(counts.map(|count| {
        let value = below / step;
        below += count;
        value.min(255) as u8
    }))
}
