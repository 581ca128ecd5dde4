//! Element types of samples, and the conversion of amplitudes to each.

use std::ops::{Add, Div};

use crate::memory::Dtype;

/// The element type of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// `float32`; full scale is 1.
    F32,
    /// `float64`; full scale is 1.
    F64,
    /// `int16`; wider integers lose their lower bits.
    I16,
    /// `int32`; full scale is 2**31.
    I32,
}

impl Depth {
    /// Returns the depth for a dtype; None if samples cannot have it.
    pub fn of(dtype: Dtype) -> Option<Depth> {
        match dtype {
            Dtype::Float32 => Some(Depth::F32),
            Dtype::Float64 => Some(Depth::F64),
            Dtype::Int16 => Some(Depth::I16),
            Dtype::Int32 => Some(Depth::I32),
            _ => None,
        }
    }

    /// Returns the dtype.
    pub fn dtype(self) -> Dtype {
        match self {
            Depth::F32 => Dtype::Float32,
            Depth::F64 => Dtype::Float64,
            Depth::I16 => Dtype::Int16,
            Depth::I32 => Dtype::Int32,
        }
    }

    /// Returns true for floats.
    pub fn is_float(self) -> bool {
        matches!(self, Depth::F32 | Depth::F64)
    }
}

/// An element of a sample.
pub(super) trait Element: Copy {
    /// Bytes per element.
    const SIZE: usize;

    /// Converts an integer with a full scale of 2**31 (fewer bits are shifted left).
    fn of_int(value: i32) -> Self;

    /// Writes the element to [`Element::SIZE`] bytes.
    fn store(self, out: &mut [u8]);
}

/// A float element.
pub(super) trait Real: Element + Add<Output = Self> + Div<Output = Self> {
    /// Converts a number of channels.
    fn of_count(count: u16) -> Self;
}

macro_rules! element {
    ($type:ty, $of_int:expr) => {
        impl Element for $type {
            const SIZE: usize = size_of::<$type>();

            #[inline(always)]
            fn of_int(value: i32) -> Self {
                $of_int(value)
            }

            #[inline(always)]
            fn store(self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_ne_bytes());
            }
        }
    };
}

// Integers are rounded to a float before they are scaled, as in libsndfile (pcm.c, `let2f_array`).
element!(f32, |value: i32| value as f32 * (1.0 / 2_147_483_648.0));
element!(f64, |value: i32| f64::from(value) * (1.0 / 2_147_483_648.0));
element!(i16, |value: i32| (value >> 16) as i16);
element!(i32, |value: i32| value);

impl Real for f32 {
    fn of_count(count: u16) -> f32 {
        f32::from(count)
    }
}

impl Real for f64 {
    fn of_count(count: u16) -> f64 {
        f64::from(count)
    }
}
