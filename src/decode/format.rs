//! The format of an encoded image, detected from its first bytes.

use std::fmt;

/// An image file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum Format {
    Jpeg,
    Png,
    Gif,
    WebP,
    Bmp,
    Tiff,
    Avif,
    Heic,
    Jpeg2000,
    JpegXl,
}

/// Format, offset of its signature, and the signature.
const SIGNATURES: [(Format, usize, &[u8]); 15] = [
    (Format::Jpeg, 0, b"\xff\xd8\xff"), // as in Pillow: two bytes alone are not a JPEG
    (Format::Png, 0, b"\x89PNG\r\n\x1a\n"),
    (Format::Gif, 0, b"GIF8"),
    (Format::WebP, 8, b"WEBP"),
    (Format::Bmp, 0, b"BM"),
    (Format::Tiff, 0, b"II*\0"),
    (Format::Tiff, 0, b"MM\0*"),
    (Format::Avif, 4, b"ftypavif"),
    (Format::Avif, 4, b"ftypavis"),
    (Format::Heic, 4, b"ftypheic"),
    (Format::Heic, 4, b"ftypmif1"),
    (Format::Jpeg2000, 0, b"\0\0\0\x0cjP  "),
    (Format::Jpeg2000, 0, b"\xff\x4f\xff\x51"),
    (Format::JpegXl, 0, b"\0\0\0\x0cJXL "),
    (Format::JpegXl, 0, b"\xff\x0a"),
];

impl Format {
    /// Returns the format of `encoded`; None if it is unknown.
    pub fn of(encoded: &[u8]) -> Option<Self> {
        let found = |&(_, at, signature): &(Self, usize, &[u8])| {
            encoded
                .get(at..)
                .is_some_and(|rest| rest.starts_with(signature))
        };
        SIGNATURES
            .into_iter()
            .find(found)
            .map(|(format, _, _)| format)
    }

    /// Returns its name in lower case, for counters.
    pub fn name(self) -> &'static str {
        self.names().0
    }

    /// Returns its name, and the one with an article that errors have.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Jpeg => ("jpeg", "a JPEG"),
            Self::Png => ("png", "a PNG"),
            Self::Gif => ("gif", "a GIF"),
            Self::WebP => ("webp", "a WebP"),
            Self::Bmp => ("bmp", "a BMP"),
            Self::Tiff => ("tiff", "a TIFF"),
            Self::Avif => ("avif", "an AVIF"),
            Self::Heic => ("heic", "an HEIC"),
            Self::Jpeg2000 => ("jpeg2000", "a JPEG 2000"),
            Self::JpegXl => ("jpegxl", "a JPEG XL"),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.names().1)
    }
}
