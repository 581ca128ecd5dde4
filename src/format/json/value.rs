//! One value of JSON, as its bytes, which were checked before.

use super::text;
use crate::memory::Dtype;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number without fraction and exponent: an int of Python.
    Int(&'a str),
    /// Any other number: a float of Python.
    Float(&'a str),
    /// A string, with its escapes.
    Text(&'a [u8]),
    /// A list, without its brackets.
    List(&'a [u8]),
    /// An object.
    Object,
}

impl<'a> Value<'a> {
    /// Tells what bytes are that [`Fields::find`](super::Fields::find) found.
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

    /// What the value is called where it does not fit.
    pub fn name(self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "a whole number",
            Value::Float(_) => "a floating point number",
            Value::Text(_) => "a string",
            Value::List(_) => "a list",
            Value::Object => "an object",
        }
    }

    /// Writes a number as an element of `dtype`, exactly as torch would convert Python's; None if it is
    /// no number of that kind, or the dtype cannot hold it.
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
                let fits = short.is_finite() || !float.is_finite(); // torch refuses to overflow, too
                put(fits.then_some(short)?.to_ne_bytes(), out)
            }
            Dtype::Float64 => put(self.float()?.to_ne_bytes(), out),
            _ => None,
        }
    }

    /// The number as Python's float.
    fn float(self) -> Option<f64> {
        match self {
            Value::Float("NaN") => Some(f64::NAN),
            Value::Float("Infinity") => Some(f64::INFINITY),
            Value::Float("-Infinity") => Some(f64::NEG_INFINITY),
            Value::Float(number) => number.parse().ok(),
            // An int is no negative zero, and too large a one is an OverflowError in Python.
            Value::Int(digits) => {
                let float: f64 = digits.parse().ok()?;
                float.is_finite().then_some(float + 0.0)
            }
            _ => None,
        }
    }

    /// The text of a string; None if it has half of a surrogate pair, or it is no string.
    pub fn text(self) -> Option<String> {
        match self {
            Value::Text(raw) => text::unescape(raw),
            _ => None,
        }
    }

    /// The elements of a list of numbers, booleans and nulls; None of another value, and of a list that
    /// has others.
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
