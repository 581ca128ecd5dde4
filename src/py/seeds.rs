//! Seeds of the generators of Python code, by what they are for.

use pyo3::prelude::*;

use crate::draws::{Key, Seeds};

/// See the stub.
#[pyfunction]
pub(super) fn sample_seeds(seed: u64, epoch: u64, index: u64, draw: u64) -> (u64, u32, u64) {
    plain(Seeds::of_sample(Key {
        seed,
        epoch,
        index,
        draw,
        leaf: 0,
    }))
}

/// See the stub.
#[pyfunction]
pub(super) fn batch_seeds(seed: u64, epoch: u64, batch: u64) -> (u64, u32, u64) {
    plain(Seeds::of_batch(Key {
        seed,
        epoch,
        index: batch,
        ..Key::default()
    }))
}

fn plain(seeds: Seeds) -> (u64, u32, u64) {
    (seeds.torch, seeds.numpy, seeds.python)
}
