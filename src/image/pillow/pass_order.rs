//! The dimension that is scaled first.

/// The order of the two passes, as different versions of Pillow choose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassOrder {
    /// Always across rows first: before Pillow 13.
    AcrossFirst,
    /// Down columns first when the height loses more than twice the pixels that the width does
    /// (<https://github.com/python-pillow/Pillow/pull/9549>).
    Pillow13,
}

impl PassOrder {
    /// Returns true if columns are scaled before rows; `height` and `width` are each (from, to).
    pub(in crate::image) fn down_first(
        self,
        height: (usize, usize),
        width: (usize, usize),
    ) -> bool {
        let shrinks = height.1 < height.0;
        // height.0 - height.1 > 2 * (width.0 - width.1), without negative numbers
        let more = height.0 + 2 * width.1 > height.1 + 2 * width.0;
        self == Self::Pillow13 && shrinks && more
    }
}
