//! The kinds of samples, whatever their storage.

/// The kind of a leaf's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Rows of one shape.
    Rows,
    /// A varying number of rows of one shape.
    Ragged,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
    /// Arrays, each decoded by itself.
    Array,
    /// Images.
    Image,
    /// Lists of samples of another leaf, of varying length.
    Lists,
}

impl Kind {
    /// Returns true if samples are numbers.
    pub fn is_numbers(self) -> bool {
        !matches!(self, Kind::Text | Kind::Bytes)
    }
}
