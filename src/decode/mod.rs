//! Decoders: encoded bytes to pixels, bit for bit as Pillow's.
//!
//! Owns the choice of a decoder, made from the bytes and never from a file's name. Refuses to open
//! files. Invariant: what is decoded equals Pillow's pixels; what Pillow refuses is refused.

mod format;
pub mod jpeg;

pub use format::Format;
