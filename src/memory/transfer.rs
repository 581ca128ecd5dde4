//! Blocks of bytes that several threads copy from one place to another.
//!
//! Owns the claims: every piece is copied by one thread, once. Refuses to keep the memory alive: the caller
//! of [`Transfer::new`] does. Invariant: a piece that no thread has claimed is not touched, and after
//! [`Transfer::is_over`] returns true no piece is touched any more.
#![allow(unsafe_code)]

use std::ptr::copy_nonoverlapping;

use crate::sync::atomic::{AtomicUsize, Ordering};

/// Maximum size of a piece, in bytes: some hundred microseconds of copying.
const PIECE: usize = 1 << 20;

/// Source address, target address, length in bytes.
#[derive(Debug)]
struct Piece(*const u8, *mut u8, usize);

/// See the module's documentation.
#[derive(Debug)]
pub struct Transfer {
    pieces: Vec<Piece>,
    claimed: AtomicUsize,
    over: AtomicUsize,
}

// SAFETY: only `step` uses the pointers, from one thread for each piece; the caller of `new` promises that
// they are valid on any thread.
unsafe impl Send for Transfer {}
// SAFETY: as above.
unsafe impl Sync for Transfer {}

impl Transfer {
    /// Plans to copy blocks, each a source address, a target address and a length in bytes.
    ///
    /// # Safety
    ///
    /// Until the transfer is over, the bytes are alive at both ends, nothing else writes them, and nothing
    /// reads the targets. No two targets overlap.
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

    /// Returns the number of pieces.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Copies a piece that no thread has claimed; returns true if there was one.
    pub fn step(&self) -> bool {
        // Relaxed: each number is given out once, and `new` happened before.
        let claimed = self.claimed.fetch_add(1, Ordering::Relaxed);
        let Some(&Piece(from, to, len)) = self.pieces.get(claimed) else {
            // Keeps the count from growing without bound.
            self.claimed.store(self.pieces.len(), Ordering::Relaxed);
            return false;
        };
        // SAFETY: by the promise of `new`; only this call claimed this piece.
        unsafe { copy_nonoverlapping(from, to, len) };
        // Release pairs with the Acquire of `is_over`: the copy is visible once all pieces are over.
        self.over.fetch_add(1, Ordering::Release);
        true
    }

    /// Claims all pieces that no thread has begun, so that they are never copied.
    pub fn cancel(&self) {
        let rest = self.claimed.swap(self.pieces.len(), Ordering::Relaxed);
        let rest = self.pieces.len().saturating_sub(rest);
        self.over.fetch_add(rest, Ordering::Release);
    }

    /// Returns true once no piece is being copied or will be.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire) >= self.pieces.len()
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
        // SAFETY: until the threads have ended, both vectors live, and nothing else uses them.
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
    fn cancelled_pieces_are_not_copied() {
        let from = vec![1_u8; 2 * PIECE];
        let mut to = vec![0_u8; 2 * PIECE];
        let (source, target) = (from.as_ptr(), to.as_mut_ptr());
        let block = (source.expose_provenance(), target.expose_provenance());
        // SAFETY: as above, with one thread.
        let transfer = unsafe { Transfer::new([(block.0, block.1, from.len())]) };
        assert!(transfer.step());
        transfer.cancel();
        assert!(transfer.is_over());
        assert!(!transfer.step());
        assert_eq!((to[0], to[PIECE]), (1, 0));
    }
}
