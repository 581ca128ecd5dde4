//! The last step: pixels to a sample's slot, as bytes or through a table.

use super::{Pixels, Shape};
use crate::memory::Dtype;
use crate::{Error, Result};

/// Maximum bytes of a pixel.
const MOST_CHANNELS: usize = 4;

/// The elements of a sample.
#[derive(Clone, Debug)]
pub enum Output {
    /// The bytes, unchanged.
    Bytes(Layout),
    /// A table entry for each byte and channel.
    Table(Table, Layout),
}

/// The order of a sample's dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `(H, W, C)`.
    Hwc,
    /// `(C, H, W)`.
    Chw,
    /// `(H, W, C)`, or `(H, W)` for one channel: NumPy's array of a Pillow image.
    Array,
}

/// The element for each byte value and channel.
///
/// The entries come from the user's own operations, run on all 256 byte values: a look-up equals the whole
/// chain, bit for bit, whatever the operations are.
#[derive(Clone, Debug)]
pub struct Table {
    dtype: Dtype,
    /// Elements channel by channel, 256 each.
    entries: Box<[u8]>,
    channels: usize,
}

impl Table {
    /// Takes 256 elements for each channel; None if `entries` has another size.
    pub fn new(dtype: Dtype, channels: usize, entries: Box<[u8]>) -> Option<Self> {
        let fits = channels > 0 && entries.len() == channels * 256 * dtype.itemsize();
        fits.then_some(Self {
            dtype,
            entries,
            channels,
        })
    }

    /// Returns the elements of one channel; a table of one channel serves all.
    fn channel<const N: usize>(&self, channel: usize) -> &[[u8; N]; 256] {
        let (elements, _) = self.entries.as_chunks::<N>();
        let first = channel.min(self.channels - 1) * 256;
        let elements = elements[first..].first_chunk();
        elements.expect("256 elements for each channel, by `new`")
    }
}

impl Output {
    /// Returns the type of a sample's elements.
    pub fn dtype(&self) -> Dtype {
        match self {
            Self::Bytes(_) => Dtype::UInt8,
            Self::Table(table, _) => table.dtype,
        }
    }

    /// Returns the order of a sample's dimensions.
    pub fn layout(&self) -> Layout {
        let (Self::Bytes(layout) | Self::Table(_, layout)) = self;
        *layout
    }

    /// Returns the shape of the sample that an image of `shape` becomes.
    pub fn sample_shape(&self, shape: Shape) -> Vec<usize> {
        match self.layout() {
            Layout::Array if shape.channels == 1 => vec![shape.height, shape.width],
            Layout::Hwc | Layout::Array => vec![shape.height, shape.width, shape.channels],
            Layout::Chw => vec![shape.channels, shape.height, shape.width],
        }
    }

    /// Refuses images with another number of channels than the table. Returns the size of that sample in
    /// bytes; None on overflow.
    pub(super) fn check(&self, shape: Shape) -> Result<()> {
        let channels = match self {
            Self::Table(table, _) if table.channels > 1 => table.channels,
            _ => shape.channels,
        };
        if channels == shape.channels {
            return Ok(());
        }
        Err(Error::Broadcast {
            got: self.sample_shape(shape),
            wanted: self.sample_shape(shape.with_channels(channels)),
        })
    }

    /// Returns how many bytes that sample takes; None where no memory can have as many.
    pub(super) fn sample_bytes(&self, shape: Shape) -> Option<usize> {
        let bytes = shape.bytes()?.checked_mul(self.dtype().itemsize())?;
        isize::try_from(bytes).is_ok().then_some(bytes)
    }

    /// Writes an image to `out`, which has exactly its size.
    pub(super) fn write(&self, source: Pixels<'_>, out: &mut [u8]) {
        match self {
            Self::Bytes(Layout::Hwc | Layout::Array) => {
                let row_bytes = source.width() * source.channels();
                for (row, into) in source.rows().zip(out.chunks_exact_mut(row_bytes.max(1))) {
                    into.copy_from_slice(row);
                }
            }
            Self::Bytes(Layout::Chw) => {
                let bytes = std::array::from_fn(|byte| [byte as u8]);
                planes::<1>(source, [&bytes; MOST_CHANNELS], out);
            }
            Self::Table(table, layout) => match table.dtype.itemsize() {
                1 => look_up::<1>(table, *layout, source, out),
                2 => look_up::<2>(table, *layout, source, out),
                4 => look_up::<4>(table, *layout, source, out),
                _ => look_up::<8>(table, *layout, source, out),
            },
        }
    }
}

fn look_up<const N: usize>(table: &Table, layout: Layout, source: Pixels<'_>, out: &mut [u8]) {
    let elements = std::array::from_fn(|channel| table.channel::<N>(channel));
    match layout {
        Layout::Chw => planes(source, elements, out),
        Layout::Hwc | Layout::Array => {
            let mut into = out.as_chunks_mut::<N>().0.iter_mut();
            for row in source.rows() {
                for pixel in row.chunks_exact(source.channels()) {
                    for ((byte, elements), into) in pixel.iter().zip(elements).zip(&mut into) {
                        *into = elements[usize::from(*byte)];
                    }
                }
            }
        }
    }
}

/// Writes `(C, H, W)`, one plane per channel.
fn planes<const N: usize>(
    source: Pixels<'_>,
    elements: [&[[u8; N]; 256]; MOST_CHANNELS],
    out: &mut [u8],
) {
    let plane = source.height() * source.width();
    let (out, _) = out.as_chunks_mut::<N>();
    if source.channels() == 1 {
        let bytes = source.rows().flatten();
        for (into, byte) in out.iter_mut().zip(bytes) {
            *into = elements[0][usize::from(*byte)];
        }
        return;
    }
    if source.channels() != 3 {
        let planes = out.chunks_exact_mut(plane.max(1));
        for ((channel, out), elements) in planes.enumerate().zip(elements) {
            let pixels = source
                .rows()
                .flat_map(|row| row.chunks_exact(source.channels()));
            for (into, pixel) in out.iter_mut().zip(pixels) {
                *into = elements[usize::from(pixel[channel])];
            }
        }
        return;
    }
    let [reds, greens, blues, _] = elements;
    let (red, rest) = out.split_at_mut(plane);
    let (green, blue) = rest.split_at_mut(plane);
    let width = source.width().max(1);
    let into = red
        .chunks_exact_mut(width)
        .zip(green.chunks_exact_mut(width))
        .zip(blue.chunks_exact_mut(width));
    for (row, ((red, green), blue)) in source.rows().zip(into) {
        let pixels = row.as_chunks::<3>().0.iter();
        for (((pixel, red), green), blue) in pixels.zip(red).zip(green).zip(blue) {
            *red = reds[usize::from(pixel[0])];
            *green = greens[usize::from(pixel[1])];
            *blue = blues[usize::from(pixel[2])];
        }
    }
}
