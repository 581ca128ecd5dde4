//! Many file paths in two allocations: a million of them cost what their letters cost.

use std::path::Path;

/// A list of paths.
#[derive(Debug, Default)]
pub struct Paths {
    text: String,
    ends: Vec<usize>,
}

impl Paths {
    /// Number of paths.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
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
        let mut all = Paths::default();
        for path in paths {
            all.text.push_str(path.as_ref());
            all.ends.push(all.text.len());
        }
        all
    }
}
