//! Any bytes as a PNG, with the checksums that its chunks should have: damage would end there otherwise.
#![no_main]

use _lib::decode::Format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|encoded: &[u8]| {
    let mut repaired = encoded.to_vec();
    repair(&mut repaired);
    fastload_fuzz::check(Format::Png, &repaired);
});

/// Writes the right checksum after each chunk that is complete.
fn repair(encoded: &mut [u8]) {
    let mut at = 8;
    while let Some(&[l0, l1, l2, l3]) = encoded.get(at..at + 4) {
        let length = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
        let end = at + 8 + length;
        if end + 4 > encoded.len() {
            return;
        }
        let sum = crc32fast::hash(&encoded[at + 4..end]);
        encoded[end..end + 4].copy_from_slice(&sum.to_be_bytes());
        at = end + 4;
    }
}
