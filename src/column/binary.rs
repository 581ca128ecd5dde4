//! Bytes: those of all samples one after the other.

use super::{Ragged, Table, Values};
use crate::error::Result;

/// Bytes in memory, and where each sample begins and ends in them.
#[derive(Clone, Debug)]
pub struct Binary(Ragged);

impl Binary {
    /// Takes the bytes; None unless they are single ones in one block.
    pub fn new(bytes: Ragged) -> Option<Binary> {
        bytes.is_bytes().then_some(Binary(bytes))
    }
}

impl Table for Binary {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn values(&self) -> Values {
        Values::Bytes
    }

    fn bytes(&self, index: usize) -> Result<Box<[u8]>> {
        self.0.bytes(index).map(Box::from)
    }
}
