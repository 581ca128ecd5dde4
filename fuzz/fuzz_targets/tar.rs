//! Any bytes as a tar file: its members lie in it, and each belongs to a sample.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use _lib::archive::index_tar;
use libfuzzer_sys::fuzz_target;

static PATH: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("fastload-{}.tar", std::process::id())));

fuzz_target!(|bytes: &[u8]| {
    let mut repaired = bytes.to_vec();
    if bytes.first().is_some_and(|first| first % 2 == 0) {
        repair(&mut repaired); // damage would end at the checksum otherwise
    }
    std::fs::write(&*PATH, &repaired).expect("a file that can be written");
    let Ok((members, stamp)) = index_tar(&PATH) else {
        return;
    };
    assert_eq!(stamp.len(), repaired.len() as u64);
    let names: Vec<(String, usize)> = members
        .extensions()
        .map(|(name, count)| (name.to_owned(), count))
        .collect();
    for (name, count) in names {
        let spans = members.find(&[name]);
        assert_eq!(spans.len(), members.len());
        assert_eq!(spans.iter().flatten().count(), count);
        for span in spans.into_iter().flatten() {
            assert!(
                span.start
                    .checked_add(span.len)
                    .is_some_and(|end| end <= stamp.len())
            );
        }
    }
});

/// Writes the right checksum into every block that begins like a header.
fn repair(bytes: &mut [u8]) {
    for block in bytes.as_chunks_mut::<512>().0 {
        if !block.get(257..262).is_some_and(|magic| magic == b"ustar") {
            continue;
        }
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
}
