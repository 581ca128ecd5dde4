//! The padding value, and which element types can hold it.

use std::fmt;

use half::{bf16, f16};

use crate::error::Mismatch;
use crate::memory::Dtype;

/// A number from Python.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    /// An integer or a bool.
    Int(i128),
    /// A float.
    Float(f64),
    /// A complex number: real and imaginary part.
    Complex(f64, f64),
}

/// One element: its first bytes, as many as the dtype's itemsize.
pub type Element = [u8; 16];

impl Fill {
    /// Returns the element of `dtype` with this value, rounded to the nearest for floating point dtypes.
    pub fn element(self, dtype: Dtype) -> Result<Element, Mismatch> {
        self.rounded(dtype).ok_or_else(|| Mismatch::Fill {
            fill: self.to_string(),
            dtype: dtype.name(),
        })
    }

    fn rounded(self, dtype: Dtype) -> Option<Element> {
        let mut element = [0; 16];
        match dtype {
            Dtype::Bool => element[0] = self.whole::<u8>().filter(|&flag| flag <= 1)?,
            Dtype::UInt8 => put(&mut element, &self.whole::<u8>()?.to_ne_bytes()),
            Dtype::UInt16 => put(&mut element, &self.whole::<u16>()?.to_ne_bytes()),
            Dtype::UInt32 => put(&mut element, &self.whole::<u32>()?.to_ne_bytes()),
            Dtype::UInt64 => put(&mut element, &self.whole::<u64>()?.to_ne_bytes()),
            Dtype::Int8 => put(&mut element, &self.whole::<i8>()?.to_ne_bytes()),
            Dtype::Int16 => put(&mut element, &self.whole::<i16>()?.to_ne_bytes()),
            Dtype::Int32 => put(&mut element, &self.whole::<i32>()?.to_ne_bytes()),
            Dtype::Int64 => put(&mut element, &self.whole::<i64>()?.to_ne_bytes()),
            Dtype::Float16 => put(&mut element, &half(self.real()?)?),
            Dtype::BFloat16 => put(&mut element, &brain(self.real()?)?),
            Dtype::Float32 => put(&mut element, &single(self.real()?)?),
            Dtype::Float64 => put(&mut element, &self.real()?.to_ne_bytes()),
            Dtype::Complex32 => pair(&mut element, self.complex(), half)?,
            Dtype::Complex64 => pair(&mut element, self.complex(), single)?,
            Dtype::Complex128 => {
                pair(&mut element, self.complex(), |part| {
                    Some(part.to_ne_bytes())
                })?;
            }
            _ => element[0] = small(self.real()?, dtype)?,
        }
        Some(element)
    }

    /// Returns the value as an integer.
    fn whole<T: TryFrom<i128>>(self) -> Option<T> {
        let whole = match self {
            Fill::Int(whole) => whole,
            Fill::Float(value) if value.fract() == 0.0 && value.abs() < 1e30 => value as i128,
            _ => return None,
        };
        T::try_from(whole).ok()
    }

    fn real(self) -> Option<f64> {
        match self {
            Fill::Int(whole) => Some(whole as f64),
            Fill::Float(value) => Some(value),
            Fill::Complex(..) => None,
        }
    }

    fn complex(self) -> (f64, f64) {
        match self {
            Fill::Int(whole) => (whole as f64, 0.0),
            Fill::Float(value) => (value, 0.0),
            Fill::Complex(real, imaginary) => (real, imaginary),
        }
    }
}

impl fmt::Display for Fill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fill::Int(whole) => write!(f, "{whole}"),
            Fill::Float(value) if value.is_nan() => f.write_str("nan"),
            Fill::Float(value) => write!(f, "{value:?}"),
            Fill::Complex(real, imaginary) => write!(f, "({real}{imaginary:+}j)"),
        }
    }
}

fn put(element: &mut Element, bytes: &[u8]) {
    element[..bytes.len()].copy_from_slice(bytes);
}

fn pair<const N: usize>(
    element: &mut Element,
    (real, imaginary): (f64, f64),
    encode: impl Fn(f64) -> Option<[u8; N]>,
) -> Option<()> {
    element[..N].copy_from_slice(&encode(real)?);
    element[N..2 * N].copy_from_slice(&encode(imaginary)?);
    Some(())
}

fn single(value: f64) -> Option<[u8; 4]> {
    let rounded = value as f32;
    (rounded.is_finite() || !value.is_finite()).then(|| rounded.to_ne_bytes())
}

fn half(value: f64) -> Option<[u8; 2]> {
    let rounded = f16::from_f32(value as f32);
    (rounded.is_finite() || !value.is_finite()).then(|| rounded.to_ne_bytes())
}

/// Rounds through single precision, as torch does.
fn brain(value: f64) -> Option<[u8; 2]> {
    let rounded = bf16::from_f32(value as f32);
    (rounded.is_finite() || !value.is_finite()).then(|| rounded.to_ne_bytes())
}

/// Finds the exact value among those of an 8-bit floating point dtype.
fn small(value: f64, dtype: Dtype) -> Option<u8> {
    (0..=u8::MAX).find(|&code| {
        let other = decoded(code, dtype);
        other.to_bits() == value.to_bits() || other.is_nan() && value.is_nan()
    })
}

/// Returns the value of a code of the 8-bit dtypes (OCP 8-bit Floating Point Specification 1.0; Graphcore's
/// proposal for `fnuz`; OCP Microscaling Formats 1.0 for `e8m0`).
fn decoded(code: u8, dtype: Dtype) -> f64 {
    let (mantissa_bits, bias) = match dtype {
        Dtype::Float8E4M3Fn => (3, 7),
        Dtype::Float8E4M3FnUz => (3, 8),
        Dtype::Float8E5M2 => (2, 15),
        Dtype::Float8E5M2FnUz => (2, 16),
        _ => {
            let power = 2_f64.powi(i32::from(code) - 127);
            return if code == 0xff { f64::NAN } else { power };
        }
    };
    let magnitude = code & 0x7f;
    match (dtype, code, magnitude) {
        (Dtype::Float8E4M3Fn, _, 0x7f)
        | (Dtype::Float8E5M2, _, 0x7d..)
        | (Dtype::Float8E4M3FnUz | Dtype::Float8E5M2FnUz, 0x80, _) => return f64::NAN,
        (Dtype::Float8E5M2, 0x7c, _) => return f64::INFINITY,
        (Dtype::Float8E5M2, 0xfc, _) => return f64::NEG_INFINITY,
        _ => {}
    }
    let unit = f64::from(1_u8 << mantissa_bits);
    let fraction = f64::from(magnitude & ((1 << mantissa_bits) - 1)) / unit;
    let exponent = i32::from(magnitude >> mantissa_bits);
    let absolute = if exponent == 0 {
        fraction * 2_f64.powi(1 - bias)
    } else {
        (1.0 + fraction) * 2_f64.powi(exponent - bias)
    };
    if code & 0x80 == 0 {
        absolute
    } else {
        -absolute
    }
}
