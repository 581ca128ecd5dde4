//! Any bytes as a recording: a part of it is that part of the whole. Of MP3 only the length is: its frames
//! have no checksum, and what a damaged one takes of earlier ones depends on where decoding begins.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use _lib::column::Blobs;
use _lib::format::{Array, Audio, Depth, Output, Span, Target};
use _lib::{Error, Result};
use libfuzzer_sys::fuzz_target;

static PATH: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("fastload-{}.audio", std::process::id())));

const OUTPUT: Output = Output {
    depth: Depth::F32,
    mono: true,
};

/// Memory for one sample.
struct Row(Vec<u8>);

impl Target for Row {
    fn shaped(&mut self, shape: &[usize]) -> Result<&mut [u8]> {
        self.0 = vec![0; shape.iter().product::<usize>() * 4];
        Ok(&mut self.0)
    }
}

/// Decodes a part of the file.
fn decode(span: Span) -> Result<Vec<u8>> {
    let path = PATH.to_string_lossy().into_owned();
    let blobs = Blobs::new(std::iter::once(path).collect());
    let (audio, blobs) = Audio::open(&blobs, vec![span], OUTPUT, None, &mut |_| Ok(()))?;
    if audio.shape(0).is_none_or(|shape| shape[0] > 1 << 22) {
        return Err(Error::Abandoned); // would take long
    }
    let bytes = blobs.fetch(0, audio.part(0)?)?;
    let mut row = Row(Vec::new());
    audio.decode(0, &bytes, &mut row)?;
    Ok(row.0)
}

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(&*PATH, bytes).expect("a file that can be written");
    let Ok(whole) = decode(Span::All) else {
        return;
    };
    let frames = whole.len() as u64 / 4;
    let (start, count) = (frames / 3, frames / 3);
    let span = Span::Frames {
        start: start.cast_signed(),
        count: Some(count),
    };
    let part = decode(span).expect("a part of what can be decoded");
    let range = start as usize * 4..(start + count) as usize * 4;
    if bytes.starts_with(b"ID3") || bytes.first() == Some(&0xff) {
        assert_eq!(part.len(), range.len());
    } else {
        assert_eq!(part, whole[range]);
    }
});
