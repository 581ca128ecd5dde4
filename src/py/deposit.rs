//! Memory of the dataset, laid down where worker processes map it.
#![allow(unsafe_code)]

use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, IntoRawFd, RawFd};

use pyo3::prelude::*;

use crate::memory::{self, Block};

/// Adds the functions to the module.
pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(make_file, module)?)?;
    module.add_function(wrap_pyfunction!(deposit, module)?)?;
    module.add_function(wrap_pyfunction!(is_deposited, module)?)?;
    module.add_function(wrap_pyfunction!(is_in_heap, module)?)
}

/// Makes an empty file in memory, or one that no directory has; the descriptor is the caller's.
#[pyfunction]
fn make_file(name: &str) -> PyResult<RawFd> {
    Ok(memory::make_file(name)?.into_raw_fd())
}

/// Writes bytes to a file in memory; returns how many of them are the file's pages here now.
#[pyfunction]
fn deposit(
    py: Python<'_>,
    descriptor: RawFd,
    at: u64,
    block: (usize, usize, usize),
    exchange: bool,
    name: &str,
) -> PyResult<usize> {
    let (file, block) = (borrowed(descriptor), described(block));
    Ok(py.detach(|| memory::deposit(&file, at, &block, exchange, name))?)
}

/// Tells whether a file has bytes that are its pages here.
#[pyfunction]
fn is_deposited(
    py: Python<'_>,
    descriptor: RawFd,
    at: u64,
    block: (usize, usize, usize),
) -> PyResult<bool> {
    let (file, block) = (borrowed(descriptor), described(block));
    Ok(py.detach(|| memory::is_deposited(&file, at, &block))?)
}

/// Tells whether bytes lie in the main heap.
#[pyfunction]
fn is_in_heap(block: (usize, usize, usize)) -> PyResult<bool> {
    Ok(memory::is_in_heap(&described(block))?)
}

/// Uses a descriptor, which stays the caller's.
fn borrowed(descriptor: RawFd) -> ManuallyDrop<File> {
    // SAFETY: the caller keeps the descriptor open, and it is not closed here.
    ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) })
}

fn described((address, len, allocated): (usize, usize, usize)) -> Block {
    // SAFETY: the caller gives the memory of an array or a tensor that it keeps, and the address that its
    // allocator returned, or 0.
    unsafe { Block::new(address, len, allocated) }
}
