//! What the fields of a column are, and the type that follows: pandas' rules.

use super::column::{Type, bool_of, float_of, trimmed};
use super::reader::Dialect;
use crate::memory::Dtype;

/// Which kinds of fields a column has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Classes(u16);

impl Classes {
    const MISSING: Classes = Classes(1);
    const BOOL: Classes = Classes(2);
    /// Whole numbers that int64 holds.
    const INT: Classes = Classes(4);
    /// Those below 0.
    const NEGATIVE: Classes = Classes(8);
    /// Those that only uint64 holds.
    const LARGE: Classes = Classes(16);
    /// Those above all of these.
    const HUGE: Classes = Classes(32);
    const FLOAT: Classes = Classes(64);
    const TEXT: Classes = Classes(128);
    /// Whole numbers below int64.
    const BELOW: Classes = Classes(512);
    /// A number above all came before any field that is no whole number: pandas gives up there.
    const GIVEN_UP: Classes = Classes(256);

    /// Tells what a field is; None: its row is shorter.
    pub(super) fn of(field: Option<&[u8]>, dialect: &Dialect) -> Classes {
        let Some(field) = field.filter(|field| !dialect.is_missing(field)) else {
            return Classes::MISSING;
        };
        if let Some(number) = trimmed(field) {
            let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
            if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return match (number.parse::<i64>(), number.parse::<u64>()) {
                    (Ok(int), _) if int < 0 => Classes::INT.and(Classes::NEGATIVE),
                    (Ok(_), _) => Classes::INT,
                    (_, Ok(_)) => Classes::LARGE,
                    _ if number.starts_with('-') => Classes::BELOW.and(Classes::NEGATIVE),
                    _ => Classes::HUGE.and(Classes::GIVEN_UP),
                };
            }
        }
        if float_of(field).is_some() {
            Classes::FLOAT
        } else if bool_of(field).is_some() {
            Classes::BOOL
        } else {
            Classes::TEXT
        }
    }

    /// Those of a column whose later fields have `other`.
    pub(super) fn then(self, other: Classes) -> Classes {
        let both = self.and(other);
        let others = Classes::FLOAT.and(Classes::BOOL).and(Classes::TEXT);
        if self.has(others) && !self.has(Classes::GIVEN_UP) {
            return Classes(both.0 & !Classes::GIVEN_UP.0);
        }
        both
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
        let gave_up = self.has(Classes::GIVEN_UP) && self.has(Classes::FLOAT);
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
            Type::Number(Dtype::Float64)
        } else {
            Type::Number(Dtype::Int64)
        }
    }
}
