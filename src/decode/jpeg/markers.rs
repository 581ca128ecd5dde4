//! Walks the segments before the first scan as Pillow's `JpegImagePlugin` does.
//!
//! Decodes nothing. Pillow parses some segments that libjpeg skips, and raises if they are too short; bytes
//! between segments are skipped by one and an error to the other. Invariant: Pillow, too, gets to the pixels
//! of every file that is accepted here.

/// Begins Photoshop's resources; the first one follows.
const PHOTOSHOP: &[u8] = b"Photoshop 3.0\0";

/// The number of the resource that Pillow reads, and the bytes that it reads of it.
const RESOLUTION: &[u8] = &[0x03, 0xED];
const RESOLUTION_BYTES: usize = 14;

/// Returns true if Pillow opens a file with these segments.
pub(super) fn are_taken(encoded: &[u8]) -> bool {
    walk(encoded).is_some()
}

/// Walks to the first scan. None: Pillow raises before that.
fn walk(encoded: &[u8]) -> Option<()> {
    let mut rest = encoded.get(3..)?; // the second marker's first byte is part of the signature
    let (mut profiles, mut has_frame) = (Vec::new(), false);
    loop {
        let (&marker, after) = rest.split_first()?;
        rest = after;
        match marker {
            0xFF => continue,
            0x01..=0xBF => return None,
            0x00 | 0xC8 | 0xD0..=0xD9 | 0xF0..=0xFD => {}
            _ => {
                let segment = take(&mut rest)?;
                match marker {
                    0xDA => return has_frame.then_some(()),
                    0xC4 | 0xCC | 0xDC | 0xDD | 0xDF | 0xFE => {}
                    0xDB => tables(segment)?,
                    0xE0..=0xEF => application(marker, segment, &mut profiles)?,
                    _ => {
                        frame(segment, &mut profiles)?;
                        has_frame = true;
                    }
                }
            }
        }
        // All bytes up to the next marker are skipped.
        let next = memchr::memchr(0xFF, rest)?;
        rest = &rest[next + 1..];
    }
}

/// Takes the segment after its length, which may be less than its own two bytes.
fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk()?;
    let length = usize::from(u16::from_be_bytes(*length)).saturating_sub(2);
    let (segment, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(segment)
}

/// Parses quantisation tables of 8 or 16 bits.
fn tables(mut segment: &[u8]) -> Option<()> {
    while let Some((&kind, after)) = segment.split_first() {
        let bytes = if kind >> 4 == 0 { 64 } else { 128 };
        segment = after.get(bytes..)?;
    }
    Some(())
}

/// Parses application segments.
fn application<'a>(marker: u8, segment: &'a [u8], profiles: &mut Vec<&'a [u8]>) -> Option<()> {
    let has_number = segment.len() >= 7; // after the name and its terminator
    match marker {
        0xE0 if segment.starts_with(b"JFIF") => has_number.then_some(()),
        0xEE if segment.starts_with(b"Adobe") => has_number.then_some(()),
        0xE2 if segment.starts_with(b"ICC_PROFILE\0") => {
            profiles.push(segment);
            Some(())
        }
        0xED if segment.starts_with(PHOTOSHOP) => resources(segment),
        _ => Some(()),
    }
}

/// Parses Photoshop's resources. A truncated one ends them, unless it ends right after its number.
fn resources(segment: &[u8]) -> Option<()> {
    let mut at = PHOTOSHOP.len();
    while segment.get(at..at.saturating_add(4)) == Some(b"8BIM") {
        let Some(number) = segment.get(at + 4..at + 6) else {
            break;
        };
        at += 6;
        at += 1 + usize::from(*segment.get(at)?);
        at += at & 1;
        let size = segment.get(at..).and_then(<[u8]>::first_chunk);
        let Some(size) = size else {
            break;
        };
        at += 4;
        let size = u32::from_be_bytes(*size) as usize;
        let left = segment.len().saturating_sub(at);
        if number == RESOLUTION && size.min(left) < RESOLUTION_BYTES {
            break;
        }
        at = at.saturating_add(size);
        at = at.saturating_add(at & 1);
    }
    Some(())
}

/// Parses the header of a frame. The colour profile is joined before it.
fn frame(segment: &[u8], profiles: &mut Vec<&[u8]>) -> Option<()> {
    let &[bits, h0, h1, w0, w1, layers] = segment.first_chunk()?;
    if bits != 8 || !matches!(layers, 1 | 3 | 4) || [h0, h1] == [0; 2] || [w0, w1] == [0; 2] {
        return None;
    }
    if profiles.iter().min().is_some_and(|first| first.len() < 14) {
        return None;
    }
    profiles.clear();
    segment.len().is_multiple_of(3).then_some(())
}
