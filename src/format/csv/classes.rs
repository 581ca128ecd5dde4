//! What the fields of a column are, and the type that follows: pandas' rules.

use super::column::{Type, bool_of, float_of, trimmed};
use super::reader::Dialect;
use crate::memory::Dtype;

/// Which kinds of fields a column has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Classes(u16);

impl Classes {
    const MISSING: Classes = Classes(1);
    const BOOL: Classes = Classes(1 << 1);
    const FLOAT: Classes = Classes(1 << 2);
    const TEXT: Classes = Classes(1 << 3);
    /// Whole numbers that int64 holds.
    const INT: Classes = Classes(1 << 4);
    /// Those that only uint64 holds.
    const LARGE: Classes = Classes(1 << 5);
    /// Those above all of these.
    const HUGE: Classes = Classes(1 << 6);
    /// Those below int64.
    const BELOW: Classes = Classes(1 << 7);
    /// Those with a minus, -0 among them.
    const NEGATIVE: Classes = Classes(1 << 8);
    /// Fields that are no whole numbers and have no minus: where pandas tries uint64, it looks no further than at
    /// a minus, and does not find out that a number has a fraction.
    const UNSIGNED: Classes = Classes(1 << 9);
    /// A whole number that int64 does not hold came before any field that is none: pandas tries uint64 then.
    const OVERFLOW: Classes = Classes(1 << 10);
    /// A number above all came before any field of which pandas finds out that it is none of uint64: it gives up
    /// there, if it tries that.
    const GIVEN_UP: Classes = Classes(1 << 11);

    /// Tells what a field is; None: its row is shorter.
    pub(super) fn of(field: Option<&[u8]>, dialect: &Dialect) -> Classes {
        let Some(field) = field.filter(|field| !dialect.is_missing(field)) else {
            return Classes::MISSING;
        };
        let number = trimmed(field);
        let is_signed = number.is_some_and(|number| number.starts_with('-'));
        if let Some(number) = number {
            let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
            if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
                let fits = (number.parse::<i64>().is_ok(), number.parse::<u64>().is_ok());
                return match (fits, is_signed) {
                    ((true, _), true) => Classes::INT.and(Classes::NEGATIVE),
                    ((true, _), false) => Classes::INT,
                    ((_, true), _) => Classes::LARGE.and(Classes::OVERFLOW),
                    (_, true) => Classes::OVERFLOW.and(Classes::BELOW).and(Classes::NEGATIVE),
                    _ => Classes::OVERFLOW.and(Classes::HUGE).and(Classes::GIVEN_UP),
                };
            }
        }
        let kind = if float_of(field).is_some() {
            Classes::FLOAT
        } else if bool_of(field).is_some() {
            Classes::BOOL
        } else {
            Classes::TEXT
        };
        if is_signed {
            kind
        } else {
            kind.and(Classes::UNSIGNED)
        }
    }

    /// Those of a column whose later fields have `other`.
    pub(super) fn then(self, other: Classes) -> Classes {
        let others = Classes::FLOAT.and(Classes::BOOL).and(Classes::TEXT);
        let mut later = other;
        if self.has(others) {
            later = later.without(Classes::OVERFLOW);
        }
        if self.has(Classes::UNSIGNED) {
            later = later.without(Classes::GIVEN_UP);
        }
        self.and(later)
    }

    fn without(self, other: Classes) -> Classes {
        Classes(self.0 & !other.0)
    }

    fn and(self, other: Classes) -> Classes {
        Classes(self.0 | other.0)
    }

    fn has(self, other: Classes) -> bool {
        self.0 & other.0 != 0
    }

    /// The type of a column with these.
    pub(super) fn resolve(self) -> Type {
        let whole = [Classes::LARGE, Classes::HUGE, Classes::BELOW];
        let whole = whole.into_iter().fold(Classes::INT, Classes::and);
        let is_found = self.has(Classes::UNSIGNED) && !self.has(Classes::GIVEN_UP);
        let gave_up = self.has(Classes::FLOAT) && self.has(Classes::OVERFLOW) && !is_found;
        if self == Classes::default() || self.has(Classes::TEXT) || gave_up {
            return Type::Text;
        }
        if self.has(Classes::BOOL) {
            let is_mixed = self.has(whole.and(Classes::FLOAT));
            return if is_mixed {
                Type::Text
            } else {
                Type::Number(Dtype::Bool)
            };
        }
        if self.has(Classes::FLOAT) || !self.has(whole) {
            return Type::Number(Dtype::Float64);
        }
        // Numbers that no dtype holds are an error when they are parsed.
        if self.has(Classes::HUGE) {
            Type::Number(Dtype::UInt64)
        } else if self.has(Classes::LARGE) {
            let fits = !self.has(Classes::NEGATIVE.and(Classes::MISSING));
            if fits {
                Type::Number(Dtype::UInt64)
            } else {
                Type::Text
            }
        } else if self.has(Classes::MISSING) && !self.has(Classes::BELOW) {
            Type::WholeOrMissing
        } else {
            Type::Number(Dtype::Int64)
        }
    }
}
