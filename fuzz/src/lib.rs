//! What every decoder must hold to, whatever it is fed.

use _lib::column::Blobs;
use _lib::decode::{Encoded, Format, Mode, Reading, Switches};
use _lib::format::{Array, RowRange, Target};
use _lib::image::{Frame, Region};
use _lib::{Error, Result};

/// No input may take longer than this many pixels do.
const SWITCHES: Switches = Switches {
    max_pixels: Some(1 << 20),
};

/// Decodes `encoded`, if it is of `format`, in every mode: as a whole, and a window of it, which must be
/// refused alike or have the same pixels.
pub fn check(format: Format, encoded: &[u8]) {
    if Format::of(encoded) != Some(format) {
        return;
    }
    let modes = [Mode::Rgb, Mode::Grey, Mode::Unchanged, Mode::Spread];
    for reading in modes
        .into_iter()
        .flat_map(|mode| [Reading::pillow(mode), Reading::torchvision(mode)])
    {
        let Ok(image) = Encoded::open(encoded, reading, SWITCHES) else {
            continue;
        };
        let _ = image.expect_upright();
        let shape = image.shape();
        let window = window(encoded, shape.height, shape.width);
        let (mut whole, mut part) = (Frame::default(), Frame::default());
        let all = image.decode(Region::whole(shape), &mut whole);
        let some = image.decode(window, &mut part);
        match (all, some) {
            (Ok(all), Ok(some)) => {
                let expected = whole.view().part(window.within(all));
                let made = part.view().part(window.within(some));
                assert!(made.rows().eq(expected.rows()));
                assert_eq!(whole.shape(), shape);
            }
            (Err(_), Err(_)) => {}
            (all, some) => panic!("the whole is {all:?}, a window of it {some:?}"),
        }
    }
}

/// Chooses a window by the last bytes, which formats care for least.
fn window(encoded: &[u8], height: usize, width: usize) -> Region {
    let byte = |back: usize| usize::from(encoded[encoded.len().saturating_sub(back + 1)]);
    let (top, left) = (byte(0) * height / 256, byte(1) * width / 256);
    Region {
        top,
        left,
        height: 1 + byte(2) * (height - top - 1) / 255,
        width: 1 + byte(3) * (width - left - 1) / 255,
    }
}

/// No sample may have more bytes.
const MOST_BYTES: usize = 1 << 24;

/// Memory for one sample.
struct Row {
    bytes: Vec<u8>,
    itemsize: usize,
}

impl Target for Row {
    fn shaped(&mut self, shape: &[usize]) -> Result<&mut [u8]> {
        self.bytes = vec![0; shape.iter().product::<usize>() * self.itemsize];
        Ok(&mut self.bytes)
    }
}

/// Makes the first sample of a column, unless it is large; returns its shape and elements.
///
/// # Errors
///
/// Those of the format; none of a sample that is large, which has no elements then.
pub fn sample(array: &dyn Array, blobs: &Blobs) -> Result<(Vec<usize>, Vec<u8>)> {
    let itemsize = array.dtype().itemsize();
    let shape = array.shape(0).ok_or(Error::Abandoned)?.to_vec();
    if shape.iter().product::<usize>() * itemsize > MOST_BYTES {
        return Ok((Vec::new(), Vec::new()));
    }
    let bytes = blobs.fetch(0, array.part(0)?)?;
    let mut row = Row {
        bytes: Vec::new(),
        itemsize,
    };
    array.decode(0, &bytes, &mut row)?;
    Ok((shape, row.bytes))
}

/// Asserts that some rows of what `read` reads, which takes the rows that are wanted, are those of the whole.
///
/// # Panics
///
/// They are not.
pub fn check_rows(read: impl Fn(&[RowRange]) -> Result<(Vec<usize>, Vec<u8>)>) {
    let rows = RowRange {
        start: Some(1),
        stop: Some(3),
    };
    if let Ok((shape, whole)) = read(&[])
        && let Some(&len) = shape.first()
    {
        let (_, part) = read(&[rows]).expect("rows of what can be read");
        let row = whole.len() / len.max(1);
        assert_eq!(part, whole[len.min(1) * row..len.min(3) * row]);
    }
}
