//! The parameters of decoding: the library, the mode, whether files must be upright; Pillow's process-wide settings at
//! the time an iterator was made, and the size limits that follow.

use super::Mode;
use crate::{Error, Result};

/// The library whose pixels and refusals are reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Library {
    /// Pillow, which tolerates a missing end of image.
    Pillow,
    /// torchvision's `decode_image`, which does not, and raises read errors itself.
    Torchvision,
}

impl Library {
    /// Returns its name in lower case, for counters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pillow => "pillow",
            Self::Torchvision => "torchvision",
        }
    }
}

/// The parameters with which files are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The library that is reproduced.
    pub library: Library,
    /// The mode that they are decoded to.
    pub mode: Mode,
    /// True to refuse files that ask for their image to be rotated.
    pub upright: bool,
}

impl Reading {
    /// Decodes as Pillow's `convert`, or for `Unchanged` as Pillow opens a file.
    pub const fn pillow(mode: Mode) -> Self {
        Self {
            library: Library::Pillow,
            mode,
            upright: false,
        }
    }

    /// Decodes as torchvision's `decode_image`.
    pub const fn torchvision(mode: Mode) -> Self {
        Self {
            library: Library::Torchvision,
            mode,
            upright: false,
        }
    }

    /// Finds the one that Python calls `name`: the mode, after the library unless it is Pillow, and `upright`.
    pub fn from_name(name: &str) -> Option<Self> {
        let (library, rest) = match name.strip_prefix("torchvision ") {
            Some(rest) => (Library::Torchvision, rest),
            None => (Library::Pillow, name),
        };
        let upright = rest.strip_prefix("upright");
        let mode = match (library, upright.unwrap_or(rest).trim_start()) {
            (_, "RGB") => Mode::Rgb,
            (Library::Pillow, "L") | (Library::Torchvision, "GRAY") => Mode::Grey,
            (Library::Pillow, "") if upright.is_some() => Mode::Unchanged,
            (Library::Torchvision, "UNCHANGED") => Mode::Unchanged,
            (Library::Torchvision, "SPREAD") => Mode::Spread,
            _ => return None,
        };
        Some(Self {
            library,
            mode,
            upright: upright.is_some(),
        })
    }

    /// Returns its name in Python.
    pub fn name(self) -> String {
        let (library, mode) = match (self.library, self.mode) {
            (Library::Pillow, Mode::Rgb) => ("", "RGB"),
            (Library::Pillow, Mode::Grey) => ("", "L"),
            (Library::Pillow, Mode::Unchanged | Mode::Spread) => ("", ""),
            (Library::Torchvision, Mode::Rgb) => ("torchvision", "RGB"),
            (Library::Torchvision, Mode::Grey) => ("torchvision", "GRAY"),
            (Library::Torchvision, Mode::Unchanged) => ("torchvision", "UNCHANGED"),
            (Library::Torchvision, Mode::Spread) => ("torchvision", "SPREAD"),
        };
        let upright = if self.upright { "upright" } else { "" };
        let words = [library, upright, mode].into_iter();
        words
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Pixels that any file may claim: so few that their memory does not matter.
const CREDITED_PIXELS: u64 = 1 << 24;

/// Further pixels that each byte of a file may claim: more than any codec here achieves for photographs or
/// drawings, where a lying header claims thousands.
const PIXELS_PER_BYTE: u64 = 1024;

/// Pillow's setting for large images. A truncated file is refused, and Pillow, which reads it, has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switches {
    /// `Image.MAX_IMAGE_PIXELS`: Pillow warns of more pixels, and refuses more than twice as many.
    pub max_pixels: Option<u64>,
}

impl Default for Switches {
    /// Pillow's own defaults.
    fn default() -> Self {
        Self {
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
            return Err(Error::decode(format!(
                "image size ({pixels} pixels) exceeds the limit of {limit} pixels, could be a \
                 decompression bomb"
            )));
        }
        let plausible = (bytes as u64)
            .saturating_mul(PIXELS_PER_BYTE)
            .max(CREDITED_PIXELS);
        if pixels > plausible {
            return Err(Error::decode(format!(
                "its header claims {pixels} pixels, implausible for a file of {bytes} bytes"
            )));
        }
        Ok(())
    }
}
