//! Any bytes as a `.npy` file: some rows of it are those rows of the whole.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use _lib::column::Blobs;
use _lib::format::Arrays;
use fastload_fuzz::{check_rows, sample};
use libfuzzer_sys::fuzz_target;

static PATH: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("fastload-{}.npy", std::process::id())));

fuzz_target!(|bytes: &[u8]| {
    std::fs::write(&*PATH, bytes).expect("a file that can be written");
    check_rows(|rows| {
        let path = PATH.to_string_lossy().into_owned();
        let blobs = Blobs::new(std::iter::once(path).collect());
        let (npy, blobs) = Arrays::npy(&blobs, rows, &mut |_| Ok(()))?;
        sample(&npy, &blobs)
    });
});
