//! The names of columns, from the first row.

use std::collections::HashSet;

use super::reader::{Dialect, Reader};
use super::{Checked, Flaw};

/// Reads the fields of the first row; returns also where the next begins.
pub(super) fn read(bytes: &[u8], start: usize, dialect: &Dialect) -> Checked<(Vec<String>, usize)> {
    let mut reader = Reader::new(bytes, start..bytes.len(), dialect);
    if !reader.row() {
        return Flaw::new(reader.at(), "no row at all, so that there are no columns");
    }
    let (mut names, mut scratch) = (Vec::new(), Vec::new());
    loop {
        let at = reader.at();
        let (field, is_last) = reader.field(&mut scratch)?;
        let Ok(name) = std::str::from_utf8(field) else {
            return Flaw::new(at, "bytes that are no UTF-8");
        };
        names.push(name.to_owned());
        if is_last {
            return Ok((names, reader.at()));
        }
    }
}

/// Renames columns as pandas does: without a name, and with that of an earlier one.
pub(super) fn distinct(names: Vec<String>) -> Vec<String> {
    let named = names.into_iter().enumerate().map(|(place, name)| {
        if name.is_empty() {
            format!("Unnamed: {place}")
        } else {
            name
        }
    });
    let names: Vec<String> = named.collect();
    let all: HashSet<String> = names.iter().cloned().collect();
    let mut used = HashSet::new();
    let each = names.into_iter().map(|name| {
        let mut free = name.clone();
        let mut number = 0;
        while used.contains(&free) || number > 0 && all.contains(&free) {
            number += 1;
            free = format!("{name}.{number}");
        }
        used.insert(free.clone());
        free
    });
    each.collect()
}
