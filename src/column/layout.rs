//! The properties that all samples of a column share.

use crate::collate::Shape;
use crate::memory::Dtype;

/// The kind of a column's samples, whatever their storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Rows of one shape; a sample is one row.
    Rows,
    /// Rows of one shape; a sample is several of them.
    Ragged,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
    /// Arrays, each decoded by itself.
    Array,
    /// Images.
    Image,
    /// Lists of samples of another column, of varying length.
    Lists,
}

impl Kind {
    /// Returns true if samples are numbers.
    pub fn is_numbers(self) -> bool {
        !matches!(self, Kind::Text | Kind::Bytes)
    }
}

/// The properties of every sample that are known before one is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The kind of samples.
    pub kind: Kind,
    /// The depth of nested lists, and the kind of the innermost items.
    pub nesting: (usize, Kind),
    /// The element type of a sample; uint8 for text and bytes.
    pub dtype: Dtype,
    /// The shape of every sample, if all have one.
    pub shape: Option<Shape>,
    /// The shape of the rows that samples, or the innermost items, consist of; empty for what is decoded.
    pub row_shape: Shape,
    /// True if encoded bytes are read before samples are made.
    pub fetches: bool,
    /// True if samples depend on the key of their draws.
    pub is_random: bool,
    /// True if samples are the unconverted pixels of images.
    pub is_pixels: bool,
}

impl Layout {
    fn new(kind: Kind, dtype: Dtype) -> Layout {
        Layout {
            kind,
            nesting: (0, kind),
            dtype,
            shape: None,
            row_shape: Shape::new(),
            fetches: false,
            is_random: false,
            is_pixels: false,
        }
    }

    /// The layout of samples that are one row each.
    pub fn rows(dtype: Dtype, row_shape: &[usize]) -> Layout {
        Layout {
            shape: Some(Shape::from_slice(row_shape)),
            row_shape: Shape::from_slice(row_shape),
            ..Layout::new(Kind::Rows, dtype)
        }
    }

    /// The layout of samples that are several rows each.
    pub fn ragged(dtype: Dtype, row_shape: &[usize]) -> Layout {
        Layout {
            row_shape: Shape::from_slice(row_shape),
            ..Layout::new(Kind::Ragged, dtype)
        }
    }

    /// The layout of text.
    pub fn text() -> Layout {
        Layout::new(Kind::Text, Dtype::UInt8)
    }

    /// The layout of bytes.
    pub fn bytes() -> Layout {
        Layout::new(Kind::Bytes, Dtype::UInt8)
    }

    /// The layout of arrays that are decoded, of `shape` if all have one.
    pub fn arrays(dtype: Dtype, shape: Option<&[usize]>) -> Layout {
        Layout {
            shape: shape.map(Shape::from_slice),
            ..Layout::new(Kind::Array, dtype)
        }
    }

    /// The layout of images, of `shape` if all have one.
    pub fn images(dtype: Dtype, shape: Option<Vec<usize>>) -> Layout {
        Layout {
            shape: shape.map(Shape::from_vec),
            ..Layout::new(Kind::Image, dtype)
        }
    }

    /// The layout of lists of samples.
    pub fn lists(items: &Layout) -> Layout {
        Layout {
            kind: Kind::Lists,
            nesting: (items.nesting.0 + 1, items.nesting.1),
            shape: None,
            ..items.clone()
        }
    }

    /// Returns the bytes of a sample, if all have as many; 0 for others.
    pub fn sample_bytes(&self) -> usize {
        let elements = self
            .shape
            .as_ref()
            .map_or(0, |shape| shape.iter().product());
        elements * self.dtype.itemsize()
    }

    /// Describes samples in words.
    pub fn describe(&self) -> String {
        let dtype = self.dtype.name();
        let shape = match &self.shape {
            Some(shape) => format!("shape {shape:?}"),
            None => "varying shape".into(),
        };
        match self.kind {
            Kind::Rows => format!("rows of {dtype}, {shape}"),
            Kind::Ragged => format!("ragged rows of {dtype}, shape {:?}", self.row_shape),
            Kind::Text => "text".into(),
            Kind::Bytes => "bytes".into(),
            Kind::Array => format!("arrays of {dtype}, {shape}"),
            Kind::Image => format!("images of {dtype}, {shape}"),
            Kind::Lists => match self.nesting.1 {
                Kind::Text => "lists of text".into(),
                Kind::Bytes => "lists of bytes".into(),
                _ => format!("lists of {dtype}"),
            },
        }
    }
}
