//! The allocator of the extension module.
//!
//! A batch is made by one thread and freed by another, and glibc locks the maker's arena for that: for small
//! batches this was a tenth of the time (`benches/padding.py`). Nothing outside the module is allocated by it,
//! and neither are batches, which have memory of their own.

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
