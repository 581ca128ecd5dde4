//! What the samples of a leaf are, whatever their storage.

/// What the samples of a leaf are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Rows of one shape.
    Rows,
    /// Rows of one shape, more or fewer for each sample.
    Ragged,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
    /// Arrays, each decoded by itself.
    Array,
    /// Images.
    Image,
    /// Lists of samples of another leaf, more or fewer for each sample.
    Lists,
}

impl Kind {
    /// Whether samples are numbers.
    pub fn is_numbers(self) -> bool {
        !matches!(self, Kind::Text | Kind::Bytes)
    }
}
