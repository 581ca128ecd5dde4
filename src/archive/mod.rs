//! Archives: which stretches of a large file are files of their own.
//!
//! Owns indices, made by one scan and kept; refuses to read contents, which are
//! [`Spans`](crate::column::Spans), or a format's where members are compressed. One kind of archive
//! per file.

mod members;
mod tar;
mod zip;

pub use members::Members;
pub use tar::index as index_tar;
pub use zip::{Directory, EXPANSION, Member};
