//! Deliberate bugs that the soak test must find.
//!
//! Without the feature `planted`, which no wheel has, [`planted`] is `false` at compile time and the bugs are
//! optimised out. With it, the environment variable `FASTLOAD_PLANTED` names the one bug of this process and
//! of the processes that it starts. The soak's proof builds that library separately.

/// A bug of a class that happens in practice, each at one place in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A dropped lease keeps its memory.
    LeakedLease,
    /// A waiting consumer is not woken when its batch is ready.
    LostWakeUp,
    /// The share of a dropped tensor in its slot stays counted.
    MissingRelease,
    /// The second of two shards starts one sample late.
    ShardOffByOne,
    /// A worker writes to a slot that its parent still reads.
    SlotReused,
    /// One byte of a rare batch is wrong.
    WrongByte,
    /// No thread gets work where the depth is 1.
    DeadlockAtDepthOne,
    /// Of two ready batches, the later one is handed over first.
    OrderSwap,
}

/// Returns true if `bug` is to strike now.
#[cfg(not(feature = "planted"))]
#[inline]
pub(crate) const fn planted(_bug: Bug) -> bool {
    false
}

/// Returns true if `bug` is to strike now.
#[cfg(feature = "planted")]
pub(crate) fn planted(bug: Bug) -> bool {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering}; // loom's atomics cannot be static

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

    /// Returns true if the bug strikes at its `call`-th opportunity, counted from 0.
    fn strikes(self, call: u64) -> bool {
        match self {
            Bug::ShardOffByOne => true,
            Bug::DeadlockAtDepthOne => call >= 500, // permanent: one missed turn would only delay a batch
            Bug::LostWakeUp => call % 10 == 9,
            Bug::LeakedLease | Bug::MissingRelease | Bug::OrderSwap => call % 200 == 199,
            Bug::SlotReused => call % 500 == 499,
            Bug::WrongByte => call % 5000 == 4999,
        }
    }
}
