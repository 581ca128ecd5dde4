//! The lines that a thread parsed last, for several fields of each.
//!
//! A batch is made field by field: the first parses a line and leaves the values of the others here. What
//! is not asked for is dropped when there is too much of it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use super::{FOUND, Jsonl};
use crate::error::Result;
use crate::format::json::{Flaw, Value};

/// Bytes of values that a thread keeps.
const MOST_BYTES: usize = 4 << 20;
/// What a line costs beyond its values.
const LINE_BYTES: usize = 128;

thread_local! {
    static RECENT: RefCell<Recent> = RefCell::default();
}

#[derive(Default)]
struct Recent {
    /// Whose lines they are; 0 if there were none yet.
    owner: usize,
    lines: HashMap<usize, Line>,
    bytes: usize,
}

/// The values of one line that were not asked for yet.
struct Line {
    values: Box<[u8]>,
    /// Of each field.
    places: Box<[Place]>,
    /// How many fields were not asked for.
    left: usize,
}

/// Where the value of a field is.
enum Place {
    /// In the values.
    Here(Range<usize>),
    /// Nowhere: the line has no such field.
    Missing,
    /// It was asked for; whoever asks again has the line parsed again.
    Taken,
}

impl Line {
    /// Copies the values that were found in a line, but for that of a field.
    fn copy(bytes: &[u8], found: &[Option<Range<usize>>], taken: usize) -> Line {
        let mut values = Vec::new();
        let places = found.iter().enumerate().map(|(field, place)| match place {
            _ if field == taken => Place::Taken,
            None => Place::Missing,
            Some(place) => {
                let start = values.len();
                values.extend_from_slice(&bytes[place.clone()]);
                Place::Here(start..values.len())
            }
        });
        let places = places.collect();
        Line {
            places,
            left: found.len() - 1,
            values: values.into(),
        }
    }

    /// Returns where the value of a field is, once.
    fn take(&mut self, field: usize) -> Place {
        let place = std::mem::replace(&mut self.places[field], Place::Taken);
        self.left -= usize::from(!matches!(place, Place::Taken));
        place
    }
}

impl Recent {
    fn clear(&mut self) {
        self.lines.clear();
        self.bytes = 0;
    }

    fn keep(&mut self, index: usize, line: Line) {
        let cost = line.values.len() + LINE_BYTES;
        if cost > MOST_BYTES {
            return;
        }
        if self.bytes + cost > MOST_BYTES {
            self.clear();
        }
        self.bytes += cost;
        if let Some(before) = self.lines.insert(index, line) {
            self.bytes -= before.values.len() + LINE_BYTES;
        }
    }
}

/// Calls `make` with the value of a field of a line, as [`Jsonl::value`] does.
pub(super) fn value<T>(
    source: &Jsonl,
    index: usize,
    field: usize,
    make: impl FnOnce(Option<Value<'_>>) -> T,
) -> Result<std::result::Result<T, Flaw>> {
    RECENT.with_borrow_mut(|recent| {
        if recent.owner != source.id {
            recent.clear();
            recent.owner = source.id;
        }
        if let Some(line) = recent.lines.get_mut(&index) {
            let value = match line.take(field) {
                Place::Here(place) => Some(Some(Value::of(&line.values[place]))),
                Place::Missing => Some(None),
                Place::Taken => None,
            };
            if let Some(value) = value {
                source.lines.check(index)?;
                let made = make(value);
                if line.left == 0 {
                    recent.bytes -= line.values.len() + LINE_BYTES;
                    recent.lines.remove(&index);
                }
                return Ok(Ok(made));
            }
        }
        let parsed = source.lines.with(index, |bytes| {
            let made = source.pick(bytes, field, make)?;
            Ok((
                made,
                FOUND.with_borrow(|found| Line::copy(bytes, found, field)),
            ))
        })?;
        Ok(parsed.map(|(made, line)| {
            recent.keep(index, line);
            made
        }))
    })
}
