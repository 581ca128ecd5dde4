//! A decoded image whose memory is used again for the next one.

use crate::{Error, Result};

/// Bytes that may be read beyond the last pixel: vector loads take whole registers.
pub(super) const SLACK_BYTES: usize = 32;

/// Memory up to this size is kept, however small the next image is.
const KEPT_BYTES: usize = 64 << 20;

/// Rows of RGB, 8 bits each, without padding between rows.
#[derive(Debug, Default)]
pub struct Frame {
    height: usize,
    width: usize,
    /// At least `height * width * 3 + SLACK_BYTES` bytes once reset.
    bytes: Vec<u8>,
}

impl Frame {
    /// Gives the frame a size; its pixels are then anything.
    ///
    /// # Errors
    ///
    /// [`Error::Transform`] when there is no memory for it.
    pub fn reset(&mut self, height: usize, width: usize) -> Result<()> {
        let too_large = || Error::Transform {
            what: format!("make an image of {height}x{width} pixels"),
            reason: "there is not enough memory for it".into(),
        };
        let needed = height
            .checked_mul(width)
            .and_then(|pixels| pixels.checked_mul(3)?.checked_add(SLACK_BYTES))
            .ok_or_else(too_large)?;
        if self.bytes.len() > KEPT_BYTES && needed < self.bytes.len() / 4 {
            self.bytes = Vec::new(); // one huge image is no reason to hold its memory for ever
        }
        if let Some(more) = needed.checked_sub(self.bytes.len()) {
            self.bytes
                .try_reserve_exact(more)
                .map_err(|_| too_large())?;
            self.bytes.resize(needed, 0);
        }
        (self.height, self.width) = (height, width);
        Ok(())
    }

    /// Returns the number of rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Returns the number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the bytes of one row.
    pub fn stride(&self) -> usize {
        self.width * 3
    }

    /// Returns the pixels, row after row.
    pub fn pixels(&self) -> &[u8] {
        &self.bytes[..self.height * self.stride()]
    }

    /// Returns the pixels, to be written.
    pub fn pixels_mut(&mut self) -> &mut [u8] {
        let len = self.height * self.stride();
        &mut self.bytes[..len]
    }

    /// Returns the pixels and the slack behind them.
    pub(super) fn with_slack(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns all room for pixels that there is without growing.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        let len = self.bytes.len().saturating_sub(SLACK_BYTES);
        &mut self.bytes[..len]
    }
}
