//! Conversions of elements while they are copied: by a cast, or by a table with one entry per byte value.

use std::sync::Arc;

use crate::memory::{Cast, Dtype};

/// Entries of a table, one for each byte value.
const BYTES: usize = 256;

/// A conversion of single elements.
#[derive(Clone, Debug)]
pub(super) enum Convert {
    Cast(Cast),
    Look(Lookup),
}

/// The result for each byte value.
#[derive(Clone, Debug)]
pub(super) struct Lookup {
    to: Dtype,
    table: Arc<[u8]>,
}

impl Lookup {
    /// Takes 256 elements of a type; None for any other number.
    pub(super) fn new(to: Dtype, table: Vec<u8>) -> Option<Lookup> {
        let is_whole = table.len() == BYTES * to.itemsize();
        is_whole.then(|| Lookup {
            to,
            table: table.into(),
        })
    }

    fn run(&self, source: &[u8], out: &mut [u8]) {
        match self.to.itemsize() {
            1 => self.copy::<1>(source, out),
            2 => self.copy::<2>(source, out),
            4 => self.copy::<4>(source, out),
            8 => self.copy::<8>(source, out),
            _ => self.copy::<16>(source, out),
        }
    }

    fn copy<const N: usize>(&self, source: &[u8], out: &mut [u8]) {
        let (elements, _) = self.table.as_chunks::<N>();
        let (places, _) = out.as_chunks_mut::<N>();
        for (&byte, place) in source.iter().zip(places) {
            *place = elements[usize::from(byte)];
        }
    }
}

impl Convert {
    /// Converts the elements of `source` to `out`, which must have room for as many.
    pub(super) fn run(&self, source: &[u8], out: &mut [u8]) {
        match self {
            Convert::Cast(cast) => cast.run(source, out),
            Convert::Look(lookup) => lookup.run(source, out),
        }
    }
}
