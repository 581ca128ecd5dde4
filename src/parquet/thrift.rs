//! What footers and headers of pages are made of, and whether bytes are that.
//!
//! Thrift's compact protocol (`thrift-compact-protocol.md` of Apache Thrift) with the structs of
//! `parquet.thrift` of the format. The `parquet` crate reads them; this refuses first what
//! readers in other languages refuse: required fields that are missing, and values that are cut short, or of
//! another type than their field.

use Kind::{Bool, Byte, Int, Letters, List, Long, Short, Struct};

/// How deep structs and lists lie in each other at most.
const DEPTH: usize = 12;

/// The type of a field.
pub(super) enum Kind {
    Bool,
    Byte,
    Short,
    Int,
    Long,
    Letters,
    List(&'static Kind),
    Struct(&'static [Field]),
}

/// A field of a struct: its number, its type, and whether it must be there.
pub(super) struct Field(i64, Kind, bool);

const fn must(number: i64, kind: Kind) -> Field {
    Field(number, kind, true)
}

const fn may(number: i64, kind: Kind) -> Field {
    Field(number, kind, false)
}

/// `FileMetaData`.
pub(super) const FOOTER: &[Field] = &[
    must(1, Int),
    must(2, List(&Struct(SCHEMA_ELEMENT))),
    must(3, Long),
    must(4, List(&Struct(ROW_GROUP))),
    may(5, List(&Struct(KEY_VALUE))),
    may(6, Letters),
    may(7, List(&Struct(&[may(1, Struct(&[]))]))),
];

const SCHEMA_ELEMENT: &[Field] = &[
    may(1, Int),
    may(2, Int),
    may(3, Int),
    must(4, Letters),
    may(5, Int),
    may(6, Int),
    may(7, Int),
    may(8, Int),
    may(9, Int),
    may(10, Struct(LOGICAL_TYPE)),
];

const LOGICAL_TYPE: &[Field] = &[
    may(5, Struct(&[must(1, Int), must(2, Int)])),
    may(7, Struct(TIME)),
    may(8, Struct(TIME)),
    may(10, Struct(&[must(1, Byte), must(2, Bool)])),
];

const TIME: &[Field] = &[must(1, Bool), must(2, Struct(&[]))];

const KEY_VALUE: &[Field] = &[must(1, Letters), may(2, Letters)];

const ROW_GROUP: &[Field] = &[
    must(1, List(&Struct(COLUMN_CHUNK))),
    must(2, Long),
    must(3, Long),
    may(
        4,
        List(&Struct(&[must(1, Int), must(2, Bool), must(3, Bool)])),
    ),
    may(5, Long),
    may(6, Long),
    may(7, Short),
];

const COLUMN_CHUNK: &[Field] = &[
    may(1, Letters),
    must(2, Long),
    may(3, Struct(COLUMN)),
    may(4, Long),
    may(5, Int),
    may(6, Long),
    may(7, Int),
    may(9, Letters),
];

const COLUMN: &[Field] = &[
    must(1, Int),
    must(2, List(&Int)),
    must(3, List(&Letters)),
    must(4, Int),
    must(5, Long),
    must(6, Long),
    must(7, Long),
    may(8, List(&Struct(KEY_VALUE))),
    must(9, Long),
    may(10, Long),
    may(11, Long),
    may(12, Struct(STATISTICS)),
    may(
        13,
        List(&Struct(&[must(1, Int), must(2, Int), must(3, Int)])),
    ),
    may(14, Long),
    may(15, Int),
    may(
        16,
        Struct(&[may(1, Long), may(2, List(&Long)), may(3, List(&Long))]),
    ),
];

const STATISTICS: &[Field] = &[
    may(1, Letters),
    may(2, Letters),
    may(3, Long),
    may(4, Long),
    may(5, Letters),
    may(6, Letters),
    may(7, Bool),
    may(8, Bool),
];

/// `PageHeader`.
pub(super) const PAGE: &[Field] = &[
    must(1, Int),
    must(2, Int),
    must(3, Int),
    may(4, Int),
    may(
        5,
        Struct(&[
            must(1, Int),
            must(2, Int),
            must(3, Int),
            must(4, Int),
            may(5, Struct(STATISTICS)),
        ]),
    ),
    may(7, Struct(&[must(1, Int), must(2, Int), may(3, Bool)])),
    may(
        8,
        Struct(&[
            must(1, Int),
            must(2, Int),
            must(3, Int),
            must(4, Int),
            must(5, Int),
            must(6, Int),
            may(7, Bool),
            may(8, Struct(STATISTICS)),
        ]),
    ),
];

/// Passes over a struct at the beginning of `bytes`; returns what is behind it, or None: it is damaged.
/// `each` is told of each known field its number, after those of the fields that it is in, and the whole
/// number or the length of the list that it holds.
pub(super) fn pass<'a>(
    bytes: &'a [u8],
    fields: &[Field],
    each: &mut dyn FnMut(&[i64], i64),
) -> Option<&'a [u8]> {
    let mut rest = Rest {
        bytes,
        path: Vec::new(),
        each,
    };
    rest.structure(fields, 0)?;
    Some(rest.bytes)
}

/// Bytes that are still to be read.
struct Rest<'a, 'b> {
    bytes: &'a [u8],
    /// The numbers of the fields that the next value is in.
    path: Vec<i64>,
    each: &'b mut dyn FnMut(&[i64], i64),
}

impl Rest<'_, '_> {
    fn structure(&mut self, fields: &[Field], depth: usize) -> Option<()> {
        let (mut number, mut seen) = (0_i64, 0_u64);
        loop {
            let byte = self.byte()?;
            let (delta, code) = (byte >> 4, byte & 15);
            if code == 0 {
                let missing = |field: &Field| field.2 && seen & (1 << field.0) == 0;
                return (!fields.iter().any(missing)).then_some(());
            }
            number = match delta {
                0 => self.number()?,
                delta => number + i64::from(delta),
            };
            let known = fields.iter().find(|field| field.0 == number);
            if let Some(Field(number, kind, _)) = known {
                if !kind.has(code) {
                    return None;
                }
                seen |= 1 << number;
            }
            if (1..=2).contains(&code) {
                continue; // true and false have no bytes
            }
            self.path.push(number);
            let value = self.value(code, known.map(|field| &field.1), depth + 1)?;
            if known.is_some() {
                (self.each)(&self.path, value);
            }
            self.path.pop();
        }
    }

    /// Passes over a value of type `code`, which is a `kind` if that is known. Returns the number that it is,
    /// or how many entries it has.
    fn value(&mut self, code: u8, kind: Option<&Kind>, depth: usize) -> Option<i64> {
        if depth > DEPTH {
            return None;
        }
        match code {
            1..=3 => self.byte().map(i64::from),
            4..=6 => self.number(),
            7 => self.skip(8),
            8 => {
                let size = self.varint()?;
                self.skip(usize::try_from(size).ok()?)
            }
            9 | 10 => {
                let byte = self.byte()?;
                let (short, code) = (byte >> 4, byte & 15);
                let count = if short == 15 {
                    self.varint()?
                } else {
                    u64::from(short)
                };
                let entry = match kind {
                    Some(List(entry)) if !entry.has(code) => return None,
                    Some(List(entry)) => Some(*entry),
                    _ => None,
                };
                for _ in 0..count {
                    self.value(code, entry, depth + 1)?;
                }
                i64::try_from(count).ok()
            }
            11 => {
                let count = self.varint()?;
                let codes = if count == 0 { 0 } else { self.byte()? };
                for _ in 0..count {
                    self.value(codes >> 4, None, depth + 1)?;
                    self.value(codes & 15, None, depth + 1)?;
                }
                i64::try_from(count).ok()
            }
            12 => {
                let fields = match kind {
                    Some(Struct(fields)) => fields,
                    _ => &[][..],
                };
                self.structure(fields, depth)?;
                Some(0)
            }
            _ => None,
        }
    }

    fn skip(&mut self, size: usize) -> Option<i64> {
        self.bytes = self.bytes.get(size..)?;
        Some(0)
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }

    /// A signed number, zigzag.
    fn number(&mut self) -> Option<i64> {
        let number = self.varint()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}

impl Kind {
    /// Whether values of this type have the code.
    fn has(&self, code: u8) -> bool {
        match self {
            Bool => code == 1 || code == 2,
            Byte => code == 3,
            Short => code == 4,
            Int => code == 5,
            Long => code == 6,
            Letters => code == 8,
            List(_) => code == 9,
            Struct(_) => code == 12,
        }
    }
}
