//! Conversions of elements while rows are copied: to another type, by a table, by arithmetic.

use std::ops::{Add, Div, Mul, Sub};

use crate::memory::{Cast, Dtype};

/// One step of a conversion.
#[derive(Debug)]
pub enum Conversion {
    /// To another type, as [`Cast::any`] has it.
    Cast(Dtype),
    /// Bytes to the elements of a table, of which there are 256.
    Table(Dtype, Vec<u8>),
    /// Arithmetic with constants, on float32 or float64.
    Arithmetic(Operator, Constants),
}

impl Conversion {
    /// Returns the type that elements are converted to, where that is said.
    pub fn to(&self) -> Option<Dtype> {
        match self {
            Conversion::Cast(dtype) | Conversion::Table(dtype, _) => Some(*dtype),
            Conversion::Arithmetic(..) => None,
        }
    }
}

/// An operator, whose result is rounded once, as IEEE 754 has it.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // the names say it
pub enum Operator {
    Add,
    Multiply,
    Subtract,
    SubtractFrom,
    Divide,
    DivideInto,
}

/// What elements are calculated with.
#[derive(Debug)]
pub struct Constants {
    /// Repeated along a row; each has a value of the elements' type.
    pub values: Vec<f64>,
    /// How many neighbours have the same constant.
    pub inner: usize,
}

/// Steps that follow each other: a first one to some type, arithmetic in it, a cast to the type of samples.
#[derive(Debug)]
pub(super) struct Convert {
    first: Option<First>,
    arithmetic: Vec<(Operator, Constants)>,
    /// The type that is calculated with.
    middle: Dtype,
    last: Option<Cast>,
}

#[derive(Debug)]
enum First {
    Cast(Cast),
    Table(Dtype, Vec<u8>),
}

impl Convert {
    /// Takes steps for rows of `elements` elements; None if one is not native, or they come in another order.
    pub(super) fn new(from: Dtype, elements: usize, steps: Vec<Conversion>) -> Option<Convert> {
        let (mut first, mut arithmetic, mut middle, mut last) = (None, Vec::new(), from, None);
        for step in steps {
            let is_first = first.is_none() && arithmetic.is_empty();
            match step {
                _ if last.is_some() => return None,
                Conversion::Cast(dtype) if is_first => {
                    first = Some(First::Cast(Cast::any(from, dtype)?));
                    middle = dtype;
                }
                Conversion::Cast(dtype) => last = Some(Cast::any(middle, dtype)?),
                Conversion::Table(dtype, table) => {
                    let is_whole = table.len() == 256 * dtype.itemsize();
                    if !(is_first && is_whole && from == Dtype::UInt8) {
                        return None;
                    }
                    first = Some(First::Table(dtype, table));
                    middle = dtype;
                }
                Conversion::Arithmetic(operator, constants) => {
                    let period = constants.values.len().checked_mul(constants.inner)?;
                    let is_float = matches!(middle, Dtype::Float32 | Dtype::Float64);
                    if !is_float || period == 0 || !elements.is_multiple_of(period) {
                        return None;
                    }
                    arithmetic.push((operator, constants));
                }
            }
        }
        Some(Convert {
            first,
            arithmetic,
            middle,
            last,
        })
    }

    /// Returns the type of the result.
    pub(super) fn to(&self) -> Dtype {
        self.last.map_or(self.middle, Cast::to)
    }

    /// Converts the elements of whole rows; `out` must have room for as many, and `spare` is memory for use.
    pub(super) fn run(&self, source: &[u8], spare: &mut Vec<u8>, out: &mut [u8]) {
        let Some(last) = self.last else {
            return self.calculate(source, out);
        };
        let elements = out.len() / last.to().itemsize();
        spare.resize(elements * self.middle.itemsize(), 0);
        self.calculate(source, spare);
        last.run(spare, out);
    }

    fn calculate(&self, source: &[u8], out: &mut [u8]) {
        match &self.first {
            None => out.copy_from_slice(source),
            Some(First::Cast(cast)) => cast.run(source, out),
            Some(First::Table(dtype, table)) => look_up(*dtype, table, source, out),
        }
        for (operator, constants) in &self.arithmetic {
            if self.middle == Dtype::Float32 {
                let (read, write) = (f32::from_ne_bytes, f32::to_ne_bytes);
                #[allow(clippy::cast_possible_truncation)] // each has the value of an f32
                operator.run(constants, |value| value as f32, read, write, out);
            } else {
                let (read, write) = (f64::from_ne_bytes, f64::to_ne_bytes);
                operator.run(constants, |value| value, read, write, out);
            }
        }
    }
}

impl Operator {
    fn run<const N: usize, T>(
        self,
        constants: &Constants,
        constant: impl Fn(f64) -> T,
        read: impl Fn([u8; N]) -> T,
        write: impl Fn(T) -> [u8; N],
        out: &mut [u8],
    ) where
        T: Copy + Add<Output = T> + Mul<Output = T> + Sub<Output = T> + Div<Output = T>,
    {
        macro_rules! each {
            ($result:expr) => {
                constants.each(out, |place: &mut [u8; N], by| {
                    *place = write($result(read(*place), constant(by)));
                })
            };
        }
        match self {
            Operator::Add => each!(|element, by| element + by),
            Operator::Multiply => each!(|element, by| element * by),
            Operator::Subtract => each!(|element, by| element - by),
            Operator::SubtractFrom => each!(|element, by| by - element),
            Operator::Divide => each!(|element, by| element / by),
            Operator::DivideInto => each!(|element, by| by / element),
        }
    }
}

impl Constants {
    /// Calls a function with each element of rows and its constant.
    fn each<const N: usize>(&self, out: &mut [u8], call: impl Fn(&mut [u8; N], f64)) {
        let (elements, _) = out.as_chunks_mut::<N>();
        for row in elements.chunks_exact_mut(self.values.len() * self.inner) {
            if self.inner == 1 {
                for (element, &by) in row.iter_mut().zip(&self.values) {
                    call(element, by);
                }
                continue;
            }
            for (part, &by) in row.chunks_exact_mut(self.inner).zip(&self.values) {
                for element in part {
                    call(element, by);
                }
            }
        }
    }
}

fn look_up(to: Dtype, table: &[u8], source: &[u8], out: &mut [u8]) {
    match to.itemsize() {
        1 => copy::<1>(table, source, out),
        2 => copy::<2>(table, source, out),
        4 => copy::<4>(table, source, out),
        8 => copy::<8>(table, source, out),
        _ => copy::<16>(table, source, out),
    }
}

fn copy<const N: usize>(table: &[u8], source: &[u8], out: &mut [u8]) {
    let (elements, _) = table.as_chunks::<N>();
    let (places, _) = out.as_chunks_mut::<N>();
    for (&byte, place) in source.iter().zip(places) {
        *place = elements[usize::from(byte)];
    }
}
