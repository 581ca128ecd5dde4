//! The order of elements and of their bytes.

use crate::memory::Dtype;

/// Copies an array in Fortran order to C order: of `(N, ...)`, the rows from `first` on that make `shape`.
pub(super) fn from_fortran(
    bytes: &[u8],
    whole: &[usize],
    first: usize,
    shape: &[usize],
    itemsize: usize,
    out: &mut [u8],
) {
    let mut strides = Vec::with_capacity(whole.len());
    let mut stride = itemsize;
    for &n in whole {
        strides.push(stride);
        stride *= n;
    }
    copy(bytes, first * itemsize, shape, &strides, out);
}

/// Copies elements to C order: of `shape`, the first at `start`, neighbours at `strides`, all in bytes.
pub(super) fn copy(bytes: &[u8], start: usize, shape: &[usize], strides: &[usize], out: &mut [u8]) {
    if out.is_empty() {
        return;
    }
    match (shape, strides) {
        (&[n], &[stride]) => {
            let itemsize = out.len() / n;
            for (at, element) in out.chunks_exact_mut(itemsize).enumerate() {
                let from = start + at * stride;
                element.copy_from_slice(&bytes[from..from + itemsize]);
            }
        }
        ([n, shape @ ..], [stride, strides @ ..]) => {
            let part = out.len() / n;
            for (at, part) in out.chunks_exact_mut(part).enumerate() {
                copy(bytes, start + at * stride, shape, strides, part);
            }
        }
        _ => out.copy_from_slice(&bytes[start..start + out.len()]),
    }
}

/// Turns the bytes of each number around; a complex one is two.
pub(super) fn swap(dtype: Dtype, out: &mut [u8]) {
    let size = match dtype {
        Dtype::Complex64 | Dtype::Complex128 => dtype.itemsize() / 2,
        _ => dtype.itemsize(),
    };
    for number in out.chunks_exact_mut(size) {
        number.reverse();
    }
}
