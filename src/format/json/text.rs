//! JSON strings: finds their ends and decodes their escapes.

use super::{Checked, Flaw};

/// A 1 in every byte.
const ONES: u64 = u64::MAX / 0xff;
/// The highest bit of every byte.
const HIGH: u64 = ONES << 7;

/// Returns the offset after the string whose opening quote is at `start`.
pub(super) fn end(json: &[u8], start: usize) -> Checked<usize> {
    let flaw = |what, at| Err(Flaw { what, at });
    let mut at = start + 1;
    loop {
        at += plain(&json[at..]);
        match json.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => match json.get(at + 1) {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 2,
                Some(b'u') if unit(json.get(at + 2..).unwrap_or_default()).is_some() => at += 6,
                _ => return flaw("an invalid escape", at),
            },
            Some(_) => return flaw("a control character in a string", at),
            None => return flaw("an unterminated string", start),
        }
    }
}

/// Returns the number of bytes before the first quote, backslash or control character, eight at a time.
fn plain(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (place, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The lowest marked byte is right: borrows only reach higher ones. See Bit Twiddling Hacks, "hasless".
        let is = |byte: u8| {
            let other = word ^ (ONES * u64::from(byte));
            other.wrapping_sub(ONES) & !other
        };
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let marks = (is(b'"') | is(b'\\') | control) & HIGH;
        if marks != 0 {
            return place * 8 + marks.trailing_zeros() as usize / 8;
        }
    }
    let special = |&byte: &u8| byte == b'"' || byte == b'\\' || byte < 0x20;
    let left = rest.iter().position(special).unwrap_or(rest.len());
    words.len() * 8 + left
}

/// Parses the four digits of `\uXXXX`.
fn unit(digits: &[u8]) -> Option<u32> {
    let digits = digits.first_chunk::<4>()?;
    digits.iter().try_fold(0, |unit, &digit| {
        Some(unit << 4 | char::from(digit).to_digit(16)?)
    })
}

/// Decodes the string that [`end`] found, without its quotes; None if it has a lone surrogate, which Python's
/// str can hold and UTF-8 cannot.
pub(super) fn unescape(raw: &[u8]) -> Option<String> {
    let mut text = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        text.extend_from_slice(&rest[..at]);
        let escape = *rest.get(at + 1)?;
        rest = &rest[at + 2..];
        let plain = match escape {
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let mut code = unit(rest)?;
                rest = &rest[4..];
                if (0xd800..0xdc00).contains(&code) {
                    let low = unit(rest.strip_prefix(b"\\u")?)?;
                    let low = low.checked_sub(0xdc00).filter(|&low| low < 0x400)?;
                    code = 0x1_0000 + ((code - 0xd800) << 10) + low;
                    rest = &rest[6..];
                }
                let letter = char::from_u32(code)?;
                text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
            other => other,
        };
        text.push(plain);
    }
    text.extend_from_slice(rest);
    String::from_utf8(text).ok()
}
