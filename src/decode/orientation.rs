//! Detects whether a file asks in EXIF or XMP for its image to be rotated.
//!
//! Owns the search in all places where Pillow's `getexif` looks. Refuses to rotate anything. Invariant:
//! Pillow's `exif_transpose` leaves every image unchanged that is upright here, without an error or a
//! warning. An unusual encoding does not count as upright.

use super::Format;

/// Begins the EXIF of a JPEG, and may begin that of other formats.
const EXIF: &[u8] = b"Exif\0\0";
/// Begins the XMP of a JPEG.
const XMP: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";
/// Keywords of PNG texts that hold EXIF or XMP; only the last one is still written today.
const TEXTS: [&[u8]; 4] = [b"exif", b"xmp", b"Raw profile type exif", PNG_XMP];
const PNG_XMP: &[u8] = b"XML:com.adobe.xmp";

/// The EXIF tag of the orientation.
const ORIENTATION: u16 = 0x0112;
/// Bytes of a value, by its TIFF type; 0 for types that do not exist.
const TYPE_BYTES: [usize; 17] = [0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8];

/// Returns true if a file says that its image is upright, or says nothing.
pub(super) fn is_upright(encoded: &[u8], format: Format) -> bool {
    match format {
        Format::Jpeg => jpeg(encoded),
        Format::Png => png(encoded),
        Format::WebP => webp(encoded),
        _ => None,
    }
    .is_some()
}

/// Searches the segments before the first scan.
fn jpeg(encoded: &[u8]) -> Option<()> {
    let mut rest = encoded.get(2..)?;
    let mut seen = false;
    loop {
        let (marker, after) = match rest {
            [0xFF, 0xFF, ..] => {
                rest = &rest[1..];
                continue;
            }
            [0xFF, 0xDA, ..] => return Some(()),
            [0xFF, 0x00..=0x01 | 0xD0..=0xD9, ..] => return None,
            [0xFF, marker, after @ ..] => (*marker, after),
            _ => return None,
        };
        let length = usize::from(u16::from_be_bytes(*after.first_chunk()?));
        let body = after.get(2..length)?;
        rest = &after[length..];
        if marker == 0xE1 && body.starts_with(EXIF) {
            // Pillow joins several.
            if std::mem::replace(&mut seen, true) {
                return None;
            }
            exif(body)?;
        } else if marker == 0xE1 && body.starts_with(XMP) {
            xmp(body)?;
        }
    }
}

/// Searches all chunks, whose structure was checked before.
fn png(encoded: &[u8]) -> Option<()> {
    let mut rest = encoded.get(8..)?;
    loop {
        let length = u32::from_be_bytes(*rest.first_chunk()?) as usize;
        let name = rest.get(4..8)?;
        let body = rest.get(8..8 + length)?;
        rest = rest.get(12 + length..)?;
        match name {
            b"eXIf" => exif(body)?,
            b"IEND" => return Some(()),
            b"tEXt" | b"zTXt" | b"iTXt" => {
                let key = body.split(|&byte| byte == 0).next()?;
                if name == b"iTXt" && key == PNG_XMP && body.get(key.len() + 1) == Some(&0) {
                    xmp(body)?;
                } else if TEXTS.contains(&key) {
                    return None;
                }
            }
            _ => {}
        }
    }
}

/// Searches all chunks of the file, or the only one.
fn webp(encoded: &[u8]) -> Option<()> {
    let mut rest = encoded.get(12..)?;
    while let Some((name, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*after.first_chunk()?) as usize;
        let body = after.get(4..)?.get(..length)?;
        rest = after
            .get(4 + length.next_multiple_of(2)..)
            .unwrap_or_default();
        match name {
            b"EXIF" => exif(body)?,
            b"XMP " => xmp(body)?,
            _ => {}
        }
    }
    Some(())
}

/// Searches the first directory of EXIF, which has the layout of a TIFF file (TIFF 6.0), for the tag.
fn exif(body: &[u8]) -> Option<()> {
    let tiff = body.strip_prefix(EXIF).unwrap_or(body);
    let is_little = match tiff.first_chunk()? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let short = |at: usize| {
        let bytes = *tiff.get(at..)?.first_chunk()?;
        Some(if is_little {
            u16::from_le_bytes(bytes)
        } else {
            u16::from_be_bytes(bytes)
        })
    };
    let long = |at: usize| {
        let bytes = *tiff.get(at..)?.first_chunk()?;
        Some(if is_little {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        } as usize)
    };
    let directory = long(4)?;
    let count = usize::from(short(directory)?);
    let mut total = 0;
    for entry in 0..count {
        let at = directory + 2 + entry * 12;
        let (tag, kind, values) = (short(at)?, short(at + 2)?, long(at + 4)?);
        if tag == ORIENTATION && (kind, values, short(at + 8)?) != (3, 1, 1) {
            return None;
        }
        let size = TYPE_BYTES.get(usize::from(kind)).unwrap_or(&0);
        let size = values.checked_mul(*size)?;
        if size > 4 {
            total += size;
            tiff.get(long(at + 8)?..)?.get(..size)?;
        }
        if total > tiff.len() {
            return None;
        }
    }
    long(directory + 2 + count * 12)?; // the offset of the next directory
    Some(())
}

/// Searches the text of XMP for a number after the keyword.
fn xmp(body: &[u8]) -> Option<()> {
    const WORD: &[u8] = b"tiff:Orientation";
    let mut windows = body.windows(WORD.len()).enumerate();
    let turns = windows.any(|(at, window)| {
        let is_other = |digit: &u8| digit.is_ascii_digit() && *digit != b'1';
        window == WORD
            && match &body[at + WORD.len()..] {
                [b'=', b'"', digit, ..] | [b'>', digit, ..] => is_other(digit),
                _ => false,
            }
    });
    (!turns).then_some(())
}
