//! Any bytes as what a worker process sends: arenas, and messages whose parts lie in them.
#![no_main]

use std::io::{IoSlice, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::LazyLock;
use std::time::Duration;

use _lib::link::{Event, Links};
use libfuzzer_sys::fuzz_target;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// The byte in front of a piece that describes an arena.
const ARENA: u8 = 2;

/// Memory of arenas: a page of counts, and what would be slots.
static MEMORY: LazyLock<OwnedFd> = LazyLock::new(|| {
    let name = format!("fastload-fuzz-{}.arena", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut file = std::fs::File::create_new(&path).expect("a file");
    file.set_len(1 << 16).expect("room");
    file.flush().expect("room");
    let file = std::fs::File::options().read(true).write(true).open(&path);
    std::fs::remove_file(path).expect("a file");
    file.expect("a file").into()
});

fuzz_target!(|bytes: &[u8]| {
    let links = Links::new();
    let (_, worker) = links.open().expect("two sockets");
    let mut rest = bytes;
    while let [length, left @ ..] = rest {
        let (piece, left) = left.split_at(left.len().min(usize::from(*length)));
        send(&worker, piece);
        rest = left;
        if !hear(&links) {
            break;
        }
    }
    drop(worker);
    while hear(&links) && links.ready().is_ok_and(|ready| ready > 0) {}
    links.close();
});

/// Sends a piece, with a descriptor if it should have one.
fn send(worker: &OwnedFd, piece: &[u8]) {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [MEMORY.as_fd()];
    if piece.first() == Some(&ARENA) {
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let _ = sendmsg(worker, &[IoSlice::new(piece)], &mut control, flags); // or there is no room
}

/// Hears all that has come, and looks at what it refers to; tells whether it was a worker's.
fn hear(links: &Links) -> bool {
    loop {
        match links.receive(Duration::ZERO) {
            Ok(Some(Event::Message(_, message))) => {
                let parts = message.parts.iter().map(|part| part.bytes());
                for bytes in parts.chain([message.payload.bytes()]) {
                    std::hint::black_box(bytes.iter().fold(0_u8, |sum, byte| sum ^ byte));
                }
                // a tensor of this process would hold its part as long
                assert!(links.stats().held_bytes <= links.stats().arena_bytes);
            }
            Ok(Some(Event::Gone(_))) => return false,
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}
