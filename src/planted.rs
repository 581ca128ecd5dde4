//! Bugs on purpose: what the soak must find.
//!
//! Without the feature `planted`, which no wheel has, [`planted`] is `false` at compile time and nothing of
//! a bug is left. With it, the environment variable `FASTLOAD_PLANTED` names the one bug of this process
//! and of those that it starts. The soak's proof builds that library apart.

/// A bug of a real class, each at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A dropped lease does not give its memory back.
    LeakedLease,
    /// A consumer that waits is not told that its batch is there.
    LostWakeUp,
    /// The share of a dropped tensor in its slot stays counted.
    MissingRelease,
    /// The second of two shards begins one sample late.
    ShardOffByOne,
    /// A worker writes to a slot that its parent still reads.
    SlotReused,
    /// One byte of a rare batch is wrong.
    WrongByte,
    /// Nobody may work where the depth is 1.
    DeadlockAtDepthOne,
    /// Of two batches that are ready, the later comes first.
    OrderSwap,
}

/// Returns true where `bug` is to strike this time.
#[cfg(not(feature = "planted"))]
#[inline]
pub(crate) const fn planted(_bug: Bug) -> bool {
    false
}

/// Returns true where `bug` is to strike this time.
#[cfg(feature = "planted")]
pub(crate) fn planted(bug: Bug) -> bool {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering}; // loom's cannot be static

    static NAME: OnceLock<Option<String>> = OnceLock::new();
    static CALLS: AtomicU64 = AtomicU64::new(0);

    let name = NAME.get_or_init(|| std::env::var("FASTLOAD_PLANTED").ok());
    if name.as_deref() != Some(bug.name()) {
        return false;
    }
    bug.strikes(CALLS.fetch_add(1, Ordering::Relaxed))
}

#[cfg(feature = "planted")]
impl Bug {
    fn name(self) -> &'static str {
        match self {
            Bug::LeakedLease => "leaked_lease",
            Bug::LostWakeUp => "lost_wake_up",
            Bug::MissingRelease => "missing_release",
            Bug::ShardOffByOne => "shard_off_by_one",
            Bug::SlotReused => "slot_reused",
            Bug::WrongByte => "wrong_byte",
            Bug::DeadlockAtDepthOne => "deadlock_at_depth_one",
            Bug::OrderSwap => "order_swap",
        }
    }

    /// Returns true if the bug strikes at its `call`-th opportunity, of which 0 is the first.
    fn strikes(self, call: u64) -> bool {
        match self {
            Bug::ShardOffByOne => true,
            Bug::DeadlockAtDepthOne => call >= 500, // for good: one missed turn would only be late
            Bug::LostWakeUp => call % 10 == 9,
            Bug::LeakedLease | Bug::MissingRelease | Bug::OrderSwap => call % 200 == 199,
            Bug::SlotReused => call % 500 == 499,
            Bug::WrongByte => call % 5000 == 4999,
        }
    }
}
