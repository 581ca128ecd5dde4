//! The pickles of tensors: a stack machine that calls no code.
//!
//! Implements the operations that `torch.save` writes, as torch's own reader of weights does
//! (`torch/_weights_only_unpickler.py`). Refuses all others, and all names but those of tensors. Invariant:
//! its memory is proportional to the pickle; values are indices into its lists.

use std::collections::HashMap;

use super::tensor::{Storage, Tensor, View};
use crate::error::{Error, Result};
use crate::memory::fallible::expect_room;

/// Maximum bytes of memory per byte of a pickle: a value in a list that grows by doubling.
const EXPANSION: usize = 128;

/// A value on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    None,
    Bool(bool),
    Int(i64),
    Text(&'a str),
    /// Index into [`Machine::tuples`].
    Tuple(usize),
    /// Index into [`Machine::dicts`].
    Dict(usize),
    /// A name: module and attribute.
    Global(&'a str, &'a str),
    /// Index into [`Machine::storages`].
    Storage(usize),
    /// Index into [`Machine::tensors`].
    Tensor(usize),
    /// A value without meaning here: a float, a list.
    Other(&'static str),
}

impl Value<'_> {
    /// Describes it for an error.
    pub(super) fn describe(self) -> String {
        match self {
            Value::None => "None".into(),
            Value::Bool(_) => "a bool".into(),
            Value::Int(_) => "an int".into(),
            Value::Text(_) => "a str".into(),
            Value::Tuple(_) => "a tuple".into(),
            Value::Dict(_) => "a dict".into(),
            Value::Global(module, name) => format!("{module}.{name}"),
            Value::Storage(_) => "a storage".into(),
            Value::Tensor(_) => "a tensor".into(),
            Value::Other(what) => what.into(),
        }
    }
}

/// A dict, in insertion order: of equal keys the last counts.
#[derive(Debug, Default)]
pub(super) struct Dict<'a> {
    pub(super) items: Vec<(Value<'a>, Value<'a>)>,
    /// True for an `OrderedDict`, which has attributes.
    pub(super) ordered: bool,
}

/// All values of one pickle.
#[derive(Debug, Default)]
pub(super) struct Machine<'a> {
    pub(super) tuples: Vec<Vec<Value<'a>>>,
    pub(super) dicts: Vec<Dict<'a>>,
    pub(super) storages: Vec<Storage<'a>>,
    pub(super) tensors: Vec<Tensor>,
    /// Indices of storages, by key.
    pub(super) keys: HashMap<&'a str, usize>,
    stack: Vec<Value<'a>>,
    /// Height of the stack at each mark.
    marks: Vec<usize>,
    memo: HashMap<u64, Value<'a>>,
}

impl<'a> Machine<'a> {
    /// Runs a pickle.
    pub(super) fn run(pickle: &'a [u8]) -> Result<(Machine<'a>, Value<'a>)> {
        expect_room(pickle.len().saturating_mul(EXPANSION))?;
        let mut machine = Machine::default();
        let mut rest = Rest(pickle);
        loop {
            let operation = rest.number::<1>()? as u8;
            if operation == b'.' {
                let made = machine.pop()?;
                return Ok((machine, made));
            }
            machine.step(operation, &mut rest)?;
        }
    }

    fn step(&mut self, operation: u8, rest: &mut Rest<'a>) -> Result<()> {
        match operation {
            0x80 => drop(rest.number::<1>()?), // the protocol version
            b'N' => self.stack.push(Value::None),
            0x88 => self.stack.push(Value::Bool(true)),
            0x89 => self.stack.push(Value::Bool(false)),
            b'K' => self.int(rest.number::<1>()?.cast_signed()),
            b'M' => self.int(rest.number::<2>()?.cast_signed()),
            b'J' => self.int(i64::from((rest.number::<4>()? as u32).cast_signed())),
            0x8a => {
                let len = rest.number::<1>()?;
                let number = long(rest.take(len)?)?;
                self.int(number);
            }
            b'G' => {
                rest.take(8)?;
                self.stack.push(Value::Other("a float"));
            }
            b'X' => {
                let len = rest.number::<4>()?;
                let text = text(rest.take(len)?)?;
                self.stack.push(Value::Text(text));
            }
            b'(' => self.marks.push(self.stack.len()),
            b')' => self.tuple(Vec::new()),
            b't' => {
                let items = self.pop_mark()?;
                self.tuple(items);
            }
            0x85..=0x87 => {
                let mut items = Vec::new();
                for _ in 0x84..operation {
                    items.push(self.pop()?);
                }
                items.reverse();
                self.tuple(items);
            }
            b']' => self.stack.push(Value::Other("a list")),
            b'a' => {
                self.pop()?;
                self.expect_list()?;
            }
            b'e' => {
                self.pop_mark()?;
                self.expect_list()?;
            }
            b'}' => self.dict(false),
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set(&[key, value])?;
            }
            b'u' => {
                let items = self.pop_mark()?;
                self.set(&items)?;
            }
            b'q' => self.put(rest.number::<1>()?)?,
            b'r' => self.put(rest.number::<4>()?)?,
            b'h' => self.get(rest.number::<1>()?)?,
            b'j' => self.get(rest.number::<4>()?)?,
            b'c' => self.global(rest)?,
            b'Q' => {
                let id = self.pop()?;
                let storage = self.storage(id)?;
                self.stack.push(storage);
            }
            b'R' => {
                let (arguments, function) = (self.pop()?, self.pop()?);
                let made = self.call(function, arguments)?;
                self.stack.push(made);
            }
            b'b' => self.build()?,
            other => {
                return Err(Error::decode(format!(
                    "its pickle has operation {other:#04x}, which torch.save does not write for tensors"
                )));
            }
        }
        Ok(())
    }

    fn int(&mut self, number: i64) {
        self.stack.push(Value::Int(number));
    }

    fn tuple(&mut self, items: Vec<Value<'a>>) {
        self.stack.push(Value::Tuple(self.tuples.len()));
        self.tuples.push(items);
    }

    fn dict(&mut self, ordered: bool) {
        let made = self.new_dict(ordered);
        self.stack.push(made);
    }

    pub(super) fn new_dict(&mut self, ordered: bool) -> Value<'a> {
        let items = Vec::new();
        self.dicts.push(Dict { items, ordered });
        Value::Dict(self.dicts.len() - 1)
    }

    /// Pops the top, which must be above the last mark.
    fn pop(&mut self) -> Result<Value<'a>> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.pop() {
            Some(value) if self.stack.len() >= floor => Ok(value),
            _ => Err(broken("it takes more than there is")),
        }
    }

    /// Pops everything above the last mark, and the mark.
    fn pop_mark(&mut self) -> Result<Vec<Value<'a>>> {
        let mark = self
            .marks
            .pop()
            .ok_or_else(|| broken("a mark is missing"))?;
        Ok(self.stack.split_off(mark))
    }

    /// Returns the top, which stays; it must be above the last mark.
    fn top(&mut self) -> Result<Value<'a>> {
        let value = self.pop()?;
        self.stack.push(value);
        Ok(value)
    }

    fn expect_list(&mut self) -> Result<()> {
        match self.top()? {
            Value::Other("a list") => Ok(()),
            _ => Err(broken("it appends to an object that is not a list")),
        }
    }

    fn set(&mut self, items: &[Value<'a>]) -> Result<()> {
        let Value::Dict(dict) = self.top()? else {
            return Err(broken("it sets an item of an object that is not a dict"));
        };
        let (pairs, odd) = items.as_chunks::<2>();
        if !odd.is_empty() {
            return Err(broken("an item of a dict lacks its value"));
        }
        for &[key, value] in pairs {
            if !matches!(key, Value::Text(_) | Value::Int(_)) {
                let found = key.describe();
                return Err(Error::decode(format!(
                    "a key of its dict is {found}, no str"
                )));
            }
            self.dicts[dict].items.push((key, value));
        }
        Ok(())
    }

    fn put(&mut self, place: u64) -> Result<()> {
        let value = self.top()?;
        self.memo.insert(place, value);
        Ok(())
    }

    fn get(&mut self, place: u64) -> Result<()> {
        let value = self.memo.get(&place);
        let value = value.ok_or_else(|| broken("it reads a memo entry that was not written"))?;
        self.stack.push(*value);
        Ok(())
    }

    fn global(&mut self, rest: &mut Rest<'a>) -> Result<()> {
        let (module, name) = (rest.line()?, rest.line()?);
        if !View::is_known(module, name) {
            return Err(Error::decode(format!(
                "it holds a {module}.{name}; only tensors are read, and dicts of them"
            )));
        }
        self.stack.push(Value::Global(module, name));
        Ok(())
    }

    /// Sets attributes of an `OrderedDict`, as `state_dict()` has them; they do not concern its items.
    fn build(&mut self) -> Result<()> {
        let state = self.pop()?;
        let of = self.top()?;
        match (of, state) {
            (Value::Dict(dict), Value::Dict(_)) if self.dicts[dict].ordered => Ok(()),
            (of, _) => {
                let of = of.describe();
                Err(Error::decode(format!("it holds {of} with attributes")))
            }
        }
    }
}

/// The bytes that are not read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, len: u64) -> Result<&'a [u8]> {
        let taken = self.0.split_at_checked(len as usize);
        let (taken, rest) = taken.ok_or_else(|| broken("it is cut off"))?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads a little-endian integer of `N` bytes.
    fn number<const N: usize>(&mut self) -> Result<u64> {
        let mut wide = [0; 8];
        wide[..N].copy_from_slice(self.take(N as u64)?);
        Ok(u64::from_le_bytes(wide))
    }

    fn line(&mut self) -> Result<&'a str> {
        let end = self.0.iter().position(|&byte| byte == b'\n');
        let end = end.ok_or_else(|| broken("a name is cut off"))?;
        let line = text(self.take(end as u64)?)?;
        self.take(1)?;
        Ok(line)
    }
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| broken("a text is no UTF-8"))
}

/// Reads a little-endian integer in two's complement.
fn long(bytes: &[u8]) -> Result<i64> {
    if bytes.len() > 8 {
        return Err(broken("a number has more than 64 bits"));
    }
    let is_negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut wide = [if is_negative { 0xff } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    Ok(i64::from_le_bytes(wide))
}

/// Returns the error of a damaged pickle.
pub(super) fn broken(what: &str) -> Error {
    Error::decode(format!("its pickle is damaged: {what}"))
}
