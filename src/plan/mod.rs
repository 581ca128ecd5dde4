//! Plans of an epoch: which samples make which batch of which rank, from lengths alone.
//!
//! Owns what is decided before a sample is read: batches under a budget of tokens
//! ([`TokenBatches`]), bins that documents are packed into ([`PackedBatches`], [`pack`]), and how
//! ranks share them. Knows only numbers. Invariant: a plan is a function of seed, epoch, lengths
//! and settings; so the same on every rank, on every machine, in every version.

mod bins;
mod epoch;
mod fit;
mod lengths;
mod neighbours;
mod packed_batches;
mod shards;
mod shuffle;
mod stats;
mod token_batches;
mod token_budget;

pub use bins::{Bin, Piece, Strategy, pack};
pub use epoch::{Epoch, Measure};
pub use lengths::{Lengths, Long};
pub use packed_batches::PackedBatches;
pub use shards::{Ranks, Remainder};
pub use shuffle::Shuffle;
pub use stats::Stats;
pub use token_batches::TokenBatches;
pub use token_budget::{Budget, Cost};
