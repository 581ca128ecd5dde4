//! Memory that batches are written to, and memory that they are read from.
//!
//! Owns every address that the crate dereferences: leases of the slab pool, memory of other owners that is
//! borrowed to be written ([`Destination`]) or read ([`View`]), memory shared with worker processes. Refuses
//! to know what the bytes mean beyond their [`Dtype`]. Invariant: outside of this module and of the hand-off
//! to Python, bytes are slices, and no two threads hold the same byte mutably.

#[cfg(any(target_os = "linux", target_os = "macos"))]
pub mod arena;
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub mod arenas;
mod block;
pub mod destination;
pub mod dtype;
pub mod fallible;
mod free_list;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod ref_count;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod shared;
pub mod slab;
mod transfer;
pub mod view;
pub mod writer;

#[cfg(any(target_os = "linux", target_os = "macos"))]
pub use arena::{Arena, ArenaSlot};
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub use arenas::{Arenas, Trimmed};
pub use destination::{Destination, External, Lease, Owner};
pub use dtype::{Cast, Dtype};
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub use shared::make_file;
pub use slab::{lease, retire, stats, stop_trimming, trim};
pub use transfer::Transfer;
pub use view::{Plain, ReadGuard, View, drop_after_readers, gather, prefetch};
pub use writer::{RowsMut, Writer};
