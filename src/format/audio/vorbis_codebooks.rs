//! Computes the memory of the codebooks of a Vorbis stream (Vorbis I, 3.2.1), without decoding them.
//!
//! A codebook of a few bytes may announce tables of sixteen megabytes, a stream has up to 256 of them, and the
//! decoder allocates them before it validates the rest.

/// The sync pattern of a codebook.
const SYNC: u64 = 0x56_4342;
/// Bytes of an entry besides its vector: its length, its code, its node in a tree.
const ENTRY_BYTES: u64 = 32;

/// Returns the bytes of the decoded codebooks of a setup header, up to the first damaged one.
pub(super) fn bytes(packet: &[u8]) -> u64 {
    let mut bits = Bits {
        bytes: packet.get(7..).unwrap_or_default(), // after the packet type and "vorbis"
        at: 0,
    };
    let mut all = 0_u64;
    for _ in 0..=bits.take(8).unwrap_or(0) {
        let Some(more) = codebook(&mut bits) else {
            break;
        };
        all = all.saturating_add(more);
    }
    all
}

/// Skips a codebook and returns its decoded size; None if it is incomplete.
fn codebook(bits: &mut Bits<'_>) -> Option<u64> {
    if bits.take(24)? != SYNC {
        return None;
    }
    let (dimensions, entries) = (bits.take(16)?, bits.take(24)?);
    let is_ordered = bits.take(1)? == 1;
    let is_sparse = !is_ordered && bits.take(1)? == 1;
    if is_ordered {
        bits.take(5)?;
        let mut seen = 0;
        while seen < entries {
            seen += bits.take(u64::BITS - (entries - seen).leading_zeros())?;
        }
    } else if is_sparse {
        for _ in 0..entries {
            if bits.take(1)? == 1 {
                bits.take(5)?;
            }
        }
    } else {
        bits.skip(entries * 5)?;
    }
    let values = match bits.take(4)? {
        0 => return Some(entries * ENTRY_BYTES),
        1 => lookups(entries, dimensions),
        2 => entries * dimensions,
        _ => return None,
    };
    bits.skip(64)?;
    let width = bits.take(4)? + 1;
    bits.skip(1 + values * width)?;
    Some(entries * (ENTRY_BYTES + 4 * dimensions))
}

/// Returns the greatest number whose power of `dimensions` is at most `entries` (9.2.3).
fn lookups(entries: u64, dimensions: u64) -> u64 {
    let fits = |number: u64| {
        let power = number.checked_pow(dimensions as u32);
        power.is_some_and(|power| power <= entries)
    };
    (1..=entries).take_while(|&number| fits(number)).count() as u64
}

/// Reads bits, least significant first.
struct Bits<'a> {
    bytes: &'a [u8],
    at: u64,
}

impl Bits<'_> {
    fn take(&mut self, count: u32) -> Option<u64> {
        let mut number = 0;
        for place in 0..count {
            let byte = *self.bytes.get((self.at / 8) as usize)?;
            number |= u64::from(byte >> (self.at % 8) & 1) << place;
            self.at += 1;
        }
        Some(number)
    }

    fn skip(&mut self, count: u64) -> Option<()> {
        self.at += count;
        (self.at <= self.bytes.len() as u64 * 8).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packs numbers of so many bits.
    fn packed(fields: &[(u64, u32)]) -> Vec<u8> {
        let mut bits: Vec<u8> = Vec::new();
        for &(number, count) in fields {
            bits.extend((0..count).map(|place| (number >> place & 1) as u8));
        }
        let bytes = bits.chunks(8);
        let bytes = bytes.map(|byte| byte.iter().rev().fold(0, |all, bit| all << 1 | bit));
        b"\x05vorbis".iter().copied().chain(bytes).collect()
    }

    #[test]
    fn tables_are_counted_whatever_way_lengths_are_written() {
        let large = 1 << 17;
        let ordered = [
            (SYNC, 24),
            (32, 16),
            (large, 24),
            (1, 1),
            (16, 5),
            (large, 18),
        ];
        let plain = [(SYNC, 24), (2, 16), (3, 24), (0, 2), (0, 15), (0, 4)];
        let sparse = [(SYNC, 24), (2, 16), (3, 24), (2, 2), (0, 3), (1, 4)];
        let vectors = [(0, 64), (3, 4), (0, 1), (0, 4)]; // one value: 1 * 1 <= 3, and 2 * 2 is more
        let mut fields = vec![(3, 8)];
        fields.extend(ordered);
        fields.extend([(1, 4), (0, 64), (0, 4), (0, 1), (0, 1)]); // 1 value of a bit
        fields.extend(plain);
        fields.extend(sparse);
        fields.extend(vectors);
        fields.extend(plain);
        let expected = large * (32 + 128) + 3 * 32 + 3 * (32 + 8) + 3 * 32;
        assert_eq!(bytes(&packed(&fields)), expected);
        let damaged = [
            (255, 8),
            (SYNC, 24),
            (2, 16),
            (3, 24),
            (0, 2),
            (0, 15),
            (0, 4),
        ];
        assert_eq!(
            bytes(&packed(&damaged)),
            3 * 32,
            "nothing follows the first"
        );
        assert_eq!(bytes(b""), 0);
    }
}
