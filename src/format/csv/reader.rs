//! Rows and fields, as pandas' C parser divides them.
//!
//! Rows end with `\n`, `\r\n` or `\r`; lines of nothing but spaces and tabs are none. A field that begins
//! with a quote ends with the next single one; two of them are one quote. What is behind it up to the
//! delimiter is added as it is, and so is a quote within a field that does not begin with one.

use std::ops::Range;

use super::{Checked, Flaw};
use crate::memory::fallible::reserve_growing;

/// How a table is written.
#[derive(Clone, Debug)]
pub struct Dialect {
    /// Between fields.
    pub delimiter: u8,
    /// Around fields; None: quotes mean nothing.
    pub quote: Option<u8>,
    /// Fields that stand for no value.
    pub missing: std::sync::Arc<[Box<[u8]>]>,
}

impl Dialect {
    /// Whether a field stands for no value.
    pub(super) fn is_missing(&self, field: &[u8]) -> bool {
        self.missing.iter().any(|missing| **missing == *field)
    }
}

/// Reads rows from a part of a file that begins where a row does.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    delimiter: u8,
    quote: Option<u8>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], part: Range<usize>, dialect: &Dialect) -> Reader<'a> {
        Reader {
            bytes: &bytes[..part.end],
            at: part.start,
            delimiter: dialect.delimiter,
            quote: dialect.quote,
        }
    }

    /// The next byte.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Goes to the next row; false: there is none.
    pub(super) fn row(&mut self) -> bool {
        loop {
            let mut end = self.at;
            while let Some(b' ' | b'\t') = self.bytes.get(end)
                && self.bytes[end] != self.delimiter
            {
                end += 1;
            }
            match self.bytes.get(end) {
                Some(b'\n' | b'\r') => self.at = end + 1,
                Some(_) => return true,
                None => {
                    self.at = end;
                    return false;
                }
            }
        }
    }

    /// Reads the next field of a row; tells whether it is the last. Quoted ones may be made in `scratch`.
    pub(super) fn field<'s>(&mut self, scratch: &'s mut Vec<u8>) -> Checked<(&'s [u8], bool)>
    where
        'a: 's,
    {
        let start = self.at;
        if self.quote.is_none() || self.bytes.get(start).copied() != self.quote {
            self.at = self.end(start);
            let field = &self.bytes[start..self.at];
            return Ok((field, self.pass()));
        }
        let close = self.close(start)?;
        self.at = self.end(close);
        let inner = start + 1..close - 1;
        let quote = self.bytes[start];
        let is_plain =
            self.at == close && memchr::memchr(quote, &self.bytes[inner.clone()]).is_none();
        if is_plain {
            return Ok((&self.bytes[inner], self.pass()));
        }
        scratch.clear();
        reserve_growing(scratch, self.at - start)?;
        let mut is_second = false;
        for &byte in &self.bytes[inner] {
            is_second = byte == quote && !is_second;
            if !is_second {
                scratch.push(byte);
            }
        }
        scratch.extend_from_slice(&self.bytes[close..self.at]);
        Ok((scratch, self.pass()))
    }

    /// Passes a row, or what is left of the part.
    pub(super) fn pass_row(&mut self) -> Checked<()> {
        if !self.row() {
            return Ok(());
        }
        loop {
            let start = self.at;
            let is_quoted = self.quote.is_some() && self.bytes.get(start).copied() == self.quote;
            let from = if is_quoted { self.close(start)? } else { start };
            self.at = self.end(from);
            if self.pass() {
                return Ok(());
            }
        }
    }

    /// Finds the byte behind the quote that closes the field at `start`.
    fn close(&self, start: usize) -> Checked<usize> {
        let (quote, mut at) = (self.bytes[start], start + 1);
        loop {
            let Some(found) = memchr::memchr(quote, &self.bytes[at..]) else {
                return Flaw::new(
                    start,
                    "a quoted field that does not end; is a quote missing?",
                );
            };
            at += found + 1;
            if self.bytes.get(at) != Some(&quote) {
                return Ok(at);
            }
            at += 1;
        }
    }

    /// Finds the end of the field that `from` is in, outside of quotes.
    fn end(&self, from: usize) -> usize {
        let ends = |&byte: &u8| byte == self.delimiter || byte == b'\n' || byte == b'\r';
        let found = self.bytes[from..].iter().position(ends);
        found.map_or(self.bytes.len(), |found| from + found)
    }

    /// Passes what is behind a field; tells whether it was the last of its row.
    fn pass(&mut self) -> bool {
        let found = self.bytes.get(self.at).copied();
        let after = self.bytes.get(self.at + 1);
        self.at += match found {
            None => 0,
            Some(b'\r') if self.delimiter != b'\r' && after == Some(&b'\n') => 2,
            Some(_) => 1,
        };
        found != Some(self.delimiter)
    }
}
