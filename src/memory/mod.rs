//! Memory that batches are written into, and memory that they are read from.
//!
//! Owns every address that the crate dereferences: leases of the slab pool, memory of others that
//! is borrowed to be written ([`Destination`]) or read ([`View`]), what worker processes share. Refuses to
//! know what the bytes mean beyond their [`Dtype`]. Invariant: outside of this module and of the hand-off to Python,
//! bytes are slices, and no two threads hold the same byte mutably.

#[cfg(target_os = "linux")]
pub mod arena;
#[cfg(target_os = "linux")]
pub mod arenas;
mod block;
#[cfg(target_os = "linux")]
mod deposit;
pub mod destination;
pub mod dtype;
mod free_list;
mod gather;
pub mod lease;
#[cfg(target_os = "linux")]
mod mappings;
mod owner;
mod size_class;
pub mod slab;
mod transfer;
#[cfg(target_os = "linux")]
mod userfault;
pub mod view;
pub mod writer;

#[cfg(target_os = "linux")]
pub use arena::{Arena, ArenaSlot};
#[cfg(target_os = "linux")]
pub use arenas::Arenas;
#[cfg(target_os = "linux")]
pub use deposit::{Block, deposit, is_deposited, is_in_heap};
pub use destination::{Destination, Foreign};
pub use dtype::Dtype;
pub use gather::{gather, prefetch};
pub use lease::Lease;
pub use owner::Owner;
pub use slab::{lease, retire, stats, stop_trimming, trim};
pub use transfer::Transfer;
pub use view::{Plain, View};
pub use writer::{RowsMut, Writer};
