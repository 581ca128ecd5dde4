//! Any bytes as the kept index of a file: whatever it says, lines lie within their file.
#![no_main]

use std::fs::File;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::{Duration, UNIX_EPOCH};

use _lib::column::{Lines, Paths};
use libfuzzer_sys::fuzz_target;

/// When the file was changed last, in seconds since 1970, so that indices kept in a corpus stay its own.
const CHANGED_S: u64 = 1_000_000_000;

/// The file and its index.
static FILE: LazyLock<(PathBuf, PathBuf)> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("fastload-{}.jsonl", std::process::id()));
    std::fs::write(&path, b"{}\n\n [1]\n2").expect("a file that can be written");
    let file = File::options().write(true).open(&path);
    let changed = UNIX_EPOCH + Duration::from_secs(CHANGED_S);
    file.and_then(|file| file.set_modified(changed))
        .expect("a file whose time can be set");
    let index = path.with_extension("index");
    assert_eq!(open(&path, &index), [0..5, 5..9, 9..10]);
    (path, index)
});

fuzz_target!(|bytes: &[u8]| {
    let (path, index) = &*FILE;
    let mut kept = bytes.to_vec();
    if let Some((body, sum)) = kept.split_last_chunk_mut::<4>() {
        let is_whole = body.first().is_some_and(|byte| byte % 2 == 0); // half of them with the right sum
        if is_whole {
            *sum = crc32fast::hash(body).to_le_bytes();
        }
    }
    std::fs::write(index, kept).expect("an index that can be written");
    let lines = open(path, index);
    assert!(
        lines
            .iter()
            .all(|line| line.start < line.end && line.end <= 10)
    );
});

fn open(path: &std::path::Path, index: &std::path::Path) -> Vec<std::ops::Range<u64>> {
    let paths = Paths::from_iter([path.to_str().expect("a path of text")]);
    let lines = Lines::open(paths, &[index.to_owned()], &mut |_, _| Ok(())).expect("lines");
    (0..lines.len()).map(|line| lines.place(line).1).collect()
}
