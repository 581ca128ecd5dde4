//! Arrays whose elements lie in a file at any strides: those of NumPy and of torch.
//!
//! Their formats read the headers, and refuse those whose elements are not all in the file. Samples come out in C
//! order and native byte order.

use std::ops::Range;

use super::header::{Header, one_dtype};
use super::{Array, Shapes, Target};
use crate::collate;
use crate::column::Blobs;
use crate::error::Result;
use crate::memory::Dtype;

/// Maximum number of names in an error.
const LISTED: usize = 8;

/// The location of a sample's elements.
#[derive(Debug)]
pub(super) struct Layout {
    /// Its bytes in the file, from its first element to its last.
    part: Range<u64>,
    dtype: Dtype,
    /// True if their byte order is not this machine's.
    swapped: bool,
    shape: Vec<usize>,
    /// Strides in bytes; None for elements that are contiguous in C order.
    strides: Option<Box<[isize]>>,
}

impl Layout {
    /// Takes an array whose first element begins at byte `start`; its strides are in bytes.
    pub(super) fn new(
        start: u64,
        dtype: Dtype,
        swapped: bool,
        shape: Vec<usize>,
        strides: Vec<usize>,
    ) -> Layout {
        let (mut reach, mut packed, mut is_packed) = (0_u64, dtype.itemsize(), true);
        for (&n, &stride) in shape.iter().zip(&strides).rev() {
            let steps = n.saturating_sub(1) as u64;
            reach = reach.saturating_add(steps.saturating_mul(stride as u64));
            is_packed &= n == 1 || stride == packed;
            packed = packed.saturating_mul(n);
        }
        let part = match packed {
            0 => 0..0,
            _ => start..start + reach + dtype.itemsize() as u64,
        };
        let strides = (!is_packed && packed > 0)
            .then(|| strides.iter().map(|stride| stride.cast_signed()).collect());
        Layout {
            part,
            dtype,
            swapped,
            shape,
            strides,
        }
    }
}

/// Samples that are arrays in files.
#[derive(Debug)]
pub struct Arrays {
    headers: Vec<Header<Layout>>,
    shapes: Shapes,
    dtype: Dtype,
}

impl Arrays {
    /// Makes the column from the headers of the arrays in `blobs`.
    pub(super) fn new(mut headers: Vec<Header<Layout>>, blobs: &Blobs) -> Result<Arrays> {
        let dtype = one_dtype(&mut headers, blobs, |layout| layout.dtype)?;
        let shapes = headers.iter().map(|header| Some(&header.ok()?.shape));
        Ok(Arrays {
            shapes: shapes.collect(),
            headers,
            dtype,
        })
    }
}

impl Array for Arrays {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shapes(&self) -> Option<&Shapes> {
        Some(&self.shapes)
    }

    fn part(&self, index: usize) -> Result<Range<u64>> {
        self.headers[index].part(|layout| layout.part.clone())
    }

    fn decode(&self, index: usize, bytes: &[u8], target: &mut dyn Target) -> Result<()> {
        let layout = self.headers[index].known()?;
        let out = target.shaped(&layout.shape)?;
        match &layout.strides {
            None => out.copy_from_slice(bytes),
            Some(strides) => {
                let array = collate::Array {
                    bytes,
                    first: 0,
                    shape: &layout.shape,
                    strides,
                };
                collate::copy(array, self.dtype.itemsize(), out);
            }
        }
        if layout.swapped {
            swap(self.dtype, out);
        }
        Ok(())
    }
}

/// Joins the first few names, for an error.
pub(super) fn listed(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.take(LISTED + 1).collect();
    if names.len() > LISTED {
        names[LISTED] = "…".into();
    }
    names.join(", ")
}

/// Turns the bytes of each number around; a complex one is two.
fn swap(dtype: Dtype, out: &mut [u8]) {
    let parts = if dtype.is_complex() { 2 } else { 1 };
    for number in out.chunks_exact_mut(dtype.itemsize() / parts) {
        number.reverse();
    }
}
