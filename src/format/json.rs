//! Finds the values of some fields in JSON, as Python's `json.loads` reads it, in one pass.
//!
//! Every byte is validated, so that whatever Python refuses is refused, but only requested fields are built.
//! Python's extensions of RFC 8259 are supported: `NaN`, `Infinity`, `-Infinity`; the last of duplicate keys
//! counts; integers of more than 4300 digits are refused. Nesting beyond [`DEEPEST`] is refused where Python
//! raises `RecursionError`. There is no recursion: nesting uses heap memory.
//!
//! Not a library, because jiter 0.19 refuses lone surrogates and 200 levels even in fields that it skips, where
//! `json.loads` reads the line, and `serde_json` has no `NaN`.

mod text;
mod value;

use std::ops::Range;

pub use value::Value;

/// Maximum nesting of lists and objects; Python's default recursion limit fails before 1000.
pub const DEEPEST: usize = 900;
/// Maximum digits of an integer; `sys.int_info.default_max_str_digits`.
const MOST_DIGITS: usize = 4300;

/// A syntax error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Its description.
    pub what: &'static str,
    /// Its byte offset.
    pub at: usize,
}

type Checked<T> = std::result::Result<T, Flaw>;

/// The requested fields, as a tree of their keys.
#[derive(Debug)]
pub struct Fields {
    /// The first node is the whole value.
    nodes: Vec<Node>,
    count: usize,
}

#[derive(Debug, Default)]
struct Node {
    keys: Vec<(Box<str>, usize)>,
    /// The fields whose value this node is.
    here: Vec<usize>,
    /// The fields of this node and of its descendants.
    all: Vec<usize>,
}

/// An open list or object.
struct Level {
    is_object: bool,
    start: usize,
    node: Option<usize>,
}

/// The next value of a document, or its end.
enum Next {
    /// A value, with its node if it is requested.
    Value(Option<usize>),
    Nothing,
}

impl Fields {
    /// Makes the tree from the path of keys of each field; an empty path is the whole value.
    pub fn new(paths: &[Vec<String>]) -> Fields {
        let mut nodes = vec![Node::default()];
        for (field, path) in paths.iter().enumerate() {
            let mut node = 0;
            nodes[0].all.push(field);
            for key in path {
                let known = nodes[node].keys.iter().find(|(name, _)| **name == **key);
                let next = known.map_or(nodes.len(), |(_, next)| *next);
                if next == nodes.len() {
                    nodes[node].keys.push((key.as_str().into(), next));
                    nodes.push(Node::default());
                }
                node = next;
                nodes[node].all.push(field);
            }
            nodes[node].here.push(field);
        }
        let count = paths.len();
        Fields { nodes, count }
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns the range in `json` of each field's value; None if it is missing.
    ///
    /// # Errors
    ///
    /// The first syntax error.
    pub fn find(&self, json: &[u8], found: &mut Vec<Option<Range<usize>>>) -> Checked<()> {
        found.clear();
        found.resize(self.count, None);
        if let Err(error) = std::str::from_utf8(json) {
            let (what, at) = ("bytes that are not UTF-8", error.valid_up_to());
            return Err(Flaw { what, at });
        }
        let mut walk = Walk {
            json,
            at: 0,
            levels: Vec::new(),
            fields: self,
            found,
        };
        walk.run()
    }
}

/// The parser of one JSON text.
struct Walk<'a> {
    json: &'a [u8],
    at: usize,
    levels: Vec<Level>,
    fields: &'a Fields,
    found: &'a mut Vec<Option<Range<usize>>>,
}

impl Walk<'_> {
    fn run(&mut self) -> Checked<()> {
        let mut node = Some(0);
        loop {
            if self.value(node)? {
                match self.after()? {
                    Next::Value(wanted) => node = wanted,
                    Next::Nothing => return Ok(()),
                }
            } else {
                let is_object = self.levels.last().is_some_and(|level| level.is_object);
                node = if is_object { self.key()? } else { None };
            }
        }
    }

    /// Parses a scalar, an empty container, or the opening of another one; returns true if the value is
    /// complete.
    fn value(&mut self, node: Option<usize>) -> Checked<bool> {
        self.space();
        let start = self.at;
        match self.peek() {
            Some(open @ (b'{' | b'[')) => {
                let is_object = open == b'{';
                if self.levels.len() == DEEPEST {
                    return self.flaw("lists and objects that are nested too deep");
                }
                self.at += 1;
                self.space();
                if self.peek() != Some(if is_object { b'}' } else { b']' }) {
                    self.levels.push(Level {
                        is_object,
                        start,
                        node,
                    });
                    return Ok(false);
                }
                self.at += 1;
            }
            Some(b'"') => self.at = text::end(self.json, start)?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word(b"true")?,
            Some(b'f') => self.word(b"false")?,
            Some(b'n') => self.word(b"null")?,
            Some(b'N') => self.word(b"NaN")?,
            Some(b'I') => self.word(b"Infinity")?,
            _ => return self.flaw("no value where a value is expected"),
        }
        self.keep(node, start);
        Ok(true)
    }

    /// Parses what follows a value: closing brackets, up to the next value.
    fn after(&mut self) -> Checked<Next> {
        loop {
            self.space();
            let Some(level) = self.levels.last() else {
                return match self.peek() {
                    None => Ok(Next::Nothing),
                    Some(_) => self.flaw("characters after the value"),
                };
            };
            match (self.peek(), level.is_object) {
                (Some(b','), true) => {
                    self.at += 1;
                    return self.key().map(Next::Value);
                }
                (Some(b','), false) => {
                    self.at += 1;
                    return Ok(Next::Value(None));
                }
                (Some(b'}'), true) | (Some(b']'), false) => {
                    let (start, node) = (level.start, level.node);
                    self.at += 1;
                    self.levels.pop();
                    self.keep(node, start);
                }
                (_, true) => return self.flaw("neither ',' nor '}' after a value"),
                (_, false) => return self.flaw("neither ',' nor ']' after a value"),
            }
        }
    }

    /// Parses a key and its colon; returns the node of its value if it is requested.
    fn key(&mut self) -> Checked<Option<usize>> {
        self.space();
        if self.peek() != Some(b'"') {
            return self.flaw("no key in double quotes where a key is expected");
        }
        let start = self.at;
        self.at = text::end(self.json, start)?;
        let key = &self.json[start + 1..self.at - 1];
        self.space();
        if self.peek() != Some(b':') {
            return self.flaw("no ':' after a key");
        }
        self.at += 1;
        let Some(node) = self.levels.last().and_then(|level| level.node) else {
            return Ok(None);
        };
        let keys = &self.fields.nodes[node].keys;
        let next = if key.contains(&b'\\') {
            let key = text::unescape(key);
            let key = key.as_deref();
            keys.iter().find(|(name, _)| Some(&**name) == key)
        } else {
            keys.iter().find(|(name, _)| name.as_bytes() == key)
        };
        let Some(&(_, next)) = next else {
            return Ok(None);
        };
        for &field in &self.fields.nodes[next].all {
            self.found[field] = None; // the last of duplicate keys counts
        }
        Ok(Some(next))
    }

    /// Parses a number by the grammar of RFC 8259, or `-Infinity`.
    fn number(&mut self) -> Checked<()> {
        if self.peek() == Some(b'-') {
            self.at += 1;
            if self.peek() == Some(b'I') {
                return self.word(b"Infinity");
            }
        }
        let digits = match self.peek() {
            Some(b'0') => {
                self.at += 1;
                1
            }
            _ => self.digits()?,
        };
        let mut is_whole = true;
        if self.peek() == Some(b'.') {
            (self.at, is_whole) = (self.at + 1, false);
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            (self.at, is_whole) = (self.at + 1, false);
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        if is_whole && digits > MOST_DIGITS {
            return self.flaw("an integer of more than 4300 digits, which Python refuses");
        }
        Ok(())
    }

    fn digits(&mut self) -> Checked<usize> {
        let digits = self.json[self.at..].iter();
        let count = digits.take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return self.flaw("no digit where a digit is expected");
        }
        self.at += count;
        Ok(count)
    }

    fn word(&mut self, word: &[u8]) -> Checked<()> {
        if !self.json[self.at..].starts_with(word) {
            return self.flaw("no value where a value is expected");
        }
        self.at += word.len();
        Ok(())
    }

    fn keep(&mut self, node: Option<usize>, start: usize) {
        if let Some(node) = node {
            for &field in &self.fields.nodes[node].here {
                self.found[field] = Some(start..self.at);
            }
        }
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.json.get(self.at).copied()
    }

    fn flaw<T>(&self, what: &'static str) -> Checked<T> {
        let at = self.at;
        Err(Flaw { what, at })
    }
}
