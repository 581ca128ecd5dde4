//! The values of one column: numbers side by side, or the letters of text.

use std::path::Path;

use super::Table as Source;
use crate::column::{Rows, Table, Values};
use crate::error::{Error, Result};
use crate::memory::Dtype;
use crate::memory::fallible::{boxed, reserve, reserve_growing};

/// Letters of a field that an error shows.
const SHOWN: usize = 40;

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Numbers or booleans.
    Number(Dtype),
    /// Whole numbers, some of which are missing: float64, where 0 has no sign.
    WholeOrMissing,
    /// Text.
    Text,
}

impl Type {
    /// That of its numbers; None: it is text.
    fn dtype(self) -> Option<Dtype> {
        match self {
            Type::Number(dtype) => Some(dtype),
            Type::WholeOrMissing => Some(Dtype::Float64),
            Type::Text => None,
        }
    }
}

/// A column in memory.
#[derive(Debug)]
pub enum Stored {
    /// Numbers or booleans.
    Numbers(Rows),
    /// Text.
    Text(Texts),
}

/// The values of one column in one block.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Elements, or letters.
    bytes: Vec<u8>,
    /// Where each text ends.
    ends: Vec<usize>,
    /// Texts that are missing: which, and where they should be in the file.
    missing: Vec<(usize, usize)>,
}

impl Part {
    /// Makes room for a field of `bytes` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`], without a path.
    pub(super) fn reserve(&mut self, bytes: usize, kind: Type) -> Result<()> {
        if let Some(dtype) = kind.dtype() {
            return reserve_growing(&mut self.bytes, dtype.itemsize());
        }
        reserve_growing(&mut self.bytes, bytes)?;
        reserve_growing(&mut self.ends, 1)?;
        reserve_growing(&mut self.missing, 1)
    }

    /// Adds a field, which is at byte `at` of the file; None: missing. An error is the reason.
    pub(super) fn add(
        &mut self,
        field: Option<&[u8]>,
        kind: Type,
        at: usize,
    ) -> std::result::Result<(), String> {
        let Some(dtype) = kind.dtype() else {
            if field.is_none() {
                self.missing.push((self.ends.len(), at));
            }
            self.bytes.extend_from_slice(field.unwrap_or_default());
            self.ends.push(self.bytes.len());
            return Ok(());
        };
        let added = match kind {
            Type::WholeOrMissing => self.whole(field),
            _ => self.number(field, dtype),
        };
        added.ok_or_else(|| {
            let name = dtype.name();
            let Some(field) = field else {
                return format!(
                    "missing, where {name} is expected; give dtype=torch.float64, or fill it in"
                );
            };
            let shown: String = String::from_utf8_lossy(field).chars().take(SHOWN).collect();
            format!("{shown:?}, where {name} is expected; give another dtype, or mend the line")
        })
    }

    fn whole(&mut self, field: Option<&[u8]>) -> Option<()> {
        let number = match field {
            Some(field) => trimmed(field)?.parse::<i64>().ok()? as f64,
            None => f64::NAN,
        };
        self.bytes.extend_from_slice(&number.to_ne_bytes());
        Some(())
    }

    fn number(&mut self, field: Option<&[u8]>, dtype: Dtype) -> Option<()> {
        macro_rules! int {
            ($kind:ty) => {{
                let number = trimmed(field?)?.parse::<$kind>().ok()?;
                self.bytes.extend_from_slice(&number.to_ne_bytes());
            }};
        }
        match dtype {
            Dtype::Bool => self.bytes.push(bool_of(field?)?.into()),
            Dtype::UInt8 => int!(u8),
            Dtype::Int8 => int!(i8),
            Dtype::Int16 => int!(i16),
            Dtype::Int32 => int!(i32),
            Dtype::Int64 => int!(i64),
            Dtype::UInt64 => int!(u64),
            Dtype::Float32 => {
                let number = field.map_or(Some(f64::NAN), float_of)? as f32;
                self.bytes.extend_from_slice(&number.to_ne_bytes());
            }
            Dtype::Float64 => {
                let number = field.map_or(Some(f64::NAN), float_of)?;
                self.bytes.extend_from_slice(&number.to_ne_bytes());
            }
            _ => return None,
        }
        Some(())
    }
}

impl Stored {
    /// Puts the parts of a column together.
    ///
    /// # Errors
    ///
    /// [`Error::Memory`].
    pub(super) fn join(
        parts: Vec<Part>,
        kind: Type,
        name: &str,
        source: &Source,
    ) -> Result<Stored> {
        let joined = Stored::joined(parts, kind, name, source);
        joined.map_err(|error| error.of_file(&source.path))
    }

    fn joined(parts: Vec<Part>, kind: Type, name: &str, source: &Source) -> Result<Stored> {
        let (mut bytes, mut ends, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        reserve(&mut bytes, parts.iter().map(|part| part.bytes.len()).sum())?;
        reserve(&mut ends, parts.iter().map(|part| part.ends.len()).sum())?;
        reserve(
            &mut missing,
            parts.iter().map(|part| part.missing.len()).sum(),
        )?;
        let mut texts = Texts {
            path: source.path.clone(),
            name: name.into(),
            letters: Box::default(),
            ends,
            missing,
        };
        let (mut line, mut seen) = (1, 0);
        for part in parts {
            for (place, at) in part.missing {
                (line, seen) = (line + source.line(seen, at), at);
                texts.missing.push((texts.ends.len() + place, line));
            }
            let start = bytes.len();
            bytes.extend_from_slice(&part.bytes);
            texts.ends.extend(part.ends.iter().map(|end| start + end));
        }
        if let Some(dtype) = kind.dtype() {
            return Ok(Stored::Numbers(Rows::packed(bytes, dtype)));
        }
        texts.letters = bytes.into();
        Ok(Stored::Text(texts))
    }
}

/// Texts of one column, some of which may be missing.
#[derive(Debug)]
pub struct Texts {
    path: Box<Path>,
    name: Box<str>,
    letters: Box<[u8]>,
    /// Where each text ends.
    ends: Vec<usize>,
    /// Which are missing, and in which lines; rising.
    missing: Vec<(usize, u64)>,
}

impl Table for Texts {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn values(&self) -> Values {
        Values::Text
    }

    fn bytes(&self, index: usize) -> Result<Box<[u8]>> {
        if let Ok(place) = self.missing.binary_search_by_key(&index, |(row, _)| *row) {
            let (line, name) = (self.missing[place].1, &self.name);
            return Err(Error::Decode {
                path: self.path.to_path_buf(),
                reason: format!(
                    "line {line}, column {name:?}: missing, where text is expected; fill it in, or give \
                     missing=() to read every field as it is"
                ),
            });
        }
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        boxed(&self.letters[start..self.ends[index]]).map_err(|error| error.of_file(&self.path))
    }
}

/// A field without the space around it, if it is ASCII.
pub(super) fn trimmed(field: &[u8]) -> Option<&str> {
    let space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let first = field.iter().position(|byte| !space(byte))?;
    let last = field.iter().rposition(|byte| !space(byte))?;
    let inner = &field[first..=last];
    std::str::from_utf8(inner).ok().filter(|_| inner.is_ascii())
}

/// Reads a floating point number; names of NaN are text to pandas, if they are not missing.
pub(super) fn float_of(field: &[u8]) -> Option<f64> {
    let number: f64 = trimmed(field)?.parse().ok()?;
    (!number.is_nan()).then_some(number)
}

/// Reads a boolean, as pandas does.
pub(super) fn bool_of(field: &[u8]) -> Option<bool> {
    match field {
        _ if field.eq_ignore_ascii_case(b"true") => Some(true),
        _ if field.eq_ignore_ascii_case(b"false") => Some(false),
        _ => None,
    }
}
