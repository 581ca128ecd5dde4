//! Blocks of bytes that several threads copy from one place to another.
//!
//! Owns the word on which piece was claimed: every piece is copied by one thread, once. Refuses to keep
//! the memory alive: whoever makes a transfer does. Invariant: a piece that nobody has claimed is not
//! touched, and [`Transfer::is_over`] tells when none will be any more.
#![allow(unsafe_code)]

use std::fmt;
use std::ptr::copy_nonoverlapping;

use crate::sync::atomic::{AtomicUsize, Ordering};

/// Most bytes of a piece: some hundred microseconds of copying.
const PIECE: usize = 1 << 20;

/// From where, to where, and how many bytes.
struct Piece(*const u8, *mut u8, usize);

/// See the module's documentation.
pub struct Transfer {
    pieces: Vec<Piece>,
    claimed: AtomicUsize,
    over: AtomicUsize,
}

// SAFETY: the pointers are used in `step` alone, by one thread for each piece; by the promise of `new` they
// are valid wherever that thread runs.
unsafe impl Send for Transfer {}
// SAFETY: as above.
unsafe impl Sync for Transfer {}

impl Transfer {
    /// Plans to copy blocks: from an address, to an address, so many bytes.
    ///
    /// # Safety
    ///
    /// Until the transfer is over, the bytes are alive at both ends, nobody else writes them, and nobody
    /// reads those that are copied to. No two blocks overlap where they are copied to.
    pub unsafe fn new(blocks: impl IntoIterator<Item = (usize, usize, usize)>) -> Self {
        let pieces = |(from, to, len): (usize, usize, usize)| {
            let pieces = (0..len).step_by(PIECE);
            pieces.map(move |at| {
                let (from, to) = (from + at, to + at);
                Piece(from as *const u8, to as *mut u8, PIECE.min(len - at))
            })
        };
        Self {
            pieces: blocks.into_iter().flat_map(pieces).collect(),
            claimed: AtomicUsize::new(0),
            over: AtomicUsize::new(0),
        }
    }

    /// Returns how many pieces there are.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Copies a piece that nobody has claimed; tells whether there was one.
    pub fn step(&self) -> bool {
        // relaxed: a number is given out once, and `new` came before
        let claimed = self.claimed.fetch_add(1, Ordering::Relaxed);
        let Some(&Piece(from, to, len)) = self.pieces.get(claimed) else {
            // so that the count does not grow without bound
            self.claimed.store(self.pieces.len(), Ordering::Relaxed);
            return false;
        };
        // SAFETY: by the promise of `new`; this piece was claimed by this call alone.
        unsafe { copy_nonoverlapping(from, to, len) };
        self.over.fetch_add(1, Ordering::Release);
        true
    }

    /// Claims what nobody has begun, so that it is never copied.
    pub fn cancel(&self) {
        let rest = self.claimed.swap(self.pieces.len(), Ordering::Relaxed);
        let rest = self.pieces.len().saturating_sub(rest);
        self.over.fetch_add(rest, Ordering::Release);
    }

    /// Tells whether no piece is to be copied, or being copied.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire) >= self.pieces.len()
    }
}

impl fmt::Debug for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transfer")
            .field("pieces", &self.pieces.len())
            .field("claimed", &self.claimed)
            .field("over", &self.over)
            .finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn all_blocks_are_copied() {
        let mut from = vec![7; 2 * PIECE + 5];
        for at in [0, PIECE - 1, PIECE, 2 * PIECE + 4] {
            from[at] = (at % 5) as u8;
        }
        let mut to = vec![0; from.len() + 3];
        let at = (from.as_ptr().addr(), to.as_mut_ptr().expose_provenance());
        from.as_ptr().expose_provenance();
        // SAFETY: both vectors live, and nobody else uses them, until the threads have ended.
        let transfer = unsafe { Transfer::new([(at.0, at.1, from.len()), (at.0, 0, 0)]) };
        assert_eq!(transfer.pieces(), 3);
        assert!(!transfer.is_over());
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| while transfer.step() {});
            }
        });
        assert!(transfer.is_over());
        assert_eq!(to[..from.len()], from);
        assert_eq!(to[from.len()..], [0; 3]);
    }

    #[test]
    fn what_is_cancelled_is_not_copied() {
        let from = vec![1_u8; 2 * PIECE];
        let mut to = vec![0_u8; 2 * PIECE];
        let (source, target) = (from.as_ptr(), to.as_mut_ptr());
        let block = (source.expose_provenance(), target.expose_provenance());
        // SAFETY: as above, and there is one thread.
        let transfer = unsafe { Transfer::new([(block.0, block.1, from.len())]) };
        assert!(transfer.step());
        transfer.cancel();
        assert!(transfer.is_over());
        assert!(!transfer.step());
        assert_eq!((to[0], to[PIECE]), (1, 0));
    }
}
