//! The boundary: converts, detaches, wraps. The only module that names PyO3.
//!
//! Python decides (defaults, warnings, seeds, environment); this executes. Every class is frozen,
//! every method takes `&self`, no lock is held while Python runs.

mod action;
#[cfg(not(sanitized))] // a sanitizer's own allocator detects invalid accesses
mod allocator;
mod column;
mod dlpack;
mod error;
mod feed;
mod files;
mod foreign;
mod form;
mod generators;
mod interrupts;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod link;
mod lists;
mod order;
mod outcome;
mod pack;
mod pad;
mod picture;
mod plan;
mod process;
mod program;
mod rule;
mod snapshot;
mod steps;
mod stream;
mod template;
mod tensor;
mod transform;
mod tune;
mod unframed;
mod value;

use pyo3::prelude::*;

/// The extension module.
#[pymodule(gil_used = false)]
fn _lib(module: &Bound<'_, PyModule>) -> PyResult<()> {
    #[cfg(not(sanitized))]
    allocator::use_small_pages(); // `#[pymodule_init]` would come too late: after the classes
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
    module.add_class::<files::arrays::Audio>()?;
    module.add_function(wrap_pyfunction!(files::arrays::npy, module)?)?;
    module.add_function(wrap_pyfunction!(files::arrays::npz, module)?)?;
    module.add_function(wrap_pyfunction!(files::arrays::pt, module)?)?;
    module.add_function(wrap_pyfunction!(files::arrays::plain, module)?)?;
    module.add_class::<files::Blobs>()?;
    module.add_function(wrap_pyfunction!(files::write_file, module)?)?;
    module.add_function(wrap_pyfunction!(files::flat::tokens, module)?)?;
    module.add_function(wrap_pyfunction!(files::flat::records, module)?)?;
    module.add_function(wrap_pyfunction!(files::flat::megatron, module)?)?;
    module.add_class::<files::tables::Lines>()?;
    module.add_class::<files::tables::Jsonl>()?;
    module.add_class::<files::tables::ParquetFiles>()?;
    module.add_class::<files::tar::Tar>()?;
    module.add_class::<foreign::Requests>()?;
    module.add_class::<foreign::Request>()?;
    module.add_class::<form::Leaf>()?;
    module.add_class::<generators::Generators>()?;
    module.add_class::<generators::Followed>()?;
    module.add_class::<interrupts::WholeSteps>()?;
    module.add_function(wrap_pyfunction!(interrupts::interruptibly, module)?)?;
    module.add_function(wrap_pyfunction!(interrupts::uninterruptibly, module)?)?;
    module.add_function(wrap_pyfunction!(interrupts::check_interrupts, module)?)?;
    module.add_function(wrap_pyfunction!(lists::floats, module)?)?;
    module.add_function(wrap_pyfunction!(lists::ints, module)?)?;
    module.add_function(wrap_pyfunction!(lists::numbers_of_lists, module)?)?;
    module.add_function(wrap_pyfunction!(value::are_joined, module)?)?;
    module.add_function(wrap_pyfunction!(lists::same_items, module)?)?;
    module.add_class::<pack::Pack>()?;
    module.add_class::<pad::Pad>()?;
    module.add_function(wrap_pyfunction!(pad::flatten, module)?)?;
    module.add_class::<order::Permutation>()?;
    module.add_class::<picture::Picture>()?;
    module.add_class::<plan::Lengths>()?;
    module.add_class::<plan::Epoch>()?;
    module.add_function(wrap_pyfunction!(plan::plan_token_batches, module)?)?;
    module.add_function(wrap_pyfunction!(plan::plan_packed_batches, module)?)?;
    module.add_function(wrap_pyfunction!(plan::shapes, module)?)?;
    module.add_function(wrap_pyfunction!(process::pool_threads, module)?)?;
    module.add_function(wrap_pyfunction!(process::pool_thread_ids, module)?)?;
    module.add_function(wrap_pyfunction!(process::park, module)?)?;
    module.add_function(wrap_pyfunction!(process::shutdown, module)?)?;
    module.add_function(wrap_pyfunction!(process::memory_stats, module)?)?;
    module.add_function(wrap_pyfunction!(process::trim_memory, module)?)?;
    module.add_class::<program::Program>()?;
    module.add_class::<rule::Rule>()?;
    module.add_class::<steps::StepClocks>()?;
    module.add_class::<steps::Spans>()?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<tensor::Copying>()?;
    module.add_class::<tune::Window>()?;
    module.add_class::<tune::Tuner>()?;
    module.add_class::<tune::Watch>()?;
    module.add_class::<unframed::Unframed>()?;
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        module.add_class::<link::Links>()?;
        module.add_class::<link::WorkerLink>()?;
        module.add_class::<link::Part>()?;
        module.add_function(wrap_pyfunction!(link::make_file, module)?)?;
        module.add_function(wrap_pyfunction!(link::own, module)?)?;
    }
    Ok(())
}
