//! The parameters of decoding: the mode, the library, and whether files must be upright.

use super::Mode;

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

/// All of them, by name.
const NAMES: [(&str, Reading); 13] = {
    use Library::{Pillow, Torchvision};
    use Mode::{Grey, Rgb, Spread, Unchanged};
    const fn reading(library: Library, mode: Mode, upright: bool) -> Reading {
        Reading {
            library,
            mode,
            upright,
        }
    }
    [
        ("RGB", reading(Pillow, Rgb, false)),
        ("L", reading(Pillow, Grey, false)),
        ("upright RGB", reading(Pillow, Rgb, true)),
        ("upright L", reading(Pillow, Grey, true)),
        ("upright", reading(Pillow, Unchanged, true)),
        ("torchvision RGB", reading(Torchvision, Rgb, false)),
        ("torchvision GRAY", reading(Torchvision, Grey, false)),
        (
            "torchvision UNCHANGED",
            reading(Torchvision, Unchanged, false),
        ),
        ("torchvision SPREAD", reading(Torchvision, Spread, false)),
        ("torchvision upright RGB", reading(Torchvision, Rgb, true)),
        ("torchvision upright GRAY", reading(Torchvision, Grey, true)),
        (
            "torchvision upright UNCHANGED",
            reading(Torchvision, Unchanged, true),
        ),
        (
            "torchvision upright SPREAD",
            reading(Torchvision, Spread, true),
        ),
    ]
};

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

    /// Returns the reading with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|&(_, reading)| reading)
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        let found = NAMES.iter().find(|&&(_, reading)| reading == self);
        found.map_or("", |(name, _)| name)
    }
}
