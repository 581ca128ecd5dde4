//! Footers and headers of pages, walked over before the `parquet` crate reads them.
//!
//! Thrift's compact protocol (`thrift-compact-protocol.md` of Apache Thrift). Refuses a string, list, set or map
//! that claims more entries than bytes follow: the crate takes time, or memory, for what they claim. Everything
//! else is the crate's to refuse.

/// How deep structs and lists lie in each other at most.
const DEPTH: usize = 12;

/// Walks over a struct at the beginning of `bytes`; returns what is behind it, or None: it is damaged.
/// `each` gets the number of each field, after those of the fields that it is in, and the integer or the length of
/// the list that it holds.
pub(super) fn walk<'a>(bytes: &'a [u8], each: &mut dyn FnMut(&[i64], i64)) -> Option<&'a [u8]> {
    let mut rest = Rest {
        bytes,
        path: Vec::new(),
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
                (0, _) => self.signed()?,
                (delta, _) => number.checked_add(i64::from(delta))?,
            };
            if matches!(code, 1 | 2) {
                continue; // true and false have no bytes
            }
            self.path.push(number);
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
            1..=3 => self.byte().map(i64::from),
            4..=6 => self.signed(),
            7 => self.skip(8),
            8 => {
                let size = self.unsigned()?;
                self.skip(usize::try_from(size).ok()?)
            }
            9 | 10 => {
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
            12 => self.structure(depth).map(|()| 0),
            _ => None,
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
