//! Any bytes as a line of JSON: what is found in it is JSON itself, and becomes a value or nothing.
#![no_main]

use std::sync::LazyLock;

use _lib::format::json::{Fields, Value};
use _lib::memory::Dtype;
use libfuzzer_sys::fuzz_target;

static FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    let path = |keys: &[&str]| keys.iter().map(ToString::to_string).collect();
    Fields::new(&[path(&["a"]), path(&["a", "b"]), path(&["é"]), path(&[])])
});

fuzz_target!(|line: &[u8]| {
    let (mut found, mut whole) = (Vec::new(), Vec::new());
    if FIELDS.find(line, &mut found).is_err() {
        return;
    }
    assert!(found.last().is_some_and(Option::is_some));
    for place in found.into_iter().flatten() {
        let raw = &line[place];
        assert!(FIELDS.find(raw, &mut whole).is_ok());
        assert_eq!(whole.last().cloned().flatten(), Some(0..raw.len()));
        let value = Value::of(raw);
        let _ = value.text();
        let elements = value.elements().into_iter().flatten();
        for element in elements.chain([value]) {
            for dtype in [
                Dtype::Bool,
                Dtype::UInt8,
                Dtype::Int64,
                Dtype::Float32,
                Dtype::Float64,
            ] {
                let _ = element.write(dtype, &mut [0; 8]);
            }
        }
    }
});
