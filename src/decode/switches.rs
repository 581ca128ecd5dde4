//! Pillow's process-wide switches, as they were when an iterator was made.

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
