//! Any bytes as a Parquet file, of which the column `a` is read.
#![no_main]

use std::sync::Arc;

use _lib::column::{Column, Kind, Scratch};
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
    let layout = column.layout();
    for index in 0..column.len().min(ROWS) {
        let read = match layout.kind {
            Kind::Text | Kind::Bytes => column.bytes(&[index]).map(drop),
            _ => column.shape(index).and_then(|shape| {
                let elements: usize = shape.unwrap_or_default().iter().product();
                let mut out = vec![0; elements * layout.dtype.itemsize()];
                column.gather(&[index], &mut Scratch::default(), &mut out)
            }),
        };
        if read.is_err() {
            return;
        }
    }
}
