//! Any bytes as the index of a Megatron file.
#![no_main]

use _lib::format::Megatron;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(index) = Megatron::parse(bytes) else {
        return;
    };
    assert_eq!(index.starts.len(), index.lengths.len());
    assert!(index.starts.len() * 12 <= bytes.len());
    if let Ok(documents) = index.documents() {
        assert_eq!(documents.starts.len(), documents.lengths.len());
    }
});
