//! Inflates raw deflate streams, the compression of zip members.

use std::cell::RefCell;

use zlib_rs::{Inflate, InflateFlush, Status};

use crate::error::{Error, Result};

/// Window bits for raw deflate with the longest window.
const WINDOW_BITS: u8 = 15;

thread_local! {
    static STATE: RefCell<Inflate> = RefCell::new(Inflate::new(false, WINDOW_BITS));
}

/// Inflates `compressed` into `out`; returns the number of bytes, and true if the stream ends there.
///
/// # Errors
///
/// [`Error::Decode`]: it is not a deflate stream.
pub(super) fn inflate(compressed: &[u8], out: &mut [u8]) -> Result<(usize, bool)> {
    STATE.with_borrow_mut(|state| {
        state.reset(false);
        let (mut read, mut made) = (0, 0);
        loop {
            let status =
                state.decompress(&compressed[read..], &mut out[made..], InflateFlush::NoFlush);
            let status = status.map_err(|_| Error::decode("its compressed bytes are damaged"))?;
            let (before, now) = ((read, made), (state.total_in(), state.total_out()));
            (read, made) = (now.0 as usize, now.1 as usize);
            if status == Status::StreamEnd {
                return Ok((made, true));
            }
            if before == (read, made) {
                return Ok((made, false));
            }
        }
    })
}
