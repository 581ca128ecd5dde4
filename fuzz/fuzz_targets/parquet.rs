//! Any bytes as a Parquet file, of which the column `a` is read.
#![no_main]

use std::sync::Arc;

use _lib::column::{Table, Values};
use _lib::parquet::{Parquet, Tables};
use libfuzzer_sys::fuzz_target;

/// Bytes that are kept of decoded values.
const CACHE_BYTES: usize = 1 << 20;
/// Rows that are read.
const ROWS: usize = 256;

fuzz_target!(|bytes: &[u8]| {
    let name = format!("fastload-fuzz-{}.parquet", std::process::id());
    let path = std::env::temp_dir().join(name);
    if std::fs::write(&path, bytes).is_ok() {
        read(&path.to_string_lossy());
    }
});

fn read(path: &str) {
    let paths = [path].into_iter().collect();
    let Ok(tables) = Tables::open(paths, CACHE_BYTES, &mut |_| Ok(())) else {
        return;
    };
    let Ok(column) = Parquet::new(Arc::new(tables), "a") else {
        return;
    };
    for index in 0..column.len().min(ROWS) {
        let read = match column.values() {
            Values::Rows(dtype) => column.gather(&[index], &mut vec![0; dtype.itemsize()]),
            Values::Ragged(dtype) => column
                .rows_of(index)
                .and_then(|rows| column.gather(&[index], &mut vec![0; rows * dtype.itemsize()])),
            Values::Text | Values::Bytes => column.bytes(index).map(drop),
        };
        if read.is_err() {
            return;
        }
    }
}
