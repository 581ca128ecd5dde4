//! Frees memory only after every reader that may still use it.
//!
//! Owns memory that was exchanged for other memory ([`View::relocate`](super::View::relocate)) until every
//! reader that may have looked up the old address is done. Readers take a [`ReadGuard`] and no lock. The
//! guards form a chain: each link owns what was retired while it was the last one, and the link behind it. So
//! a reader that holds one link keeps everything alive that was retired since.

use std::any::Any;
use std::mem;
use std::sync::{LazyLock, OnceLock};

use crate::fork::Renewed;
use crate::sync::{Arc, Mutex, lock};

/// The last link; a forked child has no readers, and starts a chain of its own.
static LAST: LazyLock<Renewed<Mutex<ReadGuard>>> = LazyLock::new(|| Renewed::new(Mutex::default));

/// Keeps all memory alive that is retired while this exists.
#[derive(Clone, Debug, Default)]
pub struct ReadGuard(Arc<Link>);

#[derive(Debug, Default)]
struct Link(OnceLock<(Box<dyn Any + Send + Sync>, ReadGuard)>);

impl ReadGuard {
    /// Starts to read.
    pub fn take() -> ReadGuard {
        lock(LAST.get()).clone()
    }

    /// Returns true if there is a reader.
    pub fn is_held() -> bool {
        Arc::strong_count(&lock(LAST.get()).0) > 1
    }
}

/// Drops `memory`, to which no new reader can get, after the last reader that may have its address.
pub fn drop_after_readers(memory: Box<dyn Any + Send + Sync>) {
    let next = ReadGuard::default();
    let before = mem::replace(&mut *lock(LAST.get()), next.clone());
    // Succeeds: only this call replaced that link.
    let unset = before.0.0.set((memory, next));
    drop((before, unset)); // frees the memory if there is no reader, outside of the lock
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn memory_is_kept_for_its_readers() {
        let kept = [Arc::new(1), Arc::new(2), Arc::new(3)];
        let is_kept = |at: usize| Arc::strong_count(&kept[at]) == 2;
        let early = ReadGuard::take();
        drop_after_readers(Box::new(kept[0].clone()));
        assert!(is_kept(0));
        let late = ReadGuard::take();
        drop_after_readers(Box::new(kept[1].clone()));
        assert!(is_kept(1));
        drop(late);
        assert!(is_kept(0) && is_kept(1), "an early reader may see both");
        drop(early);
    }
}
