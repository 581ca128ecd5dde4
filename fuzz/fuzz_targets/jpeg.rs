//! Any bytes as a JPEG.
#![no_main]

use _lib::decode::Format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|encoded: &[u8]| fastload_fuzz::check(Format::Jpeg, encoded));
