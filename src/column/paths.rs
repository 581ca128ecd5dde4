//! Many file paths in two allocations, so that a million of them need little more memory than their bytes.

use std::path::Path;

use crate::sync::Arc;

/// A list of paths; clones share it.
#[derive(Clone, Debug)]
pub struct Paths {
    text: Arc<str>,
    ends: Arc<[usize]>,
}

impl Paths {
    /// Returns the number of paths.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the path at `index`, which must be below [`Paths::len`].
    pub fn get(&self, index: usize) -> &Path {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Path::new(&self.text[start..self.ends[index]])
    }
}

impl<S: AsRef<str>> FromIterator<S> for Paths {
    fn from_iter<I: IntoIterator<Item = S>>(paths: I) -> Paths {
        let (mut text, mut ends) = (String::new(), Vec::new());
        for path in paths {
            text.push_str(path.as_ref());
            ends.push(text.len());
        }
        Paths {
            text: text.into(),
            ends: ends.into(),
        }
    }
}
