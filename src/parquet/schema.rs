//! Which column of a file is meant, and what its values are.

use std::path::Path;

use ::parquet::arrow::{
    FieldLevels, ProjectionMask, parquet_to_arrow_field_levels, parquet_to_arrow_schema,
};
use ::parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};
use arrow_schema::{DataType, Fields};

use crate::caught::caught;
use crate::column::Layout;
use crate::error::{Error, Result};
use crate::memory::Dtype;

/// A column of values in one file.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    /// Its number among the file's columns of values.
    pub(super) place: usize,
    /// Its type in Arrow.
    pub(super) kind: DataType,
    /// The layout of its samples.
    pub(super) layout: Layout,
    /// The levels with which the crate reads it.
    pub(super) levels: FieldLevels,
}

impl Leaf {
    /// Finds the column `name`; the fields of structs have their names behind those of the structs, as
    /// `"box.left"`.
    ///
    /// # Errors
    ///
    /// [`Error::NoColumn`]; [`Error::Unfit`]; [`Error::Decode`]: Arrow has no such schema.
    pub(super) fn find(schema: &SchemaDescriptor, name: &str, path: &Path) -> Result<Leaf> {
        let is_below = |column: &ColumnDescPtr| {
            let parts = column.path().parts(); // a name may have dots
            (1..=parts.len()).any(|count| parts[..count].join(".") == name)
        };
        let columns = schema.columns().iter().enumerate();
        let mut found = columns.filter(|(_, column)| is_below(column));
        let Some((place, column)) = found.next() else {
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
        let read = || -> ::parquet::errors::Result<_> {
            let whole = as_views(parquet_to_arrow_schema(schema, None)?.fields());
            let mask = ProjectionMask::leaves(schema, [place]);
            let levels = parquet_to_arrow_field_levels(schema, mask, Some(&whole))?;
            Ok((levels, DataType::Struct(whole)))
        };
        let damaged = |reason: String| Error::decode(reason).of_file(path);
        let (levels, whole) = caught(read)
            .map_err(|words| damaged(format!("its schema is damaged: {words}")))?
            .map_err(|error| damaged(error.to_string()))?;
        let kind = named(&whole, name, column.path().parts());
        let is_one = found.next().is_none();
        match (layout(kind), is_one) {
            (Some(layout), true) => Ok(Leaf {
                place,
                kind: kind.clone(),
                layout,
                levels,
            }),
            (_, is_one) => Err(Error::Unfit {
                path: path.to_owned(),
                column: name.to_owned(),
                kind: if is_one || kind.is_nested() {
                    kind.to_string()
                } else {
                    "several columns".into()
                },
            }),
        }
    }
}

/// Has text and bytes read as views: those of one page or dictionary are in memory once, however often they come.
fn as_views(fields: &Fields) -> Fields {
    let view = |kind: &DataType| match kind {
        DataType::Utf8 => DataType::Utf8View,
        DataType::Binary => DataType::BinaryView,
        DataType::Struct(fields) => DataType::Struct(as_views(fields)),
        other => other.clone(),
    };
    let fields = fields.iter();
    fields
        .map(|field| {
            field
                .as_ref()
                .clone()
                .with_data_type(view(field.data_type()))
        })
        .collect()
}

/// The type of the field `name`, on the way down to the column at `parts`.
fn named<'a>(mut kind: &'a DataType, name: &str, parts: &[String]) -> &'a DataType {
    let mut passed = String::new();
    for part in parts {
        if passed == name {
            break;
        }
        let DataType::Struct(fields) = kind else {
            break;
        };
        if let Some(field) = fields.iter().find(|field| field.name() == part) {
            kind = field.data_type();
        }
        passed += if passed.is_empty() { "" } else { "." };
        passed += part;
    }
    kind
}

/// Returns the layout of samples of a type; None if the type is not supported.
fn layout(kind: &DataType) -> Option<Layout> {
    match kind {
        DataType::List(entry) => number(entry.data_type()).map(|dtype| Layout::ragged(dtype, &[])),
        DataType::Utf8View => Some(Layout::text()),
        DataType::BinaryView | DataType::FixedSizeBinary(_) => Some(Layout::bytes()),
        kind => number(kind).map(|dtype| Layout::rows(dtype, &[])),
    }
}

fn number(kind: &DataType) -> Option<Dtype> {
    Some(match kind {
        DataType::Boolean => Dtype::Bool,
        DataType::Int8 => Dtype::Int8,
        DataType::Int16 => Dtype::Int16,
        DataType::Int32 => Dtype::Int32,
        DataType::Int64 => Dtype::Int64,
        DataType::UInt8 => Dtype::UInt8,
        DataType::UInt16 => Dtype::UInt16,
        DataType::UInt32 => Dtype::UInt32,
        DataType::UInt64 => Dtype::UInt64,
        DataType::Float16 => Dtype::Float16,
        DataType::Float32 => Dtype::Float32,
        DataType::Float64 => Dtype::Float64,
        _ => return None,
    })
}
