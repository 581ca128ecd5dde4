//! Footers and headers of pages, walked over before the `parquet` crate reads them.
//!
//! Thrift's compact protocol (`thrift-compact-protocol.md` of Apache Thrift) with the types of the format's
//! `parquet.thrift`. The crate takes time, or memory, for what a list claims to have, and reads a field as its own type
//! whatever type it is announced as. Refuses both: a string, list, set or map that claims more entries than bytes
//! follow, and a field of another type. What must be there, and what it means, is the crate's to say.

/// Maximum depth of nested structs and lists.
const DEPTH: usize = 12;
/// Types of values.
const BYTE: u8 = 3;
const SHORT: u8 = 4;
const INT: u8 = 5;
const LONG: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// The type of a field of `FileMetaData`, by its number after those of the fields that it is in; None: the crate passes over
/// it, or reads no bytes.
pub(super) fn footer(field: &[i64]) -> Option<u8> {
    Some(match field {
        [2, inner @ ..] => match inner {
            [] => LIST,
            [4] | [10, 17 | 18, 1] => BINARY,
            [10] | [10, 1..=18] | [10, 7 | 8, 2] | [10, 7 | 8, 2, _] => STRUCT,
            [10, 10 | 16, 1] => BYTE,
            [1..=9] | [10, 5, 1 | 2] | [10, 18, 2] => INT,
            _ => return None,
        },
        [4, 1, 3, inner @ ..] => match inner {
            [] | [12 | 16 | 17] | [17, 1] => STRUCT,
            [1 | 4 | 15] | [13, 1..=3] => INT,
            [5..=7 | 9..=11 | 14] | [12, 3 | 4] | [16, 1] => LONG,
            [2 | 3 | 8 | 13] | [16, 2 | 3] | [17, 2] => LIST,
            [8, 1 | 2] | [12, 1 | 2 | 5 | 6] => BINARY,
            [17, 1, 1..=8] => DOUBLE,
            _ => return None,
        },
        [4 | 5 | 7] | [4, 1 | 4] => LIST,
        [1] | [4, 4, 1] | [4, 1, 5 | 7] => INT,
        [3] | [4, 2 | 3 | 5 | 6] | [4, 1, 2 | 4 | 6] => LONG,
        [6] | [5, 1 | 2] | [4, 1, 1 | 9] => BINARY,
        [4, 1, 8] | [7, _] | [7, _, _] => STRUCT,
        [4, 7] => SHORT,
        _ => return None,
    })
}

/// As [`footer`], of `PageHeader`.
pub(super) fn page(field: &[i64]) -> Option<u8> {
    match field {
        [1..=4] | [5, 1..=4] | [7, 1 | 2] | [8, 1..=6] => Some(INT),
        [5..=8] => Some(STRUCT),
        _ => None,
    }
}

/// Walks over a struct at the beginning of `bytes`, whose fields have the types that `types` says; returns what is
/// behind it, or None: it is damaged. `each` gets the number of each field, after those of the fields that it is
/// in, and the integer or the length of the list that it holds.
pub(super) fn walk<'a>(
    bytes: &'a [u8],
    types: fn(&[i64]) -> Option<u8>,
    each: &mut dyn FnMut(&[i64], i64),
) -> Option<&'a [u8]> {
    let mut rest = Rest {
        bytes,
        path: Vec::new(),
        types,
        each,
    };
    rest.structure(0)?;
    Some(rest.bytes)
}

/// Splits off an unsigned integer of seven bits a byte, the lowest first.
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (place, &byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 127) << (7 * place);
        if byte < 128 {
            return Some((number, &bytes[place + 1..]));
        }
    }
    None
}

/// Bytes that are still to be read.
struct Rest<'a, 'b> {
    bytes: &'a [u8],
    /// The numbers of the fields that the next value is in.
    path: Vec<i64>,
    types: fn(&[i64]) -> Option<u8>,
    each: &'b mut dyn FnMut(&[i64], i64),
}

impl Rest<'_, '_> {
    fn structure(&mut self, depth: usize) -> Option<()> {
        let mut number = 0_i64;
        loop {
            let byte = self.byte()?;
            let (delta, code) = (byte >> 4, byte & 15);
            number = match (delta, code) {
                (_, 0) => return Some(()),
                (0, _) => i16::try_from(self.signed()?).ok()?.into(),
                (delta, _) => number.checked_add(i64::from(delta))?,
            };
            self.path.push(number);
            if (self.types)(&self.path).is_some_and(|known| known != code) {
                return None;
            }
            if matches!(code, 1 | 2) {
                self.path.pop();
                continue; // true and false have no bytes
            }
            let value = self.value(code, depth + 1)?;
            (self.each)(&self.path, value);
            self.path.pop();
        }
    }

    /// Walks over a value of type `code`; returns the integer that it is, or how many entries it has.
    fn value(&mut self, code: u8, depth: usize) -> Option<i64> {
        if depth > DEPTH {
            return None;
        }
        match code {
            BYTE => self.byte().map(i64::from),
            SHORT => i16::try_from(self.signed()?).ok().map(i64::from),
            INT => i32::try_from(self.signed()?).ok().map(i64::from),
            LONG => self.signed(),
            DOUBLE => self.skip(8),
            BINARY => {
                let size = self.unsigned()?;
                self.skip(usize::try_from(size).ok()?)
            }
            LIST | 10 => {
                let byte = self.byte()?;
                let count = match byte >> 4 {
                    15 => self.unsigned()?,
                    short => u64::from(short),
                };
                self.entries(count, &[byte & 15], depth)
            }
            11 => {
                let count = self.unsigned()?;
                let codes = if count == 0 { 0 } else { self.byte()? };
                self.entries(count, &[codes >> 4, codes & 15], depth)
            }
            STRUCT => self.structure(depth).map(|()| 0),
            _ => None, // booleans in lists, too, which the crate passes over without end: there are none
        }
    }

    /// Walks over `count` entries, each a value of each of `codes`.
    fn entries(&mut self, count: u64, codes: &[u8], depth: usize) -> Option<i64> {
        if count > self.bytes.len() as u64 {
            return None;
        }
        for _ in 0..count {
            for &code in codes {
                self.value(code, depth + 1)?;
            }
        }
        Some(count.cast_signed())
    }

    fn skip(&mut self, size: usize) -> Option<i64> {
        self.bytes = self.bytes.get(size..)?;
        Some(0)
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(byte)
    }

    fn unsigned(&mut self) -> Option<u64> {
        let (number, rest) = varint(self.bytes)?;
        self.bytes = rest;
        Some(number)
    }

    /// A signed integer, zigzag.
    fn signed(&mut self) -> Option<i64> {
        let number = self.unsigned()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(bytes: &[u8]) -> Option<Vec<(Vec<i64>, i64)>> {
        let mut found = Vec::new();
        walk(bytes, page, &mut |field, number| {
            found.push((field.to_vec(), number));
        })?;
        Some(found)
    }

    #[test]
    fn fields_are_told_with_those_that_they_are_in() {
        let header = [0x15, 4, 0x4c, 0x15, 6, 0, 0, 9];
        let expected = [(vec![1], 2), (vec![5, 1], 3), (vec![5], 0)];
        assert_eq!(fields(&header), Some(expected.to_vec()));
        let rest = walk(&header, page, &mut |_, _| {});
        assert_eq!(rest, Some(&[9][..]));
    }

    #[test]
    fn fields_of_other_types_are_refused() {
        for first in [&[0x16, 4][..], &[0x18, 1, 4], &[0x11], &[0x1c, 0]] {
            assert_eq!(fields(&[first, &[0]].concat()), None);
        }
        assert_eq!(fields(&[0x15, 0xff, 0xff, 0xff, 0xff, 0x1f, 0]), None);
        assert_eq!(fields(&[0x05, 0x82, 0x80, 0x08, 4, 0]), None); // field 65537
    }

    #[test]
    fn lists_that_claim_more_than_there_is_are_refused() {
        assert_eq!(fields(&[0xf9, 0x23, 1, 2, 0]), Some(vec![(vec![15], 2)]));
        for list in [
            &[0xf9, 0xf3, 0xff, 0x7f, 1][..],
            &[0xf9, 0x21, 1, 2],
            &[0xf8, 9, 1],
        ] {
            assert_eq!(fields(&[list, &[0]].concat()), None);
        }
        assert_eq!(fields(&[0xfc; 99]), None);
    }
}
