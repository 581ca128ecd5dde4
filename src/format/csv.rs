//! Tables as text, `.csv`: parsed once, into memory, by the threads of the pool.
//!
//! Owns the columns that were asked for; the file is not needed afterwards. Types are found over the whole
//! column as pandas finds them, unless they are given. Refuses rows with more fields than the header has,
//! and text that is no UTF-8. Invariant: a number is the one that `pandas.read_csv` with
//! `float_precision="round_trip"` has, bit for bit.

mod classes;
mod column;
mod header;
mod reader;

use std::ops::Range;
use std::path::Path;

pub use column::{Stored, Type};
pub use reader::Dialect;

use crate::column::{Blobs, Paths};
use crate::error::{Error, Result};
use crate::scan::scan;
use crate::sync::Arc;
use classes::Classes;
use column::Part;
use reader::Reader;

/// As many bytes are parsed at once, at least and at most.
const BLOCK: Range<usize> = 64 << 10..4 << 20;
/// Blocks that a file is divided into, if they are as large as that.
const BLOCKS: usize = 512;
/// What a file may begin with.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Some columns of one file.
#[derive(Debug)]
pub struct Csv {
    names: Vec<String>,
    columns: Vec<Stored>,
}

/// What a column is to be; None: what it has.
type Wanted<'a> = &'a dyn Fn(&str) -> Option<Type>;

/// The file, and what is wanted of it.
#[derive(Debug)]
struct Table {
    path: Box<Path>,
    bytes: Vec<u8>,
    dialect: Dialect,
    /// Names of all columns.
    names: Vec<String>,
    /// Which of them are wanted, in the order of the file.
    chosen: Vec<usize>,
}

impl Csv {
    /// Reads a file. `columns` are the names of those that are wanted; None: all.
    ///
    /// # Errors
    ///
    /// [`Error::Read`]: the file cannot be read. [`Error::Decode`]: it is no such table, or a value is not
    /// of the type that its column is to have. [`Error::NoColumn`]. Those of [`scan`].
    pub fn open(
        path: &str,
        dialect: Dialect,
        has_header: bool,
        columns: Option<&[String]>,
        wanted: Wanted<'_>,
        tick: &mut dyn FnMut(usize, usize) -> Result<()>,
    ) -> Result<Csv> {
        let blobs = Blobs::new(Paths::from_iter([path]));
        let mut table = Table {
            path: Path::new(path).into(),
            bytes: blobs.fetch(0, Blobs::ALL)?,
            dialect,
            names: Vec::new(),
            chosen: Vec::new(),
        };
        let start = table.begin(has_header)?;
        table.choose(columns)?;
        let table = Arc::new(table);
        let blocks: Arc<[Range<usize>]> = table.blocks(start)?.into();
        let total = 2 * blocks.len();
        let types = table.types(&blocks, wanted, &mut |done| tick(done, total))?;
        let parsed = blocks.len();
        let columns = table.columns(&blocks, types, &mut |done| tick(parsed + done, total))?;
        let names = table.chosen.iter().map(|&place| table.names[place].clone());
        Ok(Csv {
            names: names.collect(),
            columns,
        })
    }

    /// The columns that were wanted and their names, in the order of the file.
    pub fn into_parts(self) -> (Vec<String>, Vec<Stored>) {
        (self.names, self.columns)
    }
}

/// What is wrong at one byte of the file.
#[derive(Debug)]
struct Flaw {
    at: usize,
    /// The column, if it is one's.
    column: Option<usize>,
    reason: String,
    /// There is no memory for what is there: that is no flaw of the file.
    memory: Option<Box<Error>>,
}

impl From<Error> for Flaw {
    fn from(error: Error) -> Flaw {
        Flaw {
            at: 0,
            column: None,
            reason: String::new(),
            memory: Some(Box::new(error)),
        }
    }
}

impl Flaw {
    fn new<T>(at: usize, reason: impl Into<String>) -> std::result::Result<T, Flaw> {
        Err(Flaw {
            at,
            column: None,
            reason: reason.into(),
            memory: None,
        })
    }
}

type Checked<T> = std::result::Result<T, Flaw>;

impl Table {
    /// Reads the names of the columns; returns where rows begin.
    fn begin(&mut self, has_header: bool) -> Result<usize> {
        let start = if self.bytes.starts_with(MARK) {
            MARK.len()
        } else {
            0
        };
        let found = header::read(&self.bytes, start, &self.dialect);
        let (names, after) = self.located(found)?;
        if has_header {
            self.names = header::distinct(names);
            return Ok(after);
        }
        self.names = (0..names.len()).map(|place| place.to_string()).collect();
        Ok(start)
    }

    fn choose(&mut self, columns: Option<&[String]>) -> Result<()> {
        let Some(columns) = columns else {
            self.chosen = (0..self.names.len()).collect();
            return Ok(());
        };
        for name in columns {
            let Some(place) = self.names.iter().position(|known| known == name) else {
                return Err(Error::NoColumn {
                    path: self.path.to_path_buf(),
                    column: name.clone(),
                    names: self.names.join(", "),
                });
            };
            self.chosen.push(place);
        }
        self.chosen.sort_unstable();
        self.chosen.dedup();
        Ok(())
    }

    /// Divides the rows from `start` on: blocks end where rows do.
    fn blocks(&self, start: usize) -> Result<Vec<Range<usize>>> {
        let size = (self.bytes.len() / BLOCKS).clamp(BLOCK.start, BLOCK.end);
        let rest = &self.bytes[start..];
        let quoted = self
            .dialect
            .quote
            .is_some_and(|quote| memchr::memchr(quote, rest).is_some());
        let (mut blocks, mut first, mut at) = (Vec::new(), start, start);
        let mut reader = Reader::new(&self.bytes, start..self.bytes.len(), &self.dialect);
        while at < self.bytes.len() {
            if quoted {
                // A quoted field can hold ends of lines, so that only whoever reads from the start knows.
                let passed = reader.pass_row();
                self.located(passed)?;
                at = reader.at();
                if at < self.bytes.len() && at - first < size {
                    continue;
                }
            } else {
                let soon = self.bytes.len().min(first + size);
                let end = memchr::memchr(b'\n', &self.bytes[soon..]);
                at = end.map_or(self.bytes.len(), |end| soon + end + 1);
            }
            blocks.push(first..at);
            first = at;
        }
        Ok(blocks)
    }

    /// Finds the types of the columns, but for those that are said.
    fn types(
        self: &Arc<Self>,
        blocks: &Arc<[Range<usize>]>,
        wanted: Wanted<'_>,
        tick: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Arc<[Type]>> {
        let (all, places) = (self.clone(), blocks.clone());
        let classify = move |number: usize| all.classify(places[number].clone());
        let mut classes = vec![Classes::default(); self.chosen.len()];
        for seen in scan(blocks.len(), classify, tick)? {
            for (class, seen) in classes.iter_mut().zip(self.located(seen)?) {
                *class = class.then(seen);
            }
        }
        let types = self.chosen.iter().zip(classes).map(|(&place, classes)| {
            wanted(&self.names[place]).unwrap_or_else(|| classes.resolve())
        });
        Ok(types.collect())
    }

    /// Parses the columns.
    fn columns(
        self: &Arc<Self>,
        blocks: &Arc<[Range<usize>]>,
        types: Arc<[Type]>,
        tick: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Vec<Stored>> {
        let (all, places, kinds) = (self.clone(), blocks.clone(), types.clone());
        let parse = move |number: usize| all.parse(places[number].clone(), &kinds);
        let mut parts: Vec<Vec<Part>> = types.iter().map(|_| Vec::new()).collect();
        for parsed in scan(blocks.len(), parse, tick)? {
            for (parts, part) in parts.iter_mut().zip(self.located(parsed)?) {
                parts.push(part);
            }
        }
        let columns = parts.into_iter().zip(&*types).zip(&self.chosen);
        let columns = columns
            .map(|((parts, kind), &place)| Stored::join(parts, *kind, &self.names[place], self));
        columns.collect()
    }

    /// Calls `see` with the position in a row, the place in the file and the bytes of each field that is
    /// wanted; None: the row is shorter.
    fn rows(
        &self,
        block: Range<usize>,
        mut see: impl FnMut(usize, usize, Option<&[u8]>) -> Checked<()>,
    ) -> Checked<()> {
        if let Err(error) = std::str::from_utf8(&self.bytes[block.clone()]) {
            return Flaw::new(block.start + error.valid_up_to(), "bytes that are no UTF-8");
        }
        let mut reader = Reader::new(&self.bytes, block, &self.dialect);
        let mut scratch = Vec::new();
        while reader.row() {
            let begun = reader.at();
            let (mut place, mut wanted) = (0, 0);
            loop {
                let at = reader.at();
                let (field, is_last) = reader.field(&mut scratch)?;
                if self.chosen.get(wanted) == Some(&place) {
                    see(wanted, at, Some(field))?;
                    wanted += 1;
                }
                place += 1;
                if is_last {
                    break;
                }
            }
            let all = self.names.len();
            if place > all {
                return Flaw::new(
                    begun,
                    format!("{place} fields, where the first row has {all}"),
                );
            }
            for wanted in wanted..self.chosen.len() {
                see(wanted, begun, None)?;
            }
        }
        Ok(())
    }

    fn classify(&self, block: Range<usize>) -> Checked<Vec<Classes>> {
        let mut classes = vec![Classes::default(); self.chosen.len()];
        self.rows(block, |wanted, _, field| {
            classes[wanted] = classes[wanted].then(Classes::of(field, &self.dialect));
            Ok(())
        })?;
        Ok(classes)
    }

    fn parse(&self, block: Range<usize>, types: &[Type]) -> Checked<Vec<Part>> {
        let mut parts: Vec<Part> = types.iter().map(|_| Part::default()).collect();
        self.rows(block, |wanted, at, field| {
            let field = field.filter(|field| !self.dialect.is_missing(field));
            parts[wanted].reserve(field.map_or(0, <[u8]>::len), types[wanted])?;
            let added = parts[wanted].add(field, types[wanted], at);
            added.map_err(|reason| Flaw {
                at,
                column: Some(self.chosen[wanted]),
                reason,
                memory: None,
            })
        })?;
        Ok(parts)
    }

    /// Says in which line of the file a flaw is.
    fn located<T>(&self, found: Checked<T>) -> Result<T> {
        found.map_err(|flaw| {
            let Flaw {
                at,
                column,
                reason,
                memory,
            } = flaw;
            if let Some(error) = memory {
                return error.of_file(&self.path);
            }
            let line = self.line(0, at) + 1;
            let name = column.map_or(String::new(), |place| {
                format!(", column {:?}", self.names[place])
            });
            Error::Decode {
                path: self.path.to_path_buf(),
                reason: format!("line {line}{name}: {reason}"),
            }
        })
    }

    /// Counts the ends of lines from one byte to another: `\n`, `\r\n` and `\r`.
    fn line(&self, from: usize, to: usize) -> u64 {
        let ends = memchr::memchr2_iter(b'\n', b'\r', &self.bytes[from..to]);
        let ends = ends.filter(|&at| {
            let at = from + at;
            self.bytes[at] == b'\n' || self.bytes.get(at + 1) != Some(&b'\n')
        });
        ends.count() as u64
    }
}
