//! Any bytes as a WebP.
#![no_main]

use _lib::decode::Format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|encoded: &[u8]| fastload_fuzz::check(Format::WebP, encoded));
