//! The lines that a thread parsed last, for several fields of each.
//!
//! Samples are made field by field: the first field parses all lines of a list and caches the values of the
//! others here. Each field is returned once; values beyond the limit are parsed again.

use std::cell::RefCell;
use std::ops::Range;

use super::{FOUND, Jsonl, Made};
use crate::error::Result;
use crate::format::json::Value;

/// Maximum bytes of values that a thread keeps.
const MOST_BYTES: usize = 4 << 20;

thread_local! {
    static RECENT: RefCell<Recent> = RefCell::default();
}

#[derive(Default)]
struct Recent {
    /// Identifies the lines; 0 if there are none.
    owner: usize,
    /// The indices of the lines.
    indices: Vec<usize>,
    /// Concatenated values.
    values: Vec<u8>,
    /// Ranges of the fields' values in each cached line; these are the first of the list.
    places: Vec<Option<Range<usize>>>,
    /// The fields that were returned.
    given: Vec<bool>,
}

impl Recent {
    /// Returns true if a field of a list is cached; otherwise clears the cache.
    fn holds(&mut self, source: &Jsonl, indices: &[usize], field: usize) -> bool {
        if self.owner == source.id && self.indices == indices && !self.given[field] {
            return true;
        }
        self.clear();
        false
    }

    fn clear(&mut self) {
        self.owner = 0;
        self.indices.clear();
        self.values.clear();
        self.places.clear();
        self.given.clear();
    }

    /// Copies the values found in the line at `position`, except that of the field `given`.
    fn keep(&mut self, position: usize, line: &[u8], found: &[Option<Range<usize>>], given: usize) {
        let bytes = found.iter().flatten().map(Range::len).sum::<usize>();
        if self.lines(found.len()) < position || self.values.len() + bytes > MOST_BYTES {
            return;
        }
        for (field, place) in found.iter().enumerate() {
            let place = place.as_ref().filter(|_| field != given);
            let start = self.values.len();
            let kept = place.map(|place| {
                self.values.extend_from_slice(&line[place.clone()]);
                start..self.values.len()
            });
            self.places.push(kept);
        }
    }

    /// Returns how many lines of the list are cached.
    fn lines(&self, fields: usize) -> usize {
        self.places.len() / fields
    }

    fn value(&self, position: usize, fields: usize, field: usize) -> Option<Value<'_>> {
        let place = self.places[position * fields + field].clone();
        place.map(|place| Value::of(&self.values[place]))
    }

    /// Notes that a field of a list was returned.
    fn give(&mut self, source: &Jsonl, indices: &[usize], field: usize) {
        if self.owner == 0 {
            self.owner = source.id;
            self.indices.extend_from_slice(indices);
            self.given.resize(source.fields.len(), false);
        }
        self.given[field] = true;
        if self.given.iter().all(|given| *given) {
            self.clear();
        }
    }
}

/// Calls `make` with the value of a field of each line, as [`Jsonl::each`] does.
pub(super) fn each(
    source: &Jsonl,
    indices: &[usize],
    field: usize,
    make: &mut dyn FnMut(usize, Option<Value<'_>>) -> Made,
) -> Result<()> {
    RECENT.with_borrow_mut(|recent| {
        let holds = recent.holds(source, indices, field);
        let fields = source.fields.len();
        let kept = if holds { recent.lines(fields) } else { 0 };
        let mut reader = source.lines.reader();
        for (position, &index) in indices.iter().enumerate() {
            let made = if position < kept {
                reader.check(index).map(|()| {
                    let value = recent.value(position, fields, field);
                    Ok(make(position, value))
                })
            } else {
                reader.with(index, |line| {
                    let made = source.pick(line, field, |value| make(position, value))?;
                    if !holds {
                        FOUND.with_borrow(|found| recent.keep(position, line, found, field));
                    }
                    Ok(made)
                })
            };
            let made = made.and_then(|made| source.with_context(index, field, made));
            made.map_err(|error| error.at(position))?;
        }
        recent.give(source, indices, field);
        Ok(())
    })
}
