//! Text: the letters of all samples one after the other.

use super::Ragged;
use crate::error::{Error, Result};

/// UTF-8 bytes, and where each sample begins and ends in them.
#[derive(Clone, Debug)]
pub struct Text(Ragged);

impl Text {
    /// Takes the letters; None unless they are single bytes in one block.
    pub fn new(letters: Ragged) -> Option<Text> {
        letters.is_bytes().then_some(Text(letters))
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text at `index`, which must be below [`Text::len`].
    ///
    /// # Errors
    ///
    /// [`Error::Utf8`]: its bytes are no UTF-8.
    pub fn get(&self, index: usize) -> Result<&str> {
        let text = std::str::from_utf8(self.0.bytes(index)?);
        text.map_err(|source| Error::Utf8 { index, source })
    }
}
