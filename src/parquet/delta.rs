//! Whole numbers and text as what they differ by from the one before.
//!
//! `DELTA_BINARY_PACKED`, `DELTA_LENGTH_BYTE_ARRAY` and `DELTA_BYTE_ARRAY` of the format's `Encodings.md`.
//! Tells whether all values are there, and allocates nothing for them. As other readers do, refuses a last
//! miniblock without its padding.

use super::runs::varint;

/// The largest block; writers make them of 128 to 4096 numbers.
const MOST_IN_BLOCK: usize = 1 << 16;

/// Whether bytes are at least `count` numbers of `bits`.
pub(super) fn has_numbers(bytes: &[u8], count: usize, bits: u32) -> bool {
    Numbers::read(bytes, bits).is_some_and(|(numbers, _)| numbers.count >= count)
}

/// Whether bytes are `count` texts behind their lengths, each of `length` bytes, if that is given.
pub(super) fn has_texts(bytes: &[u8], count: usize, length: Option<usize>) -> bool {
    lengths(bytes, count).is_some_and(|lengths| {
        let mut each = lengths.each();
        length.is_none_or(|length| each.all(|each| usize::try_from(each) == Ok(length)))
    })
}

/// Counts the bytes of `count` texts, each a beginning of the one before and an end of its own, and of
/// `length` bytes, if that is given; None: they are not all there.
pub(super) fn bytes_of_shared_texts(
    bytes: &[u8],
    count: usize,
    length: Option<usize>,
) -> Option<usize> {
    let (shared, rest) = Numbers::read(bytes, i32::BITS)?;
    let own = lengths(rest, count)?;
    let (mut before, mut all) = (0, 0_usize);
    for (shared, own) in shared.each().zip(own.each()) {
        let (shared, had) = (i64::from(shared), before);
        before = shared + i64::from(own);
        let bytes = usize::try_from(before).ok()?;
        all = all.saturating_add(bytes);
        if !(0..=had).contains(&shared) || length.is_some_and(|length| bytes != length) {
            return None;
        }
    }
    (shared.count == count).then_some(all)
}

/// The lengths of `count` texts that follow them.
fn lengths(bytes: &[u8], count: usize) -> Option<Numbers<'_>> {
    let (lengths, rest) = Numbers::read(bytes, i32::BITS)?;
    let sum = lengths.each().try_fold(0, |sum: usize, length| {
        sum.checked_add(usize::try_from(length).ok()?)
    });
    (sum? <= rest.len() && lengths.count == count).then_some(lengths)
}

/// Numbers that are all there.
#[derive(Clone, Copy)]
struct Numbers<'a> {
    /// How many.
    count: usize,
    first: i32,
    /// Numbers of a miniblock, and miniblocks of a block.
    size: usize,
    parts: usize,
    blocks: &'a [u8],
}

impl<'a> Numbers<'a> {
    /// Passes over numbers of `bits`; returns what follows, too.
    fn read(bytes: &'a [u8], bits: u32) -> Option<(Numbers<'a>, &'a [u8])> {
        let (block, rest) = varint(bytes, u32::BITS)?;
        let (parts, rest) = varint(rest, u32::BITS)?;
        let (count, rest) = varint(rest, u32::BITS)?;
        let (first, blocks) = varint(rest, u64::BITS)?;
        let (block, parts, count) = (block as usize, parts as usize, count as usize);
        let size = block.checked_div(parts)?;
        if size == 0 || !size.is_multiple_of(32) || block > MOST_IN_BLOCK {
            return None;
        }
        let numbers = Numbers {
            count,
            first: signed(first) as i32,
            size,
            parts,
            blocks,
        };
        let (mut left, mut rest) = (count.saturating_sub(1), blocks);
        while left > 0 {
            let (_, widths, packed) = numbers.block(rest)?;
            rest = packed;
            for &width in widths {
                if left == 0 {
                    break; // the widths of what is not there say nothing
                }
                rest = rest.get(size / 8 * usize::from(width)..)?;
                if u32::from(width) > bits {
                    return None;
                }
                left -= size.min(left);
            }
        }
        Some((numbers, rest))
    }

    /// Splits a block into its least difference, the widths of its miniblocks, and what follows those.
    fn block(&self, bytes: &'a [u8]) -> Option<(i32, &'a [u8], &'a [u8])> {
        let (least, rest) = varint(bytes, u64::BITS)?;
        let (widths, packed) = rest.split_at_checked(self.parts)?;
        Some((signed(least) as i32, widths, packed))
    }

    /// The numbers, of 32 bits.
    fn each(self) -> impl Iterator<Item = i32> {
        let (mut last, mut rest) = (self.first, self.blocks);
        let (mut least, mut widths, mut packed): (i32, &[u8], &[u8]) = (0, &[], &[]);
        let (mut width, mut place) = (0, self.size);
        (0..self.count).map(move |number| {
            if number == 0 {
                return last;
            }
            if place == self.size {
                if widths.is_empty()
                    && let Some((first, all, behind)) = self.block(rest)
                {
                    (least, widths, rest) = (first, all, behind);
                }
                if let Some((&next, others)) = widths.split_first() {
                    (width, widths, place) = (usize::from(next), others, 0);
                    let end = rest.len().min(self.size / 8 * width);
                    (packed, rest) = rest.split_at(end);
                }
            }
            let more = unpacked(packed, width, place) as i32;
            place += 1;
            last = last.wrapping_add(least).wrapping_add(more);
            last
        })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Five numbers, 7 5 3 1 2 (of `Encodings.md`), in one block of one miniblock.
    const FIVE: [u8; 14] = [32, 1, 5, 14, 3, 2, 0b1100_0000, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn numbers_are_those_of_the_format() {
        let (numbers, rest) = Numbers::read(&FIVE, 32).unwrap();
        assert_eq!(numbers.each().collect::<Vec<_>>(), [7, 5, 3, 1, 2]);
        assert_eq!(rest, &[] as &[u8]);
    }

    #[test]
    fn a_last_miniblock_without_its_padding_is_refused() {
        for end in 0..FIVE.len() {
            assert!(!has_numbers(&FIVE[..end], 5, 32), "{end}");
        }
        assert!(has_numbers(&FIVE, 5, 32) && !has_numbers(&FIVE, 6, 32));
    }
}
