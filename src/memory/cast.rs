//! Conversions of elements to another type while they are copied.

use half::f16;

use super::Dtype;

/// A conversion that keeps every value, or rounds to the nearest value of the new type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    from: Dtype,
    to: Dtype,
}

impl Cast {
    /// Takes the types; None unless integers become int32 or int64 without loss, or floats become float32 or
    /// float64.
    pub fn new(from: Dtype, to: Dtype) -> Option<Cast> {
        use Dtype::{Float16, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32};
        let exists = match to {
            Int32 => matches!(from, Int8 | Int16 | UInt8 | UInt16),
            Int64 => matches!(from, Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32),
            Float32 => matches!(from, Float16 | Float64),
            Float64 => matches!(from, Float16 | Float32),
            _ => false,
        };
        exists.then_some(Cast { from, to })
    }

    /// Returns the type of the result.
    pub fn to(self) -> Dtype {
        self.to
    }

    /// Converts the elements of `source` to `out`, which must have room for as many.
    pub fn run(self, source: &[u8], out: &mut [u8]) {
        match (self.from, self.to) {
            (Dtype::Int8, Dtype::Int32) => each(source, out, |b| int(i8::from_ne_bytes(b))),
            (Dtype::Int16, Dtype::Int32) => each(source, out, |b| int(i16::from_ne_bytes(b))),
            (Dtype::UInt8, Dtype::Int32) => each(source, out, |b| int(u8::from_ne_bytes(b))),
            (Dtype::UInt16, Dtype::Int32) => each(source, out, |b| int(u16::from_ne_bytes(b))),
            (Dtype::Int8, _) => each(source, out, |b| long(i8::from_ne_bytes(b))),
            (Dtype::Int16, _) => each(source, out, |b| long(i16::from_ne_bytes(b))),
            (Dtype::Int32, _) => each(source, out, |b| long(i32::from_ne_bytes(b))),
            (Dtype::UInt8, _) => each(source, out, |b| long(u8::from_ne_bytes(b))),
            (Dtype::UInt16, _) => each(source, out, |b| long(u16::from_ne_bytes(b))),
            (Dtype::UInt32, _) => each(source, out, |b| long(u32::from_ne_bytes(b))),
            (Dtype::Float16, Dtype::Float32) => {
                each(source, out, |b| {
                    f16::from_ne_bytes(b).to_f32().to_ne_bytes()
                });
            }
            (Dtype::Float16, _) => {
                each(source, out, |b| {
                    f16::from_ne_bytes(b).to_f64().to_ne_bytes()
                });
            }
            (Dtype::Float32, _) => {
                each(source, out, |b| {
                    f64::from(f32::from_ne_bytes(b)).to_ne_bytes()
                });
            }
            (Dtype::Float64, _) => {
                each(source, out, |b| {
                    (f64::from_ne_bytes(b) as f32).to_ne_bytes()
                });
            }
            (from, to) => unreachable!("no cast of {} to {}, by `new`", from.name(), to.name()),
        }
    }
}

fn int(value: impl Into<i32>) -> [u8; 4] {
    value.into().to_ne_bytes()
}

fn long(value: impl Into<i64>) -> [u8; 8] {
    value.into().to_ne_bytes()
}

fn each<const FROM: usize, const TO: usize>(
    source: &[u8],
    out: &mut [u8],
    cast: impl Fn([u8; FROM]) -> [u8; TO],
) {
    let (elements, _) = source.as_chunks::<FROM>();
    let (places, _) = out.as_chunks_mut::<TO>();
    debug_assert_eq!(elements.len(), places.len());
    for (element, place) in elements.iter().zip(places) {
        *place = cast(*element);
    }
}
