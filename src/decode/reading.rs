//! How files are read: what their pixels become, after whose model, and whether they must be upright.

use super::Mode;

/// Whose pixels and refusals are the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Library {
    /// Pillow, which tolerates a missing end of image.
    Pillow,
    /// torchvision's `decode_image`, which does not, and names errors of reading itself.
    Torchvision,
}

impl Library {
    /// Returns its name in small letters, for counters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pillow => "pillow",
            Self::Torchvision => "torchvision",
        }
    }
}

/// How files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// After whose model.
    pub library: Library,
    /// What they are decoded to.
    pub mode: Mode,
    /// True if files are refused that say of their image that it is to be turned.
    pub upright: bool,
}

/// All there are, by name.
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
    /// Reads as Pillow's `convert` does, or, `Unchanged`, as Pillow opens a file.
    pub const fn pillow(mode: Mode) -> Self {
        Self {
            library: Library::Pillow,
            mode,
            upright: false,
        }
    }

    /// Reads as torchvision's `decode_image` does.
    pub const fn torchvision(mode: Mode) -> Self {
        Self {
            library: Library::Torchvision,
            mode,
            upright: false,
        }
    }

    /// Finds the reading by its name.
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
