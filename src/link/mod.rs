//! The connection between a process and the workers that it started: one socket each, and arenas.
//!
//! Owns the messages, with parts that lie in arenas, and the passing of new arenas' descriptors. Refuses to
//! know what a message says, and to start or end processes. Invariant: the parent never waits for room in a
//! socket, so the two sides cannot wait for each other.

mod message;
mod parent;
mod socket;
mod wire;
mod worker;

pub use message::{Message, Payload};
pub use parent::{Event, Links, Stats};
pub use worker::{Received, Worker, watch};

use crate::error::Error;

/// Wraps an error of the connection.
fn failed(what: &'static str, source: impl Into<std::io::Error>) -> Error {
    let source = source.into();
    Error::Link { what, source }
}
