//! The element types of batches: those of torch that DLPack can carry.
//!
//! Owns the one table of names, sizes and DLPack codes. Also the conversions of elements to
//! another type while they are copied.

use half::f16;

/// The type of a tensor's elements; names and meanings are torch's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names say it
pub enum Dtype {
    Bool,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Int8,
    Int16,
    Int32,
    Int64,
    Float16,
    BFloat16,
    Float32,
    Float64,
    Complex32,
    Complex64,
    Complex128,
    Float8E4M3Fn,
    Float8E4M3FnUz,
    Float8E5M2,
    Float8E5M2FnUz,
    Float8E8M0Fnu,
}

/// Dtype, torch's name, `DLDataTypeCode` (dlpack.h 1.3), bits. All have one lane. In the order of
/// the enum.
const TABLE: [(Dtype, &str, u8, u8); 21] = [
    (Dtype::Bool, "bool", 6, 8),
    (Dtype::UInt8, "uint8", 1, 8),
    (Dtype::UInt16, "uint16", 1, 16),
    (Dtype::UInt32, "uint32", 1, 32),
    (Dtype::UInt64, "uint64", 1, 64),
    (Dtype::Int8, "int8", 0, 8),
    (Dtype::Int16, "int16", 0, 16),
    (Dtype::Int32, "int32", 0, 32),
    (Dtype::Int64, "int64", 0, 64),
    (Dtype::Float16, "float16", 2, 16),
    (Dtype::BFloat16, "bfloat16", 4, 16),
    (Dtype::Float32, "float32", 2, 32),
    (Dtype::Float64, "float64", 2, 64),
    (Dtype::Complex32, "complex32", 5, 32),
    (Dtype::Complex64, "complex64", 5, 64),
    (Dtype::Complex128, "complex128", 5, 128),
    (Dtype::Float8E4M3Fn, "float8_e4m3fn", 10, 8),
    (Dtype::Float8E4M3FnUz, "float8_e4m3fnuz", 11, 8),
    (Dtype::Float8E5M2, "float8_e5m2", 12, 8),
    (Dtype::Float8E5M2FnUz, "float8_e5m2fnuz", 13, 8),
    (Dtype::Float8E8M0Fnu, "float8_e8m0fnu", 14, 8),
];

impl Dtype {
    /// Returns the size of one element, in bytes.
    pub const fn itemsize(self) -> usize {
        TABLE[self as usize].3 as usize / 8
    }

    /// Returns torch's name, as `"float32"`.
    pub const fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// Finds the dtype that torch calls `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Finds the dtype of (code, bits, lanes) of DLPack's `DLDataType`.
    pub fn from_dlpack(code: u8, bits: u8, lanes: u16) -> Option<Self> {
        let mut rows = TABLE.iter();
        let found = rows.find(|row| lanes == 1 && (row.2, row.3) == (code, bits));
        found.map(|row| row.0)
    }

    /// Returns true for signed and unsigned integers.
    pub const fn is_integer(self) -> bool {
        matches!(TABLE[self as usize].2, 0 | 1)
    }

    /// Returns true for floating point and complex dtypes.
    pub const fn is_inexact(self) -> bool {
        !matches!(TABLE[self as usize].2, 0 | 1 | 6)
    }

    /// Returns true for complex dtypes.
    pub const fn is_complex(self) -> bool {
        TABLE[self as usize].2 == 5
    }

    /// Returns (code, bits, lanes) of DLPack's `DLDataType`.
    pub const fn dlpack(self) -> (u8, u8, u16) {
        let (_, _, code, bits) = TABLE[self as usize];
        (code, bits, 1)
    }

    /// Returns true for the 8-bit floating point dtypes, which DLPack has since 1.1.
    pub const fn is_float8(self) -> bool {
        TABLE[self as usize].3 == 8 && TABLE[self as usize].2 >= 10
    }
}

/// A conversion as NumPy and torch make it: integers wrap, and floats are rounded to the nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    from: Dtype,
    to: Dtype,
}

impl Cast {
    /// Takes the types; None unless integers become int32 or int64 without loss, or floats become float32 or
    /// float64.
    pub fn new(from: Dtype, to: Dtype) -> Option<Cast> {
        use Dtype::{Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32};
        let is_kept = match to {
            Int32 => matches!(from, Int8 | Int16 | UInt8 | UInt16),
            Int64 => matches!(from, Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32),
            _ => from.is_inexact(),
        };
        Cast::any(from, to).filter(|_| is_kept)
    }

    /// Takes the types; None unless integers become other integers or floats, or floats become float32 or float64. There
    /// is no integer for each float.
    pub fn any(from: Dtype, to: Dtype) -> Option<Cast> {
        use Dtype::{Float16, Float32, Float64};
        let is_float = matches!(to, Float32 | Float64);
        let exists = match from {
            Float16 | Float32 | Float64 => is_float,
            _ => from.is_integer() && (is_float || to.is_integer()),
        };
        (exists && from != to).then_some(Cast { from, to })
    }

    /// Returns the type of the result.
    pub fn to(self) -> Dtype {
        self.to
    }

    /// Converts the elements of `source` to `out`, which must have room for as many.
    #[allow(
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        clippy::unnecessary_cast
    )]
    pub fn run(self, source: &[u8], out: &mut [u8]) {
        macro_rules! to {
            ($read:expr, $($dtype:ident $kind:ty),+) => {
                match self.to {
                    $(Dtype::$dtype => each(source, out, |b| ($read(b) as $kind).to_ne_bytes()),)+
                    to => unreachable!("no cast of {} to {}, by `any`", self.from.name(), to.name()),
                }
            };
        }
        macro_rules! integer {
            ($read:expr) => {
                to!(
                    $read, Int8 i8, Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64,
                    Float32 f32, Float64 f64
                )
            };
        }
        match self.from {
            Dtype::Int8 => integer!(i8::from_ne_bytes),
            Dtype::Int16 => integer!(i16::from_ne_bytes),
            Dtype::Int32 => integer!(i32::from_ne_bytes),
            Dtype::Int64 => integer!(i64::from_ne_bytes),
            Dtype::UInt8 => integer!(u8::from_ne_bytes),
            Dtype::UInt16 => integer!(u16::from_ne_bytes),
            Dtype::UInt32 => integer!(u32::from_ne_bytes),
            Dtype::UInt64 => integer!(u64::from_ne_bytes),
            Dtype::Float16 => to!(|b| f32::from(f16::from_ne_bytes(b)), Float32 f32, Float64 f64),
            Dtype::Float32 => to!(f32::from_ne_bytes, Float64 f64),
            Dtype::Float64 => to!(f64::from_ne_bytes, Float32 f32),
            from => unreachable!("no cast of {}, by `any`", from.name()),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (position, row) in TABLE.iter().enumerate() {
            assert_eq!(row.0 as usize, position);
            assert_eq!(Dtype::from_name(row.1), Some(row.0));
            let (code, bits, lanes) = row.0.dlpack();
            assert_eq!(Dtype::from_dlpack(code, bits, lanes), Some(row.0));
        }
        assert_eq!(Dtype::from_name("float"), None);
    }

    #[test]
    fn integers_wrap_and_are_rounded_to_the_nearest_even_float() {
        let mut bytes = [0; 2];
        let narrow = Cast::any(Dtype::Int64, Dtype::UInt8).unwrap();
        narrow.run(
            [-1_i64, 258].map(i64::to_ne_bytes).as_flattened(),
            &mut bytes,
        );
        assert_eq!(bytes, [255, 2]);
        let mut singles = [0; 8];
        let float = Cast::any(Dtype::Int64, Dtype::Float32).unwrap();
        let odd = [(1 << 24) + 1, (1 << 24) + 3].map(i64::to_ne_bytes);
        float.run(odd.as_flattened(), &mut singles);
        let wanted = [16_777_216_f32, 16_777_220.0].map(f32::to_ne_bytes);
        assert_eq!(singles, wanted.as_flattened());
        assert_eq!(Cast::new(Dtype::Int64, Dtype::UInt8), None);
        assert_eq!(Cast::new(Dtype::Int64, Dtype::Float32), None);
        assert_eq!(Cast::any(Dtype::Float64, Dtype::Int64), None);
    }

    #[test]
    fn only_the_float8_kinds_are_float8() {
        for (dtype, name, _, _) in TABLE {
            assert_eq!(dtype.is_float8(), name.starts_with("float8"), "{name}");
        }
    }
}
