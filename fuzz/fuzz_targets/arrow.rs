//! Any bytes as the offsets and the values of an Arrow column, as they are given over in memory.
#![no_main]

use _lib::column::{Blobs, Column, Numbers, Offsets, Ragged, Rows, Scratch};
use _lib::memory::{Dtype, View};
use libfuzzer_sys::fuzz_target;

/// Returns the whole elements of `bytes`, one to a row.
fn rows(bytes: &[u8], dtype: Dtype) -> Rows {
    let (count, step) = (bytes.len() / dtype.itemsize(), dtype.itemsize() as isize);
    Rows::new(View::owned(bytes.to_vec()), 0, &[count], &[step], dtype)
        .expect("elements in `bytes`")
}

fuzz_target!(|bytes: &[u8]| {
    let [kind, count, rest @ ..] = bytes else {
        return;
    };
    let width = if kind % 2 == 0 {
        Dtype::Int32
    } else {
        Dtype::Int64
    };
    let element = match kind / 2 % 4 {
        0 => Dtype::UInt8,
        1 => Dtype::Float16,
        2 => Dtype::Int32,
        _ => Dtype::Float64,
    };
    let split = rest.len().min(usize::from(*count) * width.itemsize());
    let (offsets, values) = rest.split_at(split);
    let offsets = Numbers::new(rows(offsets, width)).expect("whole numbers");
    let values = rows(values, element);
    let entries = values.len();
    let Ok(ragged) = Ragged::new(values, offsets.clone()) else {
        assert!(Offsets::new(offsets, entries).is_err());
        return;
    };
    for index in 0..ragged.len() {
        let range = ragged.range(index).expect("what was checked");
        assert!(ragged.longest() >= Some(range.len()) && range.end <= entries);
        let mut out = vec![0; range.len() * ragged.values().row_bytes()];
        let copied = ragged.gather(&[index], &mut Scratch::default(), &mut out);
        copied.expect("a sample of its own length");
    }
    if let Some(blobs) = Blobs::buffer(ragged.clone()) {
        for index in 0..blobs.len() {
            let half = ragged.range(index).expect("what was checked").len() as u64 / 2;
            assert!(
                blobs
                    .fetch(index, 0..half)
                    .is_ok_and(|part| part.len() as u64 == half)
            );
        }
    }
});
