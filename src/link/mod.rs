//! The way between a process and the workers that it started: one socket each, and arenas.
//!
//! Owns messages: letters with parts that lie in arenas, and the descriptors of arenas that are new.
//! Refuses to know what a letter says, and to start or end processes. Invariant: neither side waits for
//! room in a socket while the other waits for it: the parent never waits to send.

mod letter;
mod parent;
mod socket;
mod watch;
mod wire;
mod worker;

pub use letter::{Letter, Payload};
pub use parent::{Event, Links, Stats};
pub use watch::watch;
pub use worker::{Heard, Worker};

use crate::error::Error;

/// Returns an error of the connection.
fn failed(what: &'static str, source: impl Into<std::io::Error>) -> Error {
    let source = source.into();
    Error::Link { what, source }
}
