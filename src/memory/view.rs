//! The bytes of an array of another owner, shared for reading; rows copied from anywhere in them; and their memory,
//! which is freed only after every reader that may still use it.
//!
//! The rows of a shuffled epoch are one cache miss after the other. Prefetching a row some steps before it is
//! copied lets the memory system work on several at once.
//!
//! Owns memory that was exchanged for other memory ([`View::relocate`]) until every reader that may have looked up
//! the old address is done. Readers take a [`ReadGuard`] and no lock. The guards form a chain: each link owns what was
//! retired while it was the last one, and the link behind it. So a reader that holds one link keeps everything alive
//! that was retired since.
#![allow(unsafe_code)]

use std::any::Any;
use std::iter::repeat;
use std::mem;
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{LazyLock, OnceLock};

use crate::fork::Renewed;
use crate::sync::{Arc, Mutex, lock};

/// Number of rows to prefetch ahead.
const AHEAD: usize = 16;
/// Rows up to this many bytes are prefetched whole, longer ones by their first cache lines.
const PREFETCH_BYTES: usize = 512;
const LINE: usize = 64;

/// `len` bytes that live as long as their owner, which is dropped with the view.
///
/// An owner may move them. A reader of a view that can be moved takes a [`ReadGuard`],
/// which keeps alive what it may have looked up before.
#[derive(Debug)]
pub struct View {
    ptr: AtomicPtr<u8>,
    len: usize,
    /// Held to keep the memory alive.
    _owner: Box<dyn Any + Send + Sync>,
}

/// Numbers of which every byte is initialised.
pub trait Plain: sealed::Sealed + Send + Sync + 'static {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! plain {
    ($($number:ty)*) => {
        $(impl sealed::Sealed for $number {}
        impl Plain for $number {})*
    };
}

plain!(bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);

impl View {
    /// Shares the `len` bytes at `ptr`; `ptr` may be anything when `len` is 0.
    ///
    /// # Safety
    ///
    /// The bytes are initialised and stay in place until `owner` is dropped. Nothing writes them while they
    /// are read: a user who changes an array while it is loaded from gets torn values, as with every loader
    /// that reads in the background.
    pub unsafe fn new(ptr: *const u8, len: usize, owner: Box<dyn Any + Send + Sync>) -> Self {
        Self {
            ptr: AtomicPtr::new(ptr.cast_mut()),
            len,
            _owner: owner,
        }
    }

    /// Takes ownership of numbers, as bytes.
    pub fn owned<T: Plain>(numbers: Vec<T>) -> Self {
        let (ptr, len) = (numbers.as_ptr().cast(), size_of_val(numbers.as_slice()));
        // SAFETY: by `Plain` the numbers are initialised and have no gaps; they stay in place when the vector
        // moves, and nothing writes them.
        unsafe { View::new(ptr, len, Box::new(numbers)) }
    }

    /// Returns the address of the first byte.
    pub fn as_ptr(&self) -> *const u8 {
        self.ptr.load(Ordering::Acquire) // pairs with `relocate`: the new memory's contents are visible
    }

    /// Reads the bytes at `ptr` from now on.
    ///
    /// # Safety
    ///
    /// As [`View::new`] for `ptr`. The memory read so far is then passed to
    /// [`drop_after_readers`], and not freed otherwise.
    pub unsafe fn relocate(&self, ptr: *const u8) {
        self.ptr.store(ptr.cast_mut(), Ordering::Release);
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the `len` bytes at `offset`.
    ///
    /// # Panics
    ///
    /// If they do not lie within the view.
    pub fn bytes(&self, offset: usize, len: usize) -> &[u8] {
        let end = offset.checked_add(len);
        assert!(
            end.is_some_and(|end| end <= self.len),
            "{len} bytes at {offset} of a view of {} bytes",
            self.len
        );
        if len == 0 {
            return &[];
        }
        // SAFETY: offset < self.len, so the result lies within the array of `new`.
        let start = unsafe { self.as_ptr().add(offset) };
        // SAFETY: offset + len <= self.len: initialised, alive and unwritten by the promise of
        // `new`.
        unsafe { slice::from_raw_parts(start, len) }
    }
}

/// Copies the rows at `starts` (byte offsets into `source`), each `row_bytes` long, to `out`.
///
/// # Panics
///
/// If `out` is not exactly as large as the rows, or a row does not lie in `source`.
pub fn gather(source: &View, starts: &[usize], row_bytes: usize, out: &mut [u8]) {
    assert_eq!(out.len(), starts.len() * row_bytes, "rows and room differ");
    match row_bytes {
        0 => {}
        1 => fixed::<1>(source, starts, out),
        2 => fixed::<2>(source, starts, out),
        4 => fixed::<4>(source, starts, out),
        8 => fixed::<8>(source, starts, out),
        16 => fixed::<16>(source, starts, out),
        32 => fixed::<32>(source, starts, out),
        64 => fixed::<64>(source, starts, out),
        128 => fixed::<128>(source, starts, out),
        256 => fixed::<256>(source, starts, out),
        _ => any(source, starts, row_bytes, out),
    }
}

/// Copies rows of a size known at compile time: some register moves, no call.
fn fixed<const N: usize>(source: &View, starts: &[usize], out: &mut [u8]) {
    let (rows, _) = out.as_chunks_mut::<N>();
    let ahead = starts.iter().skip(AHEAD).map(Some).chain(repeat(None));
    for ((row, &start), ahead) in rows.iter_mut().zip(starts).zip(ahead) {
        if let Some(&ahead) = ahead {
            prefetch(source.bytes(ahead, N));
        }
        row.copy_from_slice(source.bytes(start, N));
    }
}

fn any(source: &View, starts: &[usize], row_bytes: usize, mut out: &mut [u8]) {
    let mut at = 0;
    while at < starts.len() {
        // A run of neighbours is one copy.
        let mut end = at + 1;
        while end < starts.len() && starts[end] == starts[end - 1] + row_bytes {
            end += 1;
        }
        if let Some(&ahead) = starts.get(at + AHEAD) {
            prefetch(source.bytes(ahead, row_bytes));
        }
        let (run, rest) = out.split_at_mut((end - at) * row_bytes);
        run.copy_from_slice(source.bytes(starts[at], run.len()));
        out = rest;
        at = end;
    }
}

/// Prefetches bytes that are read soon.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(PREFETCH_BYTES)];
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the address is valid, and a prefetch has no effect that the program can observe.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, LINE);
}

/// The last link; a forked child has no readers, and starts a chain of its own.
static LAST: LazyLock<Renewed<Mutex<ReadGuard>>> = LazyLock::new(|| Renewed::new(Mutex::default));

/// Keeps all memory alive that is retired while this exists.
#[derive(Clone, Debug, Default)]
pub struct ReadGuard(Arc<Link>);

#[derive(Debug, Default)]
struct Link(OnceLock<(Box<dyn Any + Send + Sync>, ReadGuard)>);

impl Drop for Link {
    /// Drops the chain link by link: as deep as it can be long, no stack is.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some((_memory, guard)) = next {
            next = Arc::into_inner(guard.0).and_then(|mut link| link.0.take());
        }
    }
}

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
    use std::sync::Arc;

    fn view_of(bytes: &Arc<Vec<u8>>) -> View {
        // SAFETY: the vector is not changed, and lives as long as the clone.
        unsafe { View::new(bytes.as_ptr(), bytes.len(), Box::new(Arc::clone(bytes))) }
    }

    #[test]
    fn reads_what_is_there_and_frees_the_owner() {
        let bytes = Arc::new(vec![1, 2, 3, 4, 5]);
        let view = view_of(&bytes);
        assert_eq!(view.bytes(1, 3), [2, 3, 4]);
        assert!(view.bytes(5, 0).is_empty());
        assert_eq!(Arc::strong_count(&bytes), 2);
        drop(view);
        assert_eq!(Arc::strong_count(&bytes), 1);
    }

    #[test]
    fn a_long_chain_is_dropped_without_a_deep_stack() {
        let guard = ReadGuard::take();
        for _ in 0..100_000 {
            drop_after_readers(Box::new(()));
        }
        drop(guard);
    }

    #[test]
    #[should_panic(expected = "2 bytes at 4 of a view of 5 bytes")]
    fn refuses_bytes_past_the_end() {
        view_of(&Arc::new(vec![0; 5])).bytes(4, 2);
    }

    #[test]
    #[should_panic(expected = "of a view of 5 bytes")]
    fn refuses_an_end_that_overflows() {
        view_of(&Arc::new(vec![0; 5])).bytes(usize::MAX, 2);
    }

    #[test]
    fn numbers_are_viewed_as_bytes() {
        let view = View::owned(vec![1_u16, 0x0203]);
        assert_eq!(
            view.bytes(0, 4),
            [1_u16, 0x0203].map(u16::to_ne_bytes).as_flattened()
        );
        assert_eq!(View::owned::<f64>(Vec::new()).len(), 0);
    }

    #[test]
    fn readers_keep_memory_that_was_moved() {
        const LEN: usize = if cfg!(miri) { 64 } else { 1 << 16 };
        let fresh = || vec![7_u8; LEN]; // not a `Box`: moving one would claim its bytes exclusively
        let mut home = fresh();
        // SAFETY: the bytes stay alive until they are retired, after the view was relocated.
        let view = Arc::new(unsafe { View::new(home.as_ptr(), LEN, Box::new(())) });
        std::thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    for _ in 0..20 {
                        let _guard = ReadGuard::take();
                        assert!(view.bytes(0, LEN).iter().all(|&byte| byte == 7));
                    }
                });
            }
            for _ in 0..20 {
                let next = fresh();
                // SAFETY: as above; the old bytes are retired on the next line.
                unsafe { view.relocate(next.as_ptr()) };
                drop_after_readers(Box::new(std::mem::replace(&mut home, next)));
            }
        });
    }

    #[test]
    fn an_empty_view_may_have_any_address() {
        // SAFETY: there are no bytes.
        let view = unsafe { View::new(std::ptr::null(), 0, Box::new(())) };
        assert_eq!(view.len(), 0);
        assert!(view.bytes(0, 0).is_empty());
    }
}

#[cfg(all(test, not(loom)))]
mod guard_tests {
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
