//! One JSON value, in bytes that were validated before.

use super::text;
use crate::memory::Dtype;

/// A JSON value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number without fraction or exponent: an int in Python.
    Int(&'a str),
    /// Any other number: a float in Python.
    Float(&'a str),
    /// A string, its escapes not decoded.
    Text(&'a [u8]),
    /// A list, without its brackets.
    List(&'a [u8]),
    /// An object.
    Object,
}

impl<'a> Value<'a> {
    /// Classifies bytes that [`Fields::find`](super::Fields::find) found.
    pub fn of(raw: &'a [u8]) -> Value<'a> {
        let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
        match raw.first() {
            Some(b'"') => Value::Text(inner),
            Some(b'[') => Value::List(inner),
            Some(b'{') | None => Value::Object,
            Some(b'n') => Value::Null,
            Some(b't') => Value::Bool(true),
            Some(b'f') => Value::Bool(false),
            _ => {
                let number = std::str::from_utf8(raw).unwrap_or_default();
                let is_int = !raw
                    .iter()
                    .any(|byte| matches!(byte, b'.' | b'e' | b'E' | b'N' | b'I'));
                if is_int {
                    Value::Int(number)
                } else {
                    Value::Float(number)
                }
            }
        }
    }

    /// Returns the name of its type, for errors.
    pub fn name(self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Object => "an object",
        }
    }

    /// Writes a number as an element of `dtype`, converted as torch converts Python's numbers; None if it is not
    /// a number of that kind, or the dtype cannot hold it.
    pub fn write(self, dtype: Dtype, out: &mut [u8]) -> Option<()> {
        macro_rules! int {
            ($kind:ty) => {
                match self {
                    Value::Int(digits) => put(digits.parse::<$kind>().ok()?.to_ne_bytes(), out),
                    _ => None,
                }
            };
        }
        match dtype {
            Dtype::Bool => match self {
                Value::Bool(bool) => put([u8::from(bool)], out),
                _ => None,
            },
            Dtype::UInt8 => int!(u8),
            Dtype::Int8 => int!(i8),
            Dtype::Int16 => int!(i16),
            Dtype::Int32 => int!(i32),
            Dtype::Int64 => int!(i64),
            Dtype::Float32 => {
                let float = self.float()?;
                let short = float as f32;
                let fits = short.is_finite() || !float.is_finite(); // torch refuses overflow, too
                put(fits.then_some(short)?.to_ne_bytes(), out)
            }
            Dtype::Float64 => put(self.float()?.to_ne_bytes(), out),
            _ => None,
        }
    }

    /// Returns the number as Python's float.
    fn float(self) -> Option<f64> {
        match self {
            Value::Float("NaN") => Some(f64::NAN),
            Value::Float("Infinity") => Some(f64::INFINITY),
            Value::Float("-Infinity") => Some(f64::NEG_INFINITY),
            Value::Float(number) => number.parse().ok(),
            // An int is never negative zero; one that is too large is an OverflowError in Python.
            Value::Int(digits) => {
                let float: f64 = digits.parse().ok()?;
                float.is_finite().then_some(float + 0.0)
            }
            _ => None,
        }
    }

    /// Returns the text of a string; None for a lone surrogate, or another value.
    pub fn text(self) -> Option<String> {
        match self {
            Value::Text(raw) => text::unescape(raw),
            _ => None,
        }
    }

    /// Returns the elements of a list of numbers, booleans and nulls; None for any other value or list.
    pub fn elements(self) -> Option<impl Iterator<Item = Value<'a>>> {
        let Value::List(inner) = self else {
            return None;
        };
        if memchr::memchr3(b'"', b'[', b'{', inner).is_some() {
            return None;
        }
        let inner = inner.trim_ascii();
        let parts = inner.split(|&byte| byte == b',');
        let parts = parts.take(if inner.is_empty() { 0 } else { usize::MAX });
        Some(parts.map(|part| Value::of(part.trim_ascii())))
    }
}

fn put<const N: usize>(bytes: [u8; N], out: &mut [u8]) -> Option<()> {
    *out.first_chunk_mut()? = bytes;
    Some(())
}
