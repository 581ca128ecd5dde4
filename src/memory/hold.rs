//! What is still read after its owner has given it up.
//!
//! Owns memory that was exchanged for other memory ([`View::relocate`](super::View::relocate)), until every
//! reader that may have looked it up before is done. Readers take a [`Hold`] and no lock: each link of a chain
//! has what was given up while it was the last one, and the link behind it, so that whoever holds a link
//! keeps everything that was given up since.

use std::any::Any;
use std::mem;
use std::sync::{LazyLock, OnceLock};

use crate::fork::Renewed;
use crate::sync::{Arc, Mutex, lock};

/// The last link; a forked child has no readers, and begins a chain of its own.
static LAST: LazyLock<Renewed<Mutex<Hold>>> = LazyLock::new(|| Renewed::new(Mutex::default));

/// A reader's share in all memory that is given up while it has this.
#[derive(Clone, Debug, Default)]
pub struct Hold(Arc<Link>);

#[derive(Debug, Default)]
struct Link(OnceLock<(Box<dyn Any + Send + Sync>, Hold)>);

impl Hold {
    /// Begins to read.
    pub fn take() -> Hold {
        lock(LAST.get()).clone()
    }

    /// Returns whether something reads.
    pub fn is_taken() -> bool {
        Arc::strong_count(&lock(LAST.get()).0) > 1
    }
}

/// Keeps `memory`, which nobody looks up any more, as long as somebody reads who may have done so before.
pub fn give_up(memory: Box<dyn Any + Send + Sync>) {
    let next = Hold::default();
    let before = mem::replace(&mut *lock(LAST.get()), next.clone());
    // set once: this call alone has replaced it
    let unset = before.0.0.set((memory, next));
    drop((before, unset)); // frees the memory if nobody reads, without the lock
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn memory_is_kept_for_those_who_read() {
        let kept = [Arc::new(1), Arc::new(2), Arc::new(3)];
        let is_kept = |at: usize| Arc::strong_count(&kept[at]) == 2;
        let early = Hold::take();
        give_up(Box::new(kept[0].clone()));
        assert!(is_kept(0));
        let late = Hold::take();
        give_up(Box::new(kept[1].clone()));
        assert!(is_kept(1));
        drop(late);
        assert!(is_kept(0) && is_kept(1), "an early reader may see both");
        drop(early);
    }
}
