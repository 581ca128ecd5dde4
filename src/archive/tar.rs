//! Tar: indexes a shard in one scan of its headers.

use std::fs::File;
use std::path::Path;

use super::Members;
use crate::column::{Span, Stamp};
use crate::error::{Error, Result};

/// Bytes of a block; members begin and end at multiples of it.
const BLOCK: u64 = 512;

/// Reads the headers of a tar file; returns its regular files and the stamp of the archive.
///
/// # Errors
///
/// [`Error::Read`]; [`Error::Decode`]: not a tar file, a damaged one, or one whose members are not stored
/// contiguously: compressed or sparse.
pub fn index(path: &Path) -> Result<(Members, Stamp)> {
    let read = |source| Error::read(path, source);
    let file = File::open(path).map_err(read)?;
    let stamp = Stamp::of(&file).map_err(read)?;
    if stamp.is_empty() {
        return Err(Error::Decode {
            path: path.to_owned(),
            reason: "it is empty; even a tar file without members has two blocks".into(),
        });
    }
    let mut archive = ::tar::Archive::new(file);
    let mut members = Members::default();
    let damaged = |samples: usize, reason: String| Error::Decode {
        path: path.to_owned(),
        reason: format!("{reason}, after {samples} samples"),
    };
    let entries = archive.entries_with_seek().map_err(read)?;
    for entry in entries {
        let samples = members.len();
        let refused = |reason: String| damaged(samples, reason);
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(_) if samples == 0 && is_gzip(path) => {
                return Err(refused(
                    "it is compressed, but members are read in random order: gunzip it".into(),
                ));
            }
            Err(error) => return Err(refused(format!("a header is damaged ({error})"))),
        };
        if !has_whole_extensions(&mut entry) {
            return Err(refused("an extended header is damaged".into()));
        }
        let kind = entry.header().entry_type();
        if !(kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse()) {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let sparse = kind.is_gnu_sparse() || has_sparse_map(&mut entry);
        if sparse {
            return Err(refused(format!(
                "{name:?} is stored as a sparse file: pack it anew"
            )));
        }
        let span = Span {
            file: 0,
            start: entry.raw_file_position(),
            len: entry.size(),
        };
        let padded = span.len.checked_next_multiple_of(BLOCK);
        let end = padded.and_then(|len| span.start.checked_add(len));
        if end.is_none_or(|end| end > stamp.len()) {
            return Err(refused(format!(
                "{name:?} is cut off: the file ends too early"
            )));
        }
        if members.add(&name, span).is_err() {
            return Err(refused(format!("{name:?} is there twice")));
        }
    }
    Ok((members, stamp))
}

/// Returns true if every record of an entry's extended header, if any, can be parsed.
fn has_whole_extensions(entry: &mut ::tar::Entry<'_, File>) -> bool {
    match entry.pax_extensions() {
        Ok(Some(mut extensions)) => extensions.all(|extension| extension.is_ok()),
        Ok(None) => true,
        Err(_) => false,
    }
}

fn has_sparse_map(entry: &mut ::tar::Entry<'_, File>) -> bool {
    let Ok(Some(extensions)) = entry.pax_extensions() else {
        return false;
    };
    let mut keys = extensions
        .flatten()
        .map(|extension| extension.key_bytes().to_vec());
    keys.any(|key| key.starts_with(b"GNU.sparse"))
}

fn is_gzip(path: &Path) -> bool {
    let mut first = [0; 2];
    let read =
        File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut first));
    read.is_ok() && first == [0x1f, 0x8b]
}
