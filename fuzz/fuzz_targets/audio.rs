//! Any bytes as a recording: a part of it is that part of the whole. Of MP3 only the length is: its frames
//! have no checksum, and what a damaged one takes of earlier ones depends on where decoding begins.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use _lib::Result;
use _lib::column::Blobs;
use _lib::format::{Audio, Depth, Output, Span};
use fastload_fuzz::sample;
use libfuzzer_sys::fuzz_target;

static PATH: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("fastload-{}.audio", std::process::id())));

const OUTPUT: Output = Output {
    depth: Depth::F32,
    mono: true,
};

/// Decodes a part of the file; see [`sample`].
fn decode(span: Span) -> Result<(Vec<usize>, Vec<u8>)> {
    let path = PATH.to_string_lossy().into_owned();
    let blobs = Blobs::new(std::iter::once(path).collect());
    let (audio, blobs) = Audio::open(&blobs, vec![span], OUTPUT, None, &mut |_| Ok(()))?;
    sample(&audio, &blobs)
}

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(&*PATH, bytes).expect("a file that can be written");
    let Ok((shape, whole)) = decode(Span::All) else {
        return;
    };
    let Some(&frames) = shape.first() else {
        return; // a large recording, which is not decoded
    };
    let (start, count) = (frames / 3, frames / 3);
    let span = Span::Frames {
        start: start.cast_signed() as i64,
        count: Some(count as u64),
    };
    let (_, part) = decode(span).expect("a part of what can be decoded");
    let range = start * 4..(start + count) * 4;
    if bytes.starts_with(b"ID3") || bytes.first() == Some(&0xff) {
        assert_eq!(part.len(), range.len());
    } else {
        assert_eq!(part, whole[range]);
    }
});
