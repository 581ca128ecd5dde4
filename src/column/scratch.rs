//! Memory that a thread keeps for its next copies.

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(super) starts: Vec<usize>,
    pub(super) uncast: Vec<u8>,
    spare: Vec<Vec<usize>>,
}

impl Scratch {
    /// Returns an empty list, to be given back to [`Scratch::keep`].
    pub(super) fn indices(&mut self) -> Vec<usize> {
        let mut list = self.spare.pop().unwrap_or_default();
        list.clear();
        list
    }

    /// Keeps a list for its memory.
    pub(super) fn keep(&mut self, list: Vec<usize>) {
        self.spare.push(list);
    }
}
