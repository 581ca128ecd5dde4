//! Which column of a file is meant, and what its values are.

use std::path::Path;

use ::parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use ::parquet::schema::types::{BasicTypeInfo, ColumnDescPtr, SchemaDescriptor, Type};

use crate::column::Values;
use crate::error::{Error, Result};
use crate::memory::Dtype;

/// A column of primitive values in one file.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// Its number among the file's columns of primitive values.
    pub(super) place: usize,
    pub(super) kind: Kind,
    /// Whether a sample is a list of values.
    pub(super) is_list: bool,
    pub(super) descriptor: ColumnDescPtr,
}

/// What values are, and how they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    /// Whole numbers of up to 32 bits, stored in 32.
    Int(Dtype),
    /// Whole numbers of 64 bits.
    Long(Dtype),
    Float,
    Double,
    /// Floating point numbers of 16 bits, stored as two bytes.
    Half,
    Text,
    Bytes,
    /// Bytes, always as many.
    FixedBytes,
}

impl Kind {
    /// Type of a number; of text and bytes, their bytes'.
    pub(super) fn dtype(self) -> Dtype {
        match self {
            Kind::Bool => Dtype::Bool,
            Kind::Int(dtype) | Kind::Long(dtype) => dtype,
            Kind::Float => Dtype::Float32,
            Kind::Double => Dtype::Float64,
            Kind::Half => Dtype::Float16,
            Kind::Text | Kind::Bytes | Kind::FixedBytes => Dtype::UInt8,
        }
    }
}

impl Leaf {
    /// What samples are.
    pub(super) fn values(&self) -> Values {
        match self.kind {
            Kind::Text => Values::Text,
            Kind::Bytes | Kind::FixedBytes => Values::Bytes,
            number if self.is_list => Values::Ragged(number.dtype()),
            number => Values::Rows(number.dtype()),
        }
    }

    /// Finds the column `name`; the fields of structs have their names behind those of the structs, as
    /// `"box.left"`.
    ///
    /// # Errors
    ///
    /// [`Error::NoColumn`], [`Error::Unfit`].
    pub(super) fn find(schema: &SchemaDescriptor, name: &str, path: &Path) -> Result<Leaf> {
        let below = |descriptor: &ColumnDescPtr| {
            let path = descriptor.path().string();
            let rest = path.strip_prefix(name)?;
            (rest.is_empty() || rest.starts_with('.')).then(|| rest.matches('.').count())
        };
        let columns = schema.columns().iter().enumerate();
        let mut found = columns.filter_map(|(place, column)| Some((place, column, below(column)?)));
        let Some((place, descriptor, depth)) = found.next() else {
            let fields = schema.root_schema().get_fields().iter();
            return Err(Error::NoColumn {
                path: path.to_owned(),
                column: name.to_owned(),
                names: fields
                    .map(|field| field.name())
                    .collect::<Vec<_>>()
                    .join(", "),
            });
        };
        let unfit = |kind: String| Error::Unfit {
            path: path.to_owned(),
            column: name.to_owned(),
            kind,
        };
        let several = found.next().is_some();
        let is_list = descriptor.max_rep_level() == 1;
        let plain = (depth == 0 || (is_list && is_list_of_one(schema, descriptor, depth)))
            && in_structs(schema, descriptor, depth);
        if several || !plain || descriptor.max_rep_level() > 1 {
            return Err(unfit(structure(schema, descriptor, depth, several)));
        }
        let kind = kind(descriptor).map_err(unfit)?;
        let is_number = !matches!(kind, Kind::Text | Kind::Bytes | Kind::FixedBytes);
        if is_list && !is_number {
            return Err(unfit("list of text or bytes".into()));
        }
        Ok(Leaf {
            place,
            kind,
            is_list,
            descriptor: descriptor.clone(),
        })
    }
}

/// The field of the schema `depth` levels above a column of primitive values.
fn above<'a>(
    schema: &'a SchemaDescriptor,
    descriptor: &ColumnDescPtr,
    depth: usize,
) -> Option<&'a Type> {
    let parts = descriptor.path().parts();
    let mut field = schema.root_schema();
    for part in &parts[..parts.len().checked_sub(depth)?] {
        field = field
            .get_fields()
            .iter()
            .find(|field| field.name() == part)?;
    }
    Some(field)
}

/// Whether the field `depth` levels above is a list whose entries are the column's values, by the rules for
/// lists of the format (`LogicalTypes.md`).
fn is_list_of_one(schema: &SchemaDescriptor, descriptor: &ColumnDescPtr, depth: usize) -> bool {
    let Some(list) = above(schema, descriptor, depth) else {
        return false;
    };
    let info = list.get_basic_info();
    let is_marked = match info.logical_type_ref() {
        Some(logical) => logical == &LogicalType::List,
        None => info.converted_type() == ConvertedType::LIST,
    };
    let once = is_repeated(list.get_basic_info()) == Some(false);
    let entries = list
        .get_fields()
        .first()
        .map(|field| field.get_basic_info());
    let is_entry = |info: &BasicTypeInfo| {
        let name = info.name();
        is_repeated(info) == Some(true)
            && (depth == 1 || name != "array" && name != format!("{}_tuple", list.name()))
    };
    is_marked && once && depth <= 2 && entries.is_some_and(is_entry)
}

/// Whether a field comes any number of times; None: a damaged schema does not say.
fn is_repeated(info: &BasicTypeInfo) -> Option<bool> {
    info.has_repetition()
        .then(|| info.repetition() == Repetition::REPEATED)
}

/// Whether the structs that a column is in, up to `depth` levels above it, are marked as nothing else.
fn in_structs(schema: &SchemaDescriptor, descriptor: &ColumnDescPtr, depth: usize) -> bool {
    let above =
        (depth + 1..descriptor.path().parts().len()).map(|up| above(schema, descriptor, up));
    above.flatten().all(|field| {
        let info = field.get_basic_info();
        info.logical_type_ref().is_none() && info.converted_type() == ConvertedType::NONE
    })
}

fn structure(
    schema: &SchemaDescriptor,
    descriptor: &ColumnDescPtr,
    depth: usize,
    several: bool,
) -> String {
    let field = above(schema, descriptor, depth).map(Type::get_basic_info);
    let is_list = field.is_some_and(|info| info.converted_type() == ConvertedType::LIST);
    let word = match (is_list, several) {
        (true, true) => "list of structs",
        (true, false) => "list of lists",
        (false, _) => "struct or map",
    };
    word.into()
}

/// What the values of a column are, or what they are called that samples cannot be.
fn kind(descriptor: &ColumnDescPtr) -> std::result::Result<Kind, String> {
    let physical = descriptor.physical_type();
    let (logical, converted) = (descriptor.logical_type_ref(), descriptor.converted_type());
    let unfit = || match logical {
        Some(logical) => format!("{logical:?}").replace("Type", ""),
        None => format!("{converted:?} {physical:?}"),
    };
    let plain = logical.is_none() && converted == ConvertedType::NONE;
    let whole = match (logical, converted) {
        (Some(LogicalType::Integer(whole)), _) => Some((whole.bit_width, whole.is_signed)),
        (None, ConvertedType::INT_8) => Some((8, true)),
        (None, ConvertedType::INT_16) => Some((16, true)),
        (None, ConvertedType::INT_32) => Some((32, true)),
        (None, ConvertedType::INT_64) => Some((64, true)),
        (None, ConvertedType::UINT_8) => Some((8, false)),
        (None, ConvertedType::UINT_16) => Some((16, false)),
        (None, ConvertedType::UINT_32) => Some((32, false)),
        (None, ConvertedType::UINT_64) => Some((64, false)),
        _ => None,
    };
    let kind = match (physical, whole) {
        (Physical::BOOLEAN, None) if plain => Kind::Bool,
        (Physical::INT32, None) if plain => Kind::Int(Dtype::Int32),
        (Physical::INT32, Some((8, true))) => Kind::Int(Dtype::Int8),
        (Physical::INT32, Some((16, true))) => Kind::Int(Dtype::Int16),
        (Physical::INT32, Some((32, true))) => Kind::Int(Dtype::Int32),
        (Physical::INT32, Some((8, false))) => Kind::Int(Dtype::UInt8),
        (Physical::INT32, Some((16, false))) => Kind::Int(Dtype::UInt16),
        (Physical::INT32, Some((32, false))) => Kind::Int(Dtype::UInt32),
        (Physical::INT64, None) if plain => Kind::Long(Dtype::Int64),
        (Physical::INT64, Some((64, true))) => Kind::Long(Dtype::Int64),
        (Physical::INT64, Some((64, false))) => Kind::Long(Dtype::UInt64),
        (Physical::FLOAT, None) if plain => Kind::Float,
        (Physical::DOUBLE, None) if plain => Kind::Double,
        (Physical::BYTE_ARRAY, None) => match (logical, converted) {
            (Some(LogicalType::String | LogicalType::Json), _)
            | (None, ConvertedType::UTF8 | ConvertedType::JSON) => Kind::Text,
            (Some(LogicalType::Enum | LogicalType::Bson), _)
            | (None, ConvertedType::NONE | ConvertedType::ENUM | ConvertedType::BSON) => {
                Kind::Bytes
            }
            _ => return Err(unfit()),
        },
        (Physical::FIXED_LEN_BYTE_ARRAY, None) if plain => Kind::FixedBytes,
        (Physical::FIXED_LEN_BYTE_ARRAY, None)
            if logical == Some(&LogicalType::Float16) && descriptor.type_length() == 2 =>
        {
            Kind::Half
        }
        _ => return Err(unfit()),
    };
    Ok(kind)
}
