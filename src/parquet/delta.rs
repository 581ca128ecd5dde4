//! Whole numbers and text as what they differ by from the one before.
//!
//! `DELTA_BINARY_PACKED`, `DELTA_LENGTH_BYTE_ARRAY` and `DELTA_BYTE_ARRAY` of the format's `Encodings.md`.
//! Tells whether all values are there. As other readers do, refuses a last miniblock without its padding.

use super::runs::varint;

/// The first number, and those that follow, as far as they are wanted.
#[derive(Debug, Default)]
struct Numbers {
    /// Only if they are kept.
    all: Vec<i32>,
    count: usize,
}

/// Whether bytes are at least `count` numbers of `bits`.
pub(super) fn has_numbers(bytes: &[u8], count: usize, bits: u32) -> bool {
    numbers(bytes, bits, false).is_some_and(|(found, _)| found.count >= count)
}

/// Whether bytes are at least `count` texts, each after its length; of `length` bytes, if that is given.
pub(super) fn has_texts(bytes: &[u8], count: usize, length: Option<usize>) -> bool {
    texts(bytes, count).is_some_and(|lengths| {
        length.is_none_or(|length| lengths.iter().all(|&each| each as usize == length))
    })
}

/// Whether bytes are at least `count` texts, each of a beginning of the one before and an end of its own.
pub(super) fn has_shared_texts(bytes: &[u8], count: usize, length: Option<usize>) -> bool {
    let Some((shared, rest)) = numbers(bytes, i32::BITS, true) else {
        return false;
    };
    let Some(own) = texts(rest, count) else {
        return false;
    };
    let mut before = 0;
    let fits = shared.all.iter().zip(&own).all(|(&shared, &own)| {
        let (had, len) = (before, i64::from(shared) + i64::from(own));
        before = len;
        (0..=had).contains(&i64::from(shared)) && length.is_none_or(|length| len == length as i64)
    });
    fits && shared.all.len() >= count && own.len() >= count
}

/// The lengths of texts.
fn texts(bytes: &[u8], count: usize) -> Option<Vec<i32>> {
    let (lengths, rest) = numbers(bytes, i32::BITS, true)?;
    let sum = lengths.all.iter().try_fold(0, |sum: usize, &length| {
        sum.checked_add(usize::try_from(length).ok()?)
    });
    (sum? <= rest.len() && lengths.count >= count).then_some(lengths.all)
}

/// Passes over numbers; returns what follows, too.
fn numbers(bytes: &[u8], bits: u32, keep: bool) -> Option<(Numbers, &[u8])> {
    let (block, rest) = varint(bytes, u32::BITS)?;
    let (parts, rest) = varint(rest, u32::BITS)?;
    let (count, rest) = varint(rest, u32::BITS)?;
    let (first, mut rest) = varint(rest, u64::BITS)?;
    let (block, parts) = (block as usize, parts as usize);
    let size = block.checked_div(parts)?;
    if size == 0 || size % 32 != 0 {
        return None;
    }
    let mut found = Numbers::default();
    let mut last = signed(first) as i32;
    let mut left = count as usize;
    if left > 0 {
        found.count = 1;
        found.all.extend(keep.then_some(last));
        left -= 1;
    }
    while left > 0 {
        let (least, behind) = varint(rest, u64::BITS)?;
        let (widths, behind) = behind.split_at_checked(parts)?;
        rest = behind;
        for &width in widths {
            if left == 0 {
                break; // the widths of what is not there say nothing
            }
            let width = usize::from(width);
            let (packed, behind) = rest.split_at_checked(size / 8 * width)?;
            if width > bits as usize {
                return None;
            }
            let taken = size.min(left);
            if keep {
                for place in 0..taken {
                    let delta = signed(least) as i32;
                    let more = unpacked(packed, width, place) as i32;
                    last = last.wrapping_add(delta).wrapping_add(more);
                    found.all.push(last);
                }
            }
            found.count += taken;
            left -= taken;
            rest = behind;
        }
    }
    Some((found, rest))
}

/// A number whose lowest bit is its sign.
fn signed(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

/// Reads a packed value of at most 32 bits.
fn unpacked(bytes: &[u8], width: usize, place: usize) -> u64 {
    let bit = place * width;
    let mut all = [0; 8];
    let from = bytes.get(bit / 8..).unwrap_or_default();
    let len = from.len().min(8);
    all[..len].copy_from_slice(&from[..len]);
    u64::from_le_bytes(all) >> (bit % 8) & ((1 << width) - 1)
}
