//! Any bytes as a table of text, with and without a header.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use _lib::column::Table;
use _lib::format::{Csv, Dialect, Stored};
use libfuzzer_sys::fuzz_target;

static PATH: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("fastload-{}.csv", std::process::id())));

fuzz_target!(|bytes: &[u8]| {
    let path = PATH.to_str().expect("a path of text");
    std::fs::write(path, bytes).expect("a file that can be written");
    for has_header in [false, true] {
        let dialect = Dialect {
            delimiter: b',',
            quote: Some(b'"'),
            missing: ["", "NA"].map(|text| text.as_bytes().into()).into(),
        };
        let opened = Csv::open(path, dialect, has_header, None, &|_| None, &mut |_, _| {
            Ok(())
        });
        let Ok(csv) = opened else {
            continue;
        };
        let (names, columns) = csv.into_parts();
        assert_eq!(names.len(), columns.len());
        let lens = columns.iter().map(|column| match column {
            Stored::Numbers(rows) => rows.len(),
            Stored::Text(texts) => {
                for index in 0..texts.len() {
                    let text = texts.bytes(index).unwrap_or_default();
                    assert!(String::from_utf8(text.into_vec()).is_ok());
                }
                texts.len()
            }
        });
        let lens: Vec<usize> = lens.collect();
        assert!(lens.iter().all(|&len| len == lens[0]));
    }
});
