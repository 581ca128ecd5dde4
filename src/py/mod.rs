//! The boundary: converts, detaches, wraps. The only module that names PyO3.
//!
//! Python decides (defaults, warnings, seeds, environment); this executes. Every class is frozen,
//! every method takes `&self`, no lock is held while Python runs.

mod action;
#[cfg(not(sanitized))] // a sanitizer's own allocator detects invalid accesses
mod allocator;
mod budget;
mod column;
mod copying;
mod dlpack;
mod error;
mod feed;
mod files;
mod foreign;
mod form;
mod generators;
mod index;
mod interrupts;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod link;
mod list_arrays;
mod lists;
mod made;
mod outcome;
mod pack;
mod pad;
mod permutation;
mod picture;
mod plan;
mod process;
mod program;
mod rule;
mod shapes;
mod snapshot;
mod spans;
mod steps;
mod stream;
mod template;
mod tensor;
mod transform;
mod tune;
mod unframed;
mod value;
mod wait;
mod watch;

use pyo3::prelude::*;

/// The extension module.
#[pymodule(gil_used = false)]
fn _lib(module: &Bound<'_, PyModule>) -> PyResult<()> {
    #[cfg(not(sanitized))]
    allocator::use_small_pages();
    crate::fork::generation(); // from now on, forks are counted
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("debug_assertions", cfg!(debug_assertions))?;
    module.add_class::<column::Column>()?;
    module.add_class::<column::Rows>()?;
    module.add_class::<column::Storage>()?;
    module.add_class::<column::Ragged>()?;
    module.add_class::<column::Image>()?;
    module.add_function(wrap_pyfunction!(column::text, module)?)?;
    module.add_function(wrap_pyfunction!(column::binary, module)?)?;
    module.add_function(wrap_pyfunction!(column::select, module)?)?;
    module.add_function(wrap_pyfunction!(column::concat, module)?)?;
    module.add_function(wrap_pyfunction!(column::lists, module)?)?;
    files::add_to(module)?;
    module.add_class::<copying::Copying>()?;
    module.add_class::<form::Leaf>()?;
    module.add_class::<picture::Picture>()?;
    module.add_class::<unframed::Unframed>()?;
    module.add_class::<program::Program>()?;
    module.add_class::<spans::Spans>()?;
    module.add_class::<steps::StepClocks>()?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<foreign::Requests>()?;
    module.add_class::<foreign::Request>()?;
    module.add_class::<pad::Pad>()?;
    module.add_class::<rule::Rule>()?;
    module.add_class::<pack::Pack>()?;
    module.add_function(wrap_pyfunction!(pad::flatten, module)?)?;
    module.add_function(wrap_pyfunction!(lists::floats, module)?)?;
    module.add_function(wrap_pyfunction!(lists::ints, module)?)?;
    module.add_function(wrap_pyfunction!(lists::numbers_of_lists, module)?)?;
    module.add_class::<tune::Window>()?;
    module.add_class::<tune::Tuner>()?;
    module.add_class::<watch::Watch>()?;
    module.add_class::<permutation::Permutation>()?;
    module.add_class::<plan::Lengths>()?;
    module.add_class::<plan::Epoch>()?;
    module.add_function(wrap_pyfunction!(shapes::shapes, module)?)?;
    module.add_function(wrap_pyfunction!(plan::plan_token_batches, module)?)?;
    module.add_function(wrap_pyfunction!(plan::plan_packed_batches, module)?)?;
    module.add_function(wrap_pyfunction!(lists::same_items, module)?)?;
    generators::add_to(module)?;
    interrupts::add_to(module)?;
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    link::add_to(module)?;
    module.add_function(wrap_pyfunction!(process::pool_threads, module)?)?;
    module.add_function(wrap_pyfunction!(process::park, module)?)?;
    module.add_function(wrap_pyfunction!(process::shutdown, module)?)?;
    module.add_function(wrap_pyfunction!(process::memory_stats, module)?)?;
    module.add_function(wrap_pyfunction!(process::trim_memory, module)?)?;
    Ok(())
}
