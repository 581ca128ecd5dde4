//! Elements of another type, made while they are copied: by a cast, or by a table of what each byte becomes.

use std::sync::Arc;

use super::Cast;
use crate::memory::Dtype;

/// How many elements a table has, one for each byte.
const BYTES: usize = 256;

/// A conversion of elements one by one.
#[derive(Clone, Debug)]
pub(super) enum Convert {
    Cast(Cast),
    Look(Lookup),
}

/// What each byte becomes.
#[derive(Clone, Debug)]
pub(super) struct Lookup {
    to: Dtype,
    table: Arc<[u8]>,
}

impl Lookup {
    /// Takes 256 elements of a type; None if they are more or fewer.
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
    /// Type of the elements that are made.
    pub(super) fn to(&self) -> Dtype {
        match self {
            Convert::Cast(cast) => cast.to(),
            Convert::Look(lookup) => lookup.to,
        }
    }

    /// Converts the elements of `source` into `out`, which has room for as many.
    pub(super) fn run(&self, source: &[u8], out: &mut [u8]) {
        match self {
            Convert::Cast(cast) => cast.run(source, out),
            Convert::Look(lookup) => lookup.run(source, out),
        }
    }
}
