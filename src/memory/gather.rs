//! Copies rows of fixed size from anywhere in an array into consecutive memory.
//!
//! The rows of a shuffled epoch are one cache miss after the other. Prefetching a row some steps before it is
//! copied lets the memory system work on several at once.
#![allow(unsafe_code)]

use std::iter::repeat;

use super::View;

/// Number of rows to prefetch ahead.
const AHEAD: usize = 16;
/// Rows up to this many bytes are prefetched whole, longer ones by their first cache lines.
const PREFETCH_BYTES: usize = 512;
const LINE: usize = 64;

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
