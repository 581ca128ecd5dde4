//! Runs: levels, indices of dictionaries and booleans, each value repeated or all packed.
//!
//! "Run Length Encoding / Bit-Packing Hybrid" of the format's `Encodings.md`. Decodes nothing; tells
//! whether all values are there. As other readers do, refuses a run of no values, and one that goes on
//! behind the bytes that there are, though nobody wants its last values.

/// Values of a run.
pub(super) enum Run<'a> {
    /// One, so often.
    Repeated(u64, usize),
    /// As many of so few bits each, the first in the lowest bits.
    Packed(&'a [u8], usize),
}

/// Passes over runs with `count` values of `width` bits, at most 64; None: they are not all there.
pub(super) fn pass(
    mut bytes: &[u8],
    width: usize,
    count: usize,
    mut each: impl FnMut(Run<'_>) -> Option<()>,
) -> Option<()> {
    let mut left = count;
    while left > 0 {
        let (header, rest) = varint(bytes, u32::BITS)?;
        let (number, is_packed) = ((header >> 1) as usize, header & 1 == 1);
        let size = if is_packed {
            number.checked_mul(width)?
        } else {
            width.div_ceil(8)
        };
        let values = if is_packed {
            number.checked_mul(8)?
        } else {
            number
        };
        if values == 0 || values > i32::MAX as usize {
            return None;
        }
        let (run, behind) = rest.split_at_checked(size)?;
        let taken = values.min(left);
        each(if is_packed {
            Run::Packed(run, taken)
        } else {
            let value = run.iter().rev();
            Run::Repeated(
                value.fold(0, |all, &byte| all << 8 | u64::from(byte)),
                taken,
            )
        })?;
        left -= taken;
        bytes = behind;
    }
    Some(())
}

/// Counts those of `count` levels that are `most`; None: they are not all there, or one is more.
pub(super) fn levels(bytes: &[u8], width: usize, count: usize, most: u64) -> Option<usize> {
    let mut whole = 0;
    let mut add = |level: u64, times: usize| {
        whole += if level == most { times } else { 0 };
        (level <= most).then_some(())
    };
    pass(bytes, width, count, |run| match run {
        Run::Repeated(level, times) => add(level, times),
        Run::Packed(bytes, count) => {
            (0..count).try_for_each(|place| add(unpacked(bytes, width, place), 1))
        }
    })?;
    Some(whole)
}

/// As [`levels`], of levels packed without runs, the first in the highest bits, as writers did until 2013;
/// returns what follows, too.
pub(super) fn packed_levels(
    bytes: &[u8],
    width: usize,
    count: usize,
    most: u64,
) -> Option<(usize, &[u8])> {
    let size = count.checked_mul(width)?.div_ceil(8);
    let (own, rest) = bytes.split_at_checked(size)?;
    let bit = |at: usize| u64::from(own[at / 8] >> (7 - at % 8) & 1);
    let mut whole = 0;
    for place in 0..count {
        let level = (0..width).fold(0, |all, at| all << 1 | bit(place * width + at));
        if level > most {
            return None;
        }
        whole += usize::from(level == most);
    }
    Some((whole, rest))
}

/// Reads a packed value of at most 16 bits.
fn unpacked(bytes: &[u8], width: usize, place: usize) -> u64 {
    let bit = place * width;
    let byte = |at| bytes.get(at).copied().map_or(0, u64::from);
    let all = byte(bit / 8) | byte(bit / 8 + 1) << 8 | byte(bit / 8 + 2) << 16;
    all >> (bit % 8) & ((1 << width) - 1)
}

/// Reads a number of seven bits a byte, the lowest first, of at most `bits`; returns what follows, too.
pub(super) fn varint(bytes: &[u8], bits: u32) -> Option<(u64, &[u8])> {
    let (mut value, mut shift) = (0, 0);
    for (place, &byte) in bytes.iter().enumerate() {
        let part = u64::from(byte & 0x7f);
        if shift >= bits || part > (u64::MAX >> (u64::BITS - bits)) >> shift {
            return None;
        }
        value |= part << shift;
        shift += 7;
        if byte < 0x80 {
            return Some((value, &bytes[place + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_too_many_bits_are_none() {
        assert_eq!(varint(&[0x85, 0x01, 9], 32), Some((133, &[9][..])));
        assert_eq!(
            varint(&[0xff, 0xff, 0xff, 0xff, 0x0f], 32),
            Some((u64::from(u32::MAX), &[][..]))
        );
        assert_eq!(varint(&[0xff, 0xff, 0xff, 0xff, 0x1f], 32), None);
        assert_eq!(varint(&[0x80], 32), None);
    }

    #[test]
    fn levels_without_runs_are_counted() {
        let packed = packed_levels(&[0b1011_0000, 7], 1, 4, 1);
        assert_eq!(packed, Some((3, &[7][..])));
        assert_eq!(packed_levels(&[0b1000_1000], 2, 3, 2), Some((2, &[][..])));
        assert_eq!(packed_levels(&[0b1100_0000], 2, 3, 2), None);
        assert_eq!(packed_levels(&[0], 1, 9, 1), None);
    }

    #[test]
    fn levels_are_counted_in_both_kinds_of_runs() {
        assert_eq!(levels(&[0x08, 0x01], 1, 4, 1), Some(4));
        assert_eq!(levels(&[0x03, 0b1011], 1, 4, 1), Some(3));
        assert_eq!(levels(&[0x03, 0b0110_0001, 0], 2, 4, 2), Some(1));
        assert_eq!(levels(&[0x03, 0b0110_0011, 0], 2, 4, 2), None);
        for none in [
            &[0x08][..],
            &[0x06, 0x01],
            &[0x01],
            &[0x00, 0x01],
            &[0x05, 0xff],
        ] {
            assert_eq!(levels(none, 1, 4, 1), None);
        }
    }
}
