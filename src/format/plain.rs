//! Small files that are one value: a text, or an integer in digits.

use super::{Array, Target};
use crate::error::{Error, Result};
use crate::memory::Dtype;
use crate::memory::fallible::boxed;

/// Returns UTF-8 text.
///
/// # Errors
///
/// [`Error::Decode`]: the bytes are not such a text.
pub fn text(bytes: &[u8]) -> Result<Box<str>> {
    let text = String::from_utf8(boxed(bytes)?.into_vec());
    let text = text.map_err(|error| {
        let error = error.utf8_error();
        Error::decode(format!("it is no UTF-8 text: {error}"))
    });
    Ok(text?.into_boxed_str())
}

/// An integer in decimal digits, as Python's `int()` reads it; 64 bits.
#[derive(Debug)]
pub struct Integer;

impl Array for Integer {
    fn dtype(&self) -> Dtype {
        Dtype::Int64
    }

    fn fixed_shape(&self) -> Option<&[usize]> {
        Some(&[])
    }

    fn decode(&self, _index: usize, bytes: &[u8], target: &mut dyn Target) -> Result<()> {
        let number = number(bytes).ok_or_else(|| {
            let start = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]);
            Error::decode(format!("{start:?} is not an integer of 64 bits"))
        })?;
        target.shaped(&[])?.copy_from_slice(&number.to_ne_bytes());
        Ok(())
    }
}

fn number(bytes: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_plain = !digits.is_empty()
        && digits
            .split('_')
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    is_plain.then(|| text.replace('_', "").parse().ok())?
}
