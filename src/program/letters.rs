//! Texts and bytes of many samples, and of which one an error is.

use crate::error::{Error, Result};

/// Takes the bytes of the sample at `index` for text.
pub(super) fn utf8(index: usize, bytes: Box<[u8]>) -> Result<Box<str>> {
    let text = String::from_utf8(bytes.into_vec()).map_err(|error| Error::Utf8 {
        index,
        source: error.utf8_error(),
    });
    Ok(text?.into_boxed_str())
}

/// Makes something of each index; an error says of which.
pub(super) fn each<T>(indices: &[usize], make: impl Fn(usize) -> Result<T>) -> Result<Vec<T>> {
    let places = indices.iter().enumerate();
    let made = places.map(|(place, &index)| make(index).map_err(|error| error.at(place)));
    made.collect()
}
