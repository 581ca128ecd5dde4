//! Plans an epoch: which samples form which batch of which rank, from lengths alone.
//!
//! Owns the decisions before a sample is read: batches under a token budget ([`TokenBatches`]), bins that
//! documents are packed into ([`PackedBatches`], [`pack`]), and the division among ranks. Knows only numbers.
//! Invariant: a plan is a function of seed, epoch, lengths and settings; so it is the same on every rank, on
//! every machine, in every version.

mod bins;
mod epoch;
mod fit;
mod lengths;
mod packed_batches;
mod shards;
mod shuffle;
mod token_batches;
mod token_budget;

pub use bins::{Bin, Piece, Strategy, pack};
pub use epoch::{Epoch, Measure, Stats};
pub use lengths::{Lengths, Long};
pub use packed_batches::PackedBatches;
pub use shards::{Ranks, Remainder};
pub use shuffle::Shuffle;
pub use token_batches::TokenBatches;
pub use token_budget::{Budget, Cost};
