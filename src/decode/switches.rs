//! Pillow's process-wide settings at the time an iterator was made, and the size limits that follow.

use super::refuse;
use crate::Result;

/// Pixels that any file may claim: so few that their memory does not matter.
const CREDITED_PIXELS: u64 = 1 << 24;

/// Further pixels that each byte of a file may claim: more than any codec here achieves for photographs or
/// drawings, where a lying header claims thousands.
const PIXELS_PER_BYTE: u64 = 1024;

/// Pillow's settings for truncated files and for large images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// `ImageFile.LOAD_TRUNCATED_IMAGES`: the missing end of a file is left grey or black.
    pub truncated: bool,
    /// `Image.MAX_IMAGE_PIXELS`: Pillow warns of more pixels, and refuses more than twice as many.
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
    /// Refuses an image of (rows, columns) in a file of `bytes` bytes, before memory is allocated.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`](crate::Error::Decode), without a path: so large that Pillow would warn or raise, or
    /// that the file can hardly hold it.
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
                "its header claims {pixels} pixels, implausible for a file of {bytes} bytes"
            )));
        }
        Ok(())
    }
}
