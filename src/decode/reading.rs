//! How files are read: what their pixels become, and whether they must be upright.

use super::Mode;

/// How files are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What they are decoded to.
    pub mode: Mode,
    /// Whether files are refused that say of their image that it is to be turned.
    pub upright: bool,
}

/// All there are, by name.
const NAMES: [(&str, Mode, bool); 6] = [
    ("RGB", Mode::Rgb, false),
    ("L", Mode::Grey, false),
    ("unchanged", Mode::Unchanged, false),
    ("upright RGB", Mode::Rgb, true),
    ("upright L", Mode::Grey, true),
    ("upright", Mode::Unchanged, true),
];

impl Reading {
    /// Finds the reading by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = NAMES.iter().find(|(known, ..)| *known == name);
        found.map(|&(_, mode, upright)| Self { mode, upright })
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        let found = NAMES
            .iter()
            .find(|&&(_, mode, upright)| (mode, upright) == (self.mode, self.upright));
        found.map_or("", |(name, ..)| name)
    }
}
