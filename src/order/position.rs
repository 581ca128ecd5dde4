//! Which batches of an epoch were handed over, also if later ones overtake earlier ones.

/// All batches below `next` were handed over, except those in `missing`.
#[derive(Clone, Debug, Default)]
pub struct Position {
    /// Ascending, and below `next`.
    missing: Vec<u64>,
    next: u64,
}

impl Position {
    /// Makes the position in which `next` and all batches of `missing`, which are below it, are still to come.
    pub fn new(mut missing: Vec<u64>, next: u64) -> Position {
        missing.sort_unstable();
        Position { missing, next }
    }

    /// Returns the first batch that was not handed over.
    pub fn first(&self) -> u64 {
        self.missing.first().copied().unwrap_or(self.next)
    }

    /// Returns true if a batch was handed over.
    pub fn has(&self, batch: u64) -> bool {
        batch < self.next && self.missing.binary_search(&batch).is_err()
    }

    /// Counts a batch as handed over.
    pub fn hand_over(&mut self, batch: u64) {
        if batch >= self.next {
            self.missing.extend(self.next..batch);
            self.next = batch + 1;
        } else if let Ok(at) = self.missing.binary_search(&batch) {
            self.missing.remove(at);
        }
    }

    /// Returns the batches that are still to come although later ones were handed over.
    pub fn missing(&self) -> &[u64] {
        &self.missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_that_are_overtaken_are_missing_until_they_come() {
        let mut position = Position::new(vec![1, 3], 5);
        assert_eq!(position.first(), 1);
        let handed_over: Vec<u64> = (0..7).filter(|&batch| position.has(batch)).collect();
        assert_eq!(handed_over, [0, 2, 4]);
        for (batch, missing) in [
            (7, &[1, 3, 5, 6][..]),
            (3, &[1, 5, 6]),
            (8, &[1, 5, 6]),
            (1, &[5, 6]),
            (6, &[5]),
            (5, &[]),
        ] {
            position.hand_over(batch);
            assert_eq!(position.missing(), missing);
            assert!(position.has(batch));
        }
        assert_eq!(position.first(), 9);
    }
}
