//! The members of archives, by sample and by extension.
//!
//! The layout is webdataset's: consecutive files with the same key form a sample, and what follows the first dot
//! names the field.

use std::collections::HashMap;

use crate::column::Span;

/// The members of one archive, or of several, concatenated.
#[derive(Clone, Debug, Default)]
pub struct Members {
    /// Key of each sample, and the number of its archive.
    keys: Vec<Box<str>>,
    files: Vec<u32>,
    /// For each extension, the number and the span of each sample that has it.
    spans: HashMap<Box<str>, Vec<(usize, Span)>>,
}

/// A second member of a sample with the same extension.
#[derive(Debug)]
pub(super) struct Twice;

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

    /// Adds a file, unless it does not belong to a sample.
    pub(super) fn add(&mut self, name: &str, span: Span) -> Result<(), Twice> {
        let Some((key, extension)) = split(name).filter(|_| !is_meta(name)) else {
            return Ok(());
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
            return Err(Twice);
        }
        spans.push((sample, span));
        Ok(())
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
            members.add(name, span(start as u64)).unwrap();
        }
        assert_eq!(members.len(), 3);
        let jpg = members.find(&["jpg".into()]);
        assert_eq!(jpg, [Some(span(0)), Some(span(2)), Some(span(4))]);
        assert_eq!(
            members.find(&["cls".into(), "jpg".into()])[0],
            Some(span(1))
        );
        assert!(members.add("a.jpg", span(9)).is_err());
    }
}
