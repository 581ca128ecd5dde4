//! Fields of JSON lines; each line is parsed once for all of its requested fields.
//!
//! Owns the fields and their element types; [`Lines`](crate::column::Lines) owns the lines,
//! [`json`](super::json) the grammar. Invariant: a value is the one that `json.loads` returns for the line, or an
//! error that names the file, the line and the field.

mod lists;
mod recent;

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use lists::JsonLists;

use super::json::{Fields, Flaw, Value};
use crate::column::{Column, Layout, Lines, Scratch};
use crate::error::{Error, Result};
use crate::memory::Dtype;
use crate::sync::Arc;

/// Number of first lines that decide the type of a field.
const FIRST_LINES: usize = 100;
/// Characters of a value that an error shows.
const SHOWN: usize = 40;

thread_local! {
    static FOUND: RefCell<Vec<Option<std::ops::Range<usize>>>> = const { RefCell::new(Vec::new()) };
}

/// A converted value, or the reason why it cannot be converted.
type Made = std::result::Result<(), String>;

/// The element type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Numbers or booleans.
    Number(Dtype),
    /// Text.
    Text,
    /// Lists of numbers or booleans.
    List(Dtype),
}

/// Some fields of lines.
#[derive(Debug)]
pub struct Jsonl {
    /// Unique.
    id: usize,
    lines: Arc<Lines>,
    fields: Fields,
    /// The names of the fields in errors.
    names: Vec<String>,
}

impl Jsonl {
    /// Makes the fields of some lines, each given by its path of keys.
    pub fn new(lines: Arc<Lines>, paths: &[Vec<String>]) -> Jsonl {
        static IDS: AtomicUsize = AtomicUsize::new(1);
        let names = paths.iter().map(|path| path.join("."));
        Jsonl {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            fields: Fields::new(paths),
            names: names.collect(),
            lines,
        }
    }

    /// Returns the lines.
    pub fn lines(&self) -> &Arc<Lines> {
        &self.lines
    }

    /// Returns the element type of a field: that of `dtype` or text if given, otherwise that of the first lines.
    /// Integers among floats are floats.
    ///
    /// # Errors
    ///
    /// [`Error::Decode`]: the first lines have no value, or one that no column can hold.
    pub fn element(&self, field: usize, wanted: Option<Element>) -> Result<Element> {
        let mut found = None;
        let mut failed = None;
        let mut reader = self.lines.reader();
        for index in 0..self.lines.len().min(FIRST_LINES) {
            let seen = reader.with(index, |line| {
                self.pick(line, field, |value| {
                    value.map_or(Ok(None), |value| seen(value, wanted))
                })
            });
            let seen = seen.and_then(|seen| self.with_context(index, field, seen));
            match (seen, found) {
                (Err(error), _) => {
                    failed.get_or_insert(error);
                }
                (Ok(None), _) => {}
                (Ok(seen), None) => found = seen,
                (Ok(Some(seen)), Some(before)) => found = Some(joined(before, seen)),
            }
        }
        match (wanted, found, failed) {
            (Some(Element::Number(dtype)), Some(Element::List(_)), _) => Ok(Element::List(dtype)),
            (Some(wanted), ..) => Ok(wanted),
            (None, Some(found), _) => Ok(found),
            (None, None, Some(error)) => Err(error),
            (None, None, None) if self.lines.len() == 0 => Ok(Element::Text), // never read
            (None, None, None) => {
                let reason = "missing, null or an empty list in the first lines, which are to tell what \
                              it is; give dtype";
                self.refuse(0, Some(field), reason)
            }
        }
    }

    /// Calls `make` with the position of each line at `indices`, which must be below the number of lines, and the
    /// value of a field; None if it is missing. The error of `make` is the reason.
    ///
    /// # Errors
    ///
    /// With the position: [`Error::Decode`]: the line is not JSON, or `make` fails. Those of
    /// [`Reader::with`](crate::column::Reader::with).
    fn each(
        &self,
        indices: &[usize],
        field: usize,
        make: &mut dyn FnMut(usize, Option<Value<'_>>) -> Made,
    ) -> Result<()> {
        if self.fields.len() > 1 {
            return recent::each(self, indices, field, make);
        }
        let mut reader = self.lines.reader();
        for (position, &index) in indices.iter().enumerate() {
            let made = reader.with(index, |line| {
                self.pick(line, field, |value| make(position, value))
            });
            let made = made.and_then(|made| self.with_context(index, field, made));
            made.map_err(|error| error.at(position))?;
        }
        Ok(())
    }

    /// Adds the line at `index`, and the field, to an error.
    fn with_context<T>(
        &self,
        index: usize,
        field: usize,
        made: std::result::Result<std::result::Result<T, String>, Flaw>,
    ) -> Result<T> {
        match made {
            Ok(Ok(made)) => Ok(made),
            Ok(Err(reason)) => self.refuse(index, Some(field), &reason),
            Err(flaw) => self.broken(index, flaw),
        }
    }

    /// Calls `make` with the value of a field of a line.
    fn pick<T>(
        &self,
        line: &[u8],
        field: usize,
        make: impl FnOnce(Option<Value<'_>>) -> T,
    ) -> std::result::Result<T, Flaw> {
        FOUND.with_borrow_mut(|found| {
            self.fields.find(line, found)?;
            let value = found[field].clone().map(|place| Value::of(&line[place]));
            Ok(make(value))
        })
    }

    fn broken<T>(&self, index: usize, flaw: Flaw) -> Result<T> {
        let Flaw { what, at } = flaw;
        let reason =
            format!("not JSON: {what}, at byte {at} of the line; repair the line or drop it");
        self.refuse(index, None, &reason)
    }

    fn refuse<T>(&self, index: usize, field: Option<usize>, reason: &str) -> Result<T> {
        let number = self.lines.number(index)?;
        let field = field
            .map(|field| &self.names[field])
            .filter(|name| !name.is_empty());
        let field = field.map_or(String::new(), |name| format!(", field {name:?}"));
        Err(Error::Decode {
            path: self.lines.path(index).to_owned(),
            reason: format!("line {number}{field}: {reason}"),
        })
    }
}

/// Returns the element type that a value implies for its field; None for null.
fn seen(value: Value<'_>, wanted: Option<Element>) -> std::result::Result<Option<Element>, String> {
    Ok(Some(match value {
        Value::Null => return Ok(None),
        Value::Bool(_) => Element::Number(Dtype::Bool),
        Value::Int(_) => Element::Number(Dtype::Int64),
        Value::Float(_) => Element::Number(Dtype::Float64),
        Value::Text(_) => Element::Text,
        Value::List(_) => {
            let elements = value.elements().ok_or(
                "a list of other things than numbers and booleans, which no column can hold",
            )?;
            let mut found = None;
            for element in elements {
                let Some(Element::Number(dtype)) = seen(element, None)? else {
                    continue;
                };
                found = Some(match found {
                    None => Element::List(dtype),
                    Some(before) => joined(before, Element::List(dtype)),
                });
            }
            return Ok(found.or(match wanted {
                Some(Element::Number(dtype)) => Some(Element::List(dtype)),
                _ => None,
            }));
        }
        Value::Object => return Err("an object; a column is one of its fields".into()),
    }))
}

/// Returns the element type that holds both.
fn joined(first: Element, other: Element) -> Element {
    use Dtype::{Float64, Int64};
    use Element::{List, Number};
    match (first, other) {
        (Number(Int64), Number(Float64)) | (List(Int64), List(Float64)) => other,
        _ => first,
    }
}

/// Returns the reason why a value does not fit a column of `dtype`, or of text.
fn misfit(value: Option<Value<'_>>, dtype: Option<Dtype>) -> String {
    let expected = dtype.map_or("a string", Dtype::name);
    let Some(value) = value else {
        return format!("missing, where {expected} is expected; add it or drop the line");
    };
    let found = match value {
        Value::Int(number) | Value::Float(number) => {
            let shown: String = number.chars().take(SHOWN).collect();
            let cut = if shown.len() < number.len() {
                "…"
            } else {
                ""
            };
            format!("{shown}{cut}")
        }
        other => other.name().to_owned(),
    };
    let advice = match (value, dtype) {
        (Value::Float(_), Some(Dtype::Int64)) => "pass dtype=torch.float64 or repair the line",
        (Value::Int(_), Some(Dtype::Int64)) => {
            "it does not fit; pass dtype=torch.float64 to have it rounded, or repair the line"
        }
        (Value::Int(_) | Value::Float(_), Some(_)) => {
            "pass a dtype that holds it or repair the line"
        }
        (Value::Text(_), None) => "a lone surrogate is not text; repair the line or drop it",
        _ => "repair the line or drop it",
    };
    format!("{found}, where {expected} is expected; {advice}")
}

/// Numbers or text of one field.
#[derive(Debug)]
pub struct JsonColumn {
    source: Arc<Jsonl>,
    field: usize,
    /// None for text.
    dtype: Option<Dtype>,
    layout: Layout,
}

impl JsonColumn {
    /// Makes the column of a field of numbers of `dtype`, or of text.
    pub fn new(source: Arc<Jsonl>, field: usize, dtype: Option<Dtype>) -> JsonColumn {
        JsonColumn {
            source,
            field,
            dtype,
            layout: dtype.map_or_else(Layout::text, |dtype| Layout::rows(dtype, &[])),
        }
    }
}

impl Column for JsonColumn {
    fn len(&self) -> usize {
        self.source.lines.len()
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn gather(&self, indices: &[usize], _: &mut Scratch, out: &mut [u8]) -> Result<()> {
        let Some(dtype) = self.dtype else {
            return Ok(());
        };
        let mut places = out.chunks_exact_mut(dtype.itemsize());
        self.source.each(indices, self.field, &mut |_, value| {
            let written = value
                .zip(places.next())
                .and_then(|(value, place)| value.write(dtype, place));
            written.ok_or_else(|| misfit(value, Some(dtype)))
        })
    }

    fn bytes(&self, indices: &[usize]) -> Result<Vec<Box<[u8]>>> {
        let mut all = Vec::with_capacity(indices.len());
        self.source.each(indices, self.field, &mut |_, value| {
            let text = value.and_then(Value::text);
            let text = text.ok_or_else(|| misfit(value, None))?;
            all.push(text.into_bytes().into_boxed_slice());
            Ok(())
        })?;
        Ok(all)
    }
}
