//! Colour conversions after decoding, in place, with Pillow's integer arithmetic.
//!
//! Owns the arithmetic of `convert` where the decoder's library does not do it, and the order in which pixels
//! change their size inside a frame. Invariant: a frame keeps its rows and columns, and nothing is allocated.

use crate::image::{Frame, pillow_luma};

/// Pixels that are converted at once, in a separate buffer, so that the compiler can use vectors.
const BLOCK_PIXELS: usize = 64;

/// Converts RGB to grey, as the grey operation on images does.
pub(super) fn rgb_to_grey(frame: &mut Frame) {
    repack(frame, |rgb: [u8; 3]| [pillow_luma(rgb)]);
}

/// Converts inverted CMYK, as files hold it, to RGB: Pillow treats every such JPEG as one of Adobe's (rawmode
/// `CMYK;I`, then `cmyk2rgb` of `Convert.c`).
pub(super) fn inverted_cmyk_to_rgb(frame: &mut Frame) {
    repack(frame, |[cyan, magenta, yellow, light]: [u8; 4]| {
        [cyan, magenta, yellow].map(|ink| light - scale(255 - ink, light))
    });
}

/// Returns `a * b / 255`, rounded (`MULDIV255` of Pillow's `ImagingUtils.h`).
fn scale(a: u8, b: u8) -> u8 {
    let product = u32::from(a) * u32::from(b) + 128;
    (((product >> 8) + product) >> 8) as u8
}

/// Returns the end of `frame`, where [`repack`] expects pixels of `from` bytes, which must not be more than
/// the frame's own.
pub(super) fn tail(frame: &mut Frame, from: usize) -> &mut [u8] {
    let pixels = frame.shape().height * frame.shape().width;
    let bytes = frame.pixels_mut();
    let start = bytes.len() - pixels * from;
    &mut bytes[start..]
}

/// Replaces each pixel of `FROM` bytes by one of `TO` bytes.
///
/// The frame's pixels have as many bytes as the larger of both. Larger ones are written from the front, over
/// the [`tail`] with the smaller ones, and never overtake the reading position.
pub(super) fn repack<const FROM: usize, const TO: usize>(
    frame: &mut Frame,
    change: impl Fn([u8; FROM]) -> [u8; TO],
) {
    debug_assert_eq!(frame.shape().channels, FROM.max(TO));
    let bytes = frame.pixels_mut();
    let pixels = bytes.len() / FROM.max(TO);
    let first = bytes.len() - pixels * FROM;
    for start in (0..pixels).step_by(BLOCK_PIXELS) {
        let count = BLOCK_PIXELS.min(pixels - start);
        let (mut old, mut new) = ([[0; FROM]; BLOCK_PIXELS], [[0; TO]; BLOCK_PIXELS]);
        let source = &bytes[first + start * FROM..][..count * FROM];
        old.as_flattened_mut()[..count * FROM].copy_from_slice(source);
        for (new, old) in new.iter_mut().zip(old) {
            *new = change(old);
        }
        bytes[start * TO..][..count * TO].copy_from_slice(&new.as_flattened()[..count * TO]);
    }
    frame.narrow(TO);
}

/// Unpacks samples of `bits` (1, 2, 4) to bytes: `bytes` has room for rows of `width`, and ends with the
/// packed rows, each of which begins a new byte.
pub(super) fn unpack(bytes: &mut [u8], width: usize, bits: usize) {
    let per_byte = 8 / bits;
    let mask = 0xFF >> (8 - bits);
    let mut packed_at = bytes.len() - bytes.len() / width * width.div_ceil(per_byte);
    for row in 0..bytes.len() / width {
        for first in (0..width).step_by(per_byte) {
            let packed = bytes[packed_at];
            packed_at += 1;
            for place in 0..per_byte.min(width - first) {
                bytes[row * width + first + place] = packed >> (8 - bits * (place + 1)) & mask;
            }
        }
    }
}
