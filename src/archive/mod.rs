//! Archives: the spans of a large file that are its members.
//!
//! Owns indices, made by one scan and kept. Does not read contents: [`Spans`](crate::column::Spans) does, or a
//! format if members are compressed. One module per kind of archive.

mod tar;
mod zip;

pub use tar::{Members, index as index_tar};
pub use zip::{Directory, EXPANSION, Member};
