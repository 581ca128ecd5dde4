//! Pillow's process-wide switches, as they were when an iterator was made, and what they allow.

use super::refuse;
use crate::Result;

/// Pixels that any file may claim to hold: so many fit into memory that nobody misses.
const CREDITED_PIXELS: u64 = 1 << 24;

/// Pixels that a byte of a file may claim beyond that: more than any coder here makes of photographs
/// or drawings, where a lying header claims thousands.
const PIXELS_PER_BYTE: u64 = 1024;

/// What Pillow would tolerate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// `ImageFile.LOAD_TRUNCATED_IMAGES`: what is missing at the end of a file is left grey or black.
    pub truncated: bool,
    /// `Image.MAX_IMAGE_PIXELS`: more pixels are warned of, more than twice as many refused.
    pub max_pixels: Option<u64>,
}

impl Default for Switches {
    /// Pillow's own defaults.
    fn default() -> Self {
        Self {
            truncated: false,
            max_pixels: Some(89_478_485),
        }
    }
}

impl Switches {
    /// Refuses an image of (rows, columns) whose file has `bytes`, before memory is asked for.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`](crate::Error::Decode), without a path: so large that Pillow would warn or
    /// raise, or so large that the file cannot well hold it.
    pub(super) fn admit(&self, (height, width): (u64, u64), bytes: usize) -> Result<()> {
        let pixels = height.saturating_mul(width);
        if let Some(limit) = self.max_pixels
            && pixels > limit
        {
            return Err(refuse(format!(
                "image size ({pixels} pixels) exceeds the limit of {limit} pixels, could be a \
                 decompression bomb"
            )));
        }
        let plausible = (bytes as u64)
            .saturating_mul(PIXELS_PER_BYTE)
            .max(CREDITED_PIXELS);
        if pixels > plausible {
            return Err(refuse(format!(
                "its header claims {pixels} pixels, which a file of {bytes} bytes hardly holds"
            )));
        }
        Ok(())
    }
}
