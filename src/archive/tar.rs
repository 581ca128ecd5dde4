//! Tar: indexes a shard in one scan of its headers.
//!
//! Samples are webdataset's: consecutive files with the same key form a sample, and what follows the first dot
//! names the field.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use crate::column::{Span, Stamp, open_regular};
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
    let (file, stamp) = open_regular(path).map_err(read)?;
    if stamp.len() == 0 {
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
        let Some(has_sparse_map) = has_sparse_map(&mut entry) else {
            return Err(refused("an extended header is damaged".into()));
        };
        let kind = entry.header().entry_type();
        if !(kind.is_file() || kind.is_contiguous() || kind.is_gnu_sparse()) {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if kind.is_gnu_sparse() || has_sparse_map {
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
        if !members.add(&name, span) {
            return Err(refused(format!("{name:?} is there twice")));
        }
    }
    Ok((members, stamp))
}

/// Returns true if an entry's extended header, if there is one, has the map of a sparse file; None if a record of it
/// is damaged.
fn has_sparse_map(entry: &mut ::tar::Entry<'_, File>) -> Option<bool> {
    let mut has_map = false;
    for extension in entry.pax_extensions().ok()?.into_iter().flatten() {
        has_map |= extension.ok()?.key_bytes().starts_with(b"GNU.sparse");
    }
    Some(has_map)
}

fn is_gzip(path: &Path) -> bool {
    let mut first = [0; 2];
    let read =
        File::open(path).and_then(|mut file| std::io::Read::read_exact(&mut file, &mut first));
    read.is_ok() && first == [0x1f, 0x8b]
}

/// The members of one archive, or of several, concatenated.
#[derive(Clone, Debug, Default)]
pub struct Members {
    /// Key of each sample, and the number of its archive.
    keys: Vec<Box<str>>,
    files: Vec<u32>,
    /// For each extension, the number and the span of each sample that has it.
    spans: HashMap<Box<str>, Vec<(usize, Span)>>,
}

impl Members {
    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the keys, in order.
    pub fn keys(&self) -> &[Box<str>] {
        &self.keys
    }

    /// Returns the number of the archive that holds a sample.
    pub fn file(&self, sample: usize) -> Option<u32> {
        self.files.get(sample).copied()
    }

    /// Returns each extension with the number of samples that have it.
    pub fn extensions(&self) -> impl Iterator<Item = (&str, usize)> {
        self.spans
            .iter()
            .map(|(name, spans)| (&**name, spans.len()))
    }

    /// Returns for each sample the span of the first of `extensions` that it has.
    pub fn find(&self, extensions: &[String]) -> Vec<Option<Span>> {
        let mut found = vec![None; self.len()];
        for extension in extensions.iter().rev() {
            for &(sample, span) in self.spans.get(extension.as_str()).into_iter().flatten() {
                found[sample] = Some(span);
            }
        }
        found
    }

    /// Adds a file, unless it does not belong to a sample; returns false if its sample has one of this extension.
    fn add(&mut self, name: &str, span: Span) -> bool {
        let Some((key, extension)) = split(name).filter(|_| !is_meta(name)) else {
            return true;
        };
        if self.keys.last().is_none_or(|last| **last != *key) {
            self.keys.push(key.into());
            self.files.push(span.file);
        }
        let sample = self.keys.len() - 1;
        let spans = self
            .spans
            .entry(extension.to_lowercase().into())
            .or_default();
        if spans.last().is_some_and(|(last, _)| *last == sample) {
            return false;
        }
        spans.push((sample, span));
        true
    }

    /// Appends the samples of another archive, which is file number `file`.
    pub fn append(&mut self, other: Members, file: u32) {
        let first = self.keys.len();
        self.files.resize(first + other.keys.len(), file);
        self.keys.extend(other.keys);
        for (extension, spans) in other.spans {
            let moved = spans
                .into_iter()
                .map(|(sample, span)| (first + sample, Span { file, ..span }));
            self.spans.entry(extension).or_default().extend(moved);
        }
    }
}

/// Splits a path at the first dot of its last part, as webdataset's `base_plus_ext` does.
fn split(name: &str) -> Option<(&str, &str)> {
    let base = name.rfind('/').map_or(0, |slash| slash + 1);
    let dot = base + name[base..].find('.')?;
    let key = &name[..dot];
    let is_key = if dot == base {
        !key.is_empty() && !key.contains('.')
    } else {
        true
    };
    is_key.then(|| (key, &name[dot + 1..]))
}

/// Returns true if a path is below a name such as `__meta__`, which webdataset skips.
fn is_meta(name: &str) -> bool {
    let first = name.split('/').next().unwrap_or_default();
    first.len() >= 4 && first.starts_with("__") && first.ends_with("__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_at_the_first_dot_of_their_last_part() {
        assert_eq!(split("a/b.c/d.seg.png"), Some(("a/b.c/d", "seg.png")));
        assert_eq!(split("d."), Some(("d", "")));
        assert_eq!(split("a/.png"), Some(("a/", "png")));
        for none in ["d", "a.b/d", ".png", "a.b/.png"] {
            assert_eq!(split(none), None, "{none}");
        }
    }

    #[test]
    fn what_is_between_double_underscores_is_skipped() {
        assert!(is_meta("__index__") && is_meta("__x__/a.jpg") && is_meta("____"));
        assert!(!is_meta("__a/b.jpg") && !is_meta("a__.jpg") && !is_meta("___"));
    }

    #[test]
    fn neighbours_of_one_key_are_one_sample() {
        let mut members = Members::default();
        let span = |start| Span {
            file: 0,
            start,
            len: 1,
        };
        for (start, name) in ["a.jpg", "a.cls", "b.JPG", "x", "a.jpg"].iter().enumerate() {
            assert!(members.add(name, span(start as u64)));
        }
        assert_eq!(members.len(), 3);
        let jpg = members.find(&["jpg".into()]);
        assert_eq!(jpg, [Some(span(0)), Some(span(2)), Some(span(4))]);
        assert_eq!(
            members.find(&["cls".into(), "jpg".into()])[0],
            Some(span(1))
        );
        assert!(!members.add("a.jpg", span(9)));
    }
}
