//! Pads large batches of Python's samples on several threads.
//!
//! Owns the division of the samples: neighbours, a few pieces for each thread.

use super::array::{Array, Side};
use super::pad::Layout;
use crate::parallel;
use crate::sync::{Mutex, lock};

/// Bytes that justify one more thread: writing them takes longer than waking it.
const PART: usize = if cfg!(miri) { 1 << 10 } else { 1 << 20 };

/// Pieces per thread, because samples differ in length.
const PIECES: usize = 4;

impl Layout {
    /// Writes samples as [`Layout::write`] does, on up to `threads` threads, including the caller.
    pub fn write_by(
        &self,
        threads: usize,
        samples: &[Array<'_>],
        side: Side,
        fill: &[u8],
        out: &mut [u8],
    ) {
        let threads = threads.min(out.len() / PART).max(1);
        if threads == 1 {
            return self.write(samples.iter().copied(), side, fill, out);
        }
        let each = samples.len().div_ceil(PIECES * threads).max(1);
        let place = out.len() / samples.len().max(1);
        let parts = samples
            .chunks(each)
            .zip(out.chunks_mut((each * place).max(1)));
        let parts = Mutex::new(parts);
        let next = || lock(&parts).next();
        parallel::run(threads, &|| {
            while let Some((samples, out)) = next() {
                self.write(samples.iter().copied(), side, fill, out);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collate::{Fill, Pad, Sizes};

    #[test]
    fn any_number_of_threads_writes_the_same() {
        let pad = Pad {
            fill: Fill::Int(7),
            side: Side::Left,
            dims: Some(vec![0]),
            named: true,
            sizes: Sizes::default(),
        };
        let step = PART / 17;
        let longest = 10 * step;
        let shapes: Vec<[usize; 1]> = (0..11).map(|n| [n * step]).collect();
        let layout = pad.layout(shapes.iter().map(|shape| &shape[..])).unwrap();
        let bytes: Vec<u8> = (0..longest).map(|n| (n % 251) as u8).collect();
        let samples: Vec<Array<'_>> = shapes
            .iter()
            .map(|shape| Array {
                bytes: &bytes,
                first: 0,
                shape,
                strides: &[1],
            })
            .collect();
        let written = [1, 2, 3, 64].map(|threads| {
            let mut out = vec![0; layout.shape[0] * samples.len()];
            layout.write_by(threads, &samples, Side::Left, &[7], &mut out);
            out
        });
        assert_eq!(&written[0][..longest], vec![7; longest]);
        assert_eq!(written[0][10 * longest..], bytes);
        assert!(written.iter().all(|other| *other == written[0]));
    }
}
