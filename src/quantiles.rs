//! The distribution of durations.
//!
//! Owns counts of durations, in buckets that are an eighth of a power of two wide; keeps no duration
//! itself. So adding one costs a shift and an addition, and a quantile is accurate to 1/16.

use std::time::Duration;

/// Buckets between a power of two and the next, as a power of two.
const FINE: u32 = 3;

/// Buckets for all numbers of nanoseconds.
const BUCKETS: usize = ((64 - FINE as usize) << FINE) + (1 << FINE);

/// Counts of durations by their size.
#[derive(Clone, Debug)]
pub struct Quantiles {
    counts: Box<[u32]>,
}

impl Default for Quantiles {
    fn default() -> Quantiles {
        Quantiles {
            counts: vec![0; BUCKETS].into_boxed_slice(),
        }
    }
}

impl Quantiles {
    /// Counts a duration, `times` times.
    pub fn add(&mut self, duration: Duration, times: u32) {
        let count = &mut self.counts[bucket(duration.as_nanos() as u64)];
        *count = count.saturating_add(times);
    }

    /// Returns the durations that were added after the snapshot `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Quantiles) -> Quantiles {
        let both = self.counts.iter().zip(&earlier.counts);
        Quantiles {
            counts: both.map(|(now, then)| now.saturating_sub(*then)).collect(),
        }
    }

    /// Returns the quantile at `part`, 0 to 1; 0 without durations.
    #[allow(clippy::cast_sign_loss)] // a part of a count
    pub fn at(&self, part: f64) -> Duration {
        let all: u64 = self.counts.iter().map(|&count| u64::from(count)).sum();
        let wanted = ((part * all as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.counts.iter().position(|&count| {
            seen += u64::from(count);
            seen >= wanted
        });
        found.map_or(Duration::ZERO, |found| {
            Duration::from_nanos(middle(found as u64))
        })
    }
}

fn bucket(nanoseconds: u64) -> usize {
    let octave = u64::BITS - 1 - nanoseconds.max(1).leading_zeros();
    if octave < FINE {
        return nanoseconds as usize;
    }
    let shift = octave - FINE;
    ((shift as usize) << FINE) + (nanoseconds >> shift) as usize
}

/// Returns the middle of a bucket, in nanoseconds.
fn middle(bucket: u64) -> u64 {
    let first = 1 << (FINE + 1);
    if bucket < first {
        return bucket;
    }
    let shift = (bucket >> FINE) - 1;
    let low = (bucket - (shift << FINE)) << shift;
    low + (1 << shift) / 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_takes_no_time() {
        assert_eq!(Quantiles::default().at(0.99), Duration::ZERO);
    }

    #[test]
    fn the_last_bucket_is_the_largest_number() {
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!((bucket(0), bucket(15), bucket(16)), (0, 15, 16));
    }

    #[test]
    fn what_was_there_before_does_not_count() {
        let mut now = Quantiles::default();
        now.add(Duration::from_millis(1), 50);
        let before = now.clone();
        now.add(Duration::from_secs(1), 1);
        assert!(now.at(0.5) < Duration::from_millis(2));
        assert!(now.since(&before).at(0.5) > Duration::from_millis(900));
    }

    proptest! {
        #[test]
        #[allow(clippy::cast_sign_loss)]
        fn a_quantile_is_right_to_a_sixteenth(
            mut values in prop::collection::vec(0_u64..1 << 50, 1..100),
            part in 0.0..1.0_f64,
        ) {
            let mut quantiles = Quantiles::default();
            for value in &values {
                quantiles.add(Duration::from_nanos(*value), 1);
            }
            values.sort_unstable();
            let rank = ((part * values.len() as f64).ceil() as usize).max(1);
            let (is, want) = (quantiles.at(part).as_nanos() as f64, values[rank - 1] as f64);
            prop_assert!((is - want).abs() <= want / 16.0, "{is} for {want}");
        }
    }
}
