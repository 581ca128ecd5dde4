//! ID3 tags before and after the frames of FLAC and MP3 files.

/// Returns the size of the `ID3v2` tag at the start of `bytes`; 0 if there is none.
pub(super) fn len(bytes: &[u8]) -> u64 {
    let &[b'I', b'D', b'3', _, _, flags, a, b, c, d, ..] = bytes else {
        return 0;
    };
    let size = [a, b, c, d]
        .iter()
        .fold(0, |size, &seven| size << 7 | u64::from(seven & 0x7F));
    let footer = if flags & 0x10 == 0 { 0 } else { 10 };
    10 + size + footer
}

/// Returns the bytes without an `ID3v1` tag at their end.
pub(super) fn without_end(bytes: &[u8]) -> &[u8] {
    match bytes.split_last_chunk::<128>() {
        Some((rest, [b'T', b'A', b'G', ..])) => rest,
        _ => bytes,
    }
}
