//! The dimension that is scaled first.

/// The order of the two passes, as different versions of Pillow choose it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassOrder {
    /// Always across rows first: before Pillow 12.2.
    AcrossFirst,
    /// Down columns first when the image becomes lower and is over 100 times as high as wide
    /// (<https://github.com/python-pillow/Pillow/blob/12.2.0/src/PIL/Image.py>).
    Pillow12,
    /// Down columns first when the height loses more than twice the pixels that the width does
    /// (<https://github.com/python-pillow/Pillow/pull/9549>).
    Pillow13,
}

impl PassOrder {
    /// Returns the name of Pillow's versions that have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::AcrossFirst => "pillow",
            Self::Pillow12 => "pillow12.2",
            Self::Pillow13 => "pillow13",
        }
    }

    /// Returns the order of a name.
    pub fn from_name(name: &str) -> Option<PassOrder> {
        let orders = [Self::AcrossFirst, Self::Pillow12, Self::Pillow13];
        orders.into_iter().find(|order| order.name() == name)
    }

    /// Returns true if columns are scaled before rows; `height` and `width` are each (from, to).
    pub(in crate::image) fn down_first(
        self,
        height: (usize, usize),
        width: (usize, usize),
    ) -> bool {
        if height.1 >= height.0 {
            return false;
        }
        match self {
            Self::AcrossFirst => false,
            Self::Pillow12 => height.0 > 100 * width.0,
            // height.0 - height.1 > 2 * (width.0 - width.1), without negative numbers
            Self::Pillow13 => height.0 + 2 * width.1 > height.1 + 2 * width.0,
        }
    }
}
