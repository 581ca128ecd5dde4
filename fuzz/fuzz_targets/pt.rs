//! Any bytes as the pickle of a file of `torch.save` with two storages of 64 bytes.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use _lib::column::Blobs;
use _lib::format::Arrays;
use fastload_fuzz::sample;
use libfuzzer_sys::fuzz_target;

static PATH: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("fastload-{}.pt", std::process::id())));

fuzz_target!(|pickle: &[u8]| {
    let members: [(&str, &[u8]); 5] = [
        ("a/data.pkl", pickle),
        ("a/byteorder", b"little"),
        ("a/data/0", &[1; 64]),
        ("a/data/1", &[2; 64]),
        ("a/version", b"3\n"),
    ];
    std::fs::write(&*PATH, archive(&members)).expect("a file that can be written");
    for key in [None, Some("x")] {
        let path = PATH.to_string_lossy().into_owned();
        let blobs = Blobs::new(std::iter::once(path).collect());
        if let Ok((pt, blobs)) = Arrays::pt(&blobs, key, &mut |_| Ok(())) {
            sample(&pt, &blobs).expect("the elements of a tensor that was placed");
        }
    }
});

/// A zip file of stored members, without checksums.
fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, contents) in members {
        let offset = file.len() as u32;
        let len = (contents.len() as u32).to_le_bytes();
        let mut about = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        about.extend([len, len].as_flattened());
        about.extend([name.len() as u8, 0, 0, 0]);
        file.extend(b"PK\x03\x04");
        file.extend(&about);
        file.extend(name.as_bytes());
        file.extend(*contents);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&about);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let count = members.len() as u8;
    let (start, len) = (file.len() as u32, directory.len() as u32);
    file.extend(directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend([count, 0, count, 0]);
    file.extend([len.to_le_bytes(), start.to_le_bytes()].as_flattened());
    file.extend([0, 0]);
    file
}
