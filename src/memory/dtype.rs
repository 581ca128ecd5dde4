//! The element types of batches: those of torch that DLPack can carry.
//!
//! Owns the one table of names, sizes and DLPack codes. Refuses to convert values.

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

    /// Returns true for floating point and complex dtypes.
    pub const fn is_inexact(self) -> bool {
        !matches!(TABLE[self as usize].2, 0 | 1 | 6)
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
    fn only_the_float8_kinds_are_float8() {
        for (dtype, name, _, _) in TABLE {
            assert_eq!(dtype.is_float8(), name.starts_with("float8"), "{name}");
        }
    }
}
