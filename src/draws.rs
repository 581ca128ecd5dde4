//! Random numbers that depend only on their purpose.
//!
//! Owns the generator (Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
//! SC 2011) and its key. Invariant: a draw is a function of seed, epoch, sample, repetition, leaf,
//! operation and place in the operation's own sequence; so the same for any number of threads, any order
//! of completion, and after any resumption.

#![allow(clippy::inline_always)] // vectorised

use crate::wide::wide;

/// The key of a sample's draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// The iterator's seed.
    pub seed: u64,
    /// Number of resets of the iterator.
    pub epoch: u64,
    /// The sample's index in the dataset.
    pub index: u64,
    /// Distinguishes repetitions of an index within an epoch; 0 if there are none.
    pub draw: u64,
    /// The leaf of the sample that draws; 2^64 - 1 for plans of epochs; see also [`Seeds`].
    pub leaf: u64,
}

/// The seeds of the generators that Python code draws from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    /// For torch's generator; it fits into 63 bits, as torch's own seeds do.
    pub torch: u64,
    /// For NumPy's legacy generator, if its state cannot be written.
    pub numpy: u32,
    /// For Python's `random`, if its state cannot be written.
    pub python: u64,
    /// The source of all three states.
    states: [u64; 4],
}

/// The words that the next 624 draws of a Mersenne Twister (MT19937) temper.
pub type Twister = [u32; 624];

impl Seeds {
    /// The leaf of samples made in Python.
    const SAMPLE: u64 = u64::MAX - 1;
    /// The leaf of Python code that runs once per batch.
    const BATCH: u64 = u64::MAX - 2;

    /// Draws the seeds of a sample; the key's leaf is ignored.
    pub fn of_sample(key: Key) -> Self {
        Self::draw(Key {
            leaf: Self::SAMPLE,
            ..key
        })
    }

    /// Draws the seeds of a batch, whose number is the key's index; the key's leaf is ignored.
    pub fn of_batch(key: Key) -> Self {
        Self::draw(Key {
            leaf: Self::BATCH,
            ..key
        })
    }

    fn draw(key: Key) -> Self {
        let draws = &mut Draws::new(key, 0);
        Self {
            torch: draws.wide() >> 1,
            numpy: draws.bits(),
            python: draws.wide(),
            states: std::array::from_fn(|_| draws.wide()),
        }
    }

    fn expanded(&self, generator: u64) -> Twister {
        wide(
            #[inline(always)]
            || expand(self.states, generator),
        )
    }

    /// Returns the state of torch's generator.
    pub fn torch_state(&self) -> Twister {
        self.expanded(0)
    }

    /// Returns the state of NumPy's legacy generator.
    pub fn numpy_state(&self) -> Twister {
        self.expanded(1)
    }

    /// Returns the state of Python's generator.
    pub fn python_state(&self) -> Twister {
        self.expanded(2)
    }
}

/// Draws the state of a Mersenne Twister from eight interleaved xoshiro256++, which take a fifth of Philox's
/// time; each generator has eight of its own.
///
/// Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021; each is seeded as they
/// advise, by `SplitMix64`.
#[inline(always)]
fn expand(seed: [u64; 4], generator: u64) -> Twister {
    let [mut a, mut b, mut c, mut d] = seed.map(|word| {
        each(|lane| {
            let number = LANES as u64 * generator + lane as u64 + 1;
            mixed(word.wrapping_add(GOLDEN.wrapping_mul(number)))
        })
    });
    let mut state = [0; 624];
    for words in state.as_chunks_mut::<{ 2 * LANES }>().0 {
        // all lanes at each step: so they become vectors
        let drawn = each(|i| a[i].wrapping_add(d[i]).rotate_left(23).wrapping_add(a[i]));
        for (words, drawn) in words.as_chunks_mut::<2>().0.iter_mut().zip(drawn) {
            *words = halves(drawn);
        }
        let shifted = each(|i| b[i] << 17);
        c = each(|i| c[i] ^ a[i]);
        d = each(|i| d[i] ^ b[i]);
        b = each(|i| b[i] ^ c[i]);
        a = each(|i| a[i] ^ d[i]);
        c = each(|i| c[i] ^ shifted[i]);
        d = each(|i| d[i].rotate_left(45));
    }
    state
}

const LANES: usize = 8;

/// Returns a number for each of the generators side by side.
#[inline(always)]
fn each(number: impl Fn(usize) -> u64) -> [u64; LANES] {
    std::array::from_fn(number)
}

/// The increment of `SplitMix64`.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of `SplitMix64`.
fn mixed(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// The draws of one operation for one sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Draws {
    key: [u32; 2],
    sample: [u32; 2],
    operation: u32,
    block: u32,
    ready: [u32; 4],
    left: usize,
}

impl Draws {
    /// Starts the sequence of one operation; `operation` is its place in the pipeline.
    pub fn new(key: Key, operation: u32) -> Self {
        let epoch = philox(halves(key.seed), quarters(key.epoch, !key.leaf));
        let sample = philox([epoch[0], epoch[1]], quarters(key.index, key.draw));
        Self {
            key: [sample[0], sample[1]],
            sample: [sample[2], sample[3]],
            operation,
            block: 0,
            ready: [0; 4],
            left: 0,
        }
    }

    /// Returns 32 random bits.
    pub fn bits(&mut self) -> u32 {
        if self.left == 0 {
            let counter = [self.sample[0], self.sample[1], self.operation, self.block];
            self.ready = philox(self.key, counter);
            self.block += 1;
            self.left = self.ready.len();
        }
        self.left -= 1;
        self.ready[self.left]
    }

    /// Returns 64 random bits.
    fn wide(&mut self) -> u64 {
        let high = u64::from(self.bits()) << 32;
        high | u64::from(self.bits())
    }

    /// Draws from [0, 1), a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.wide() >> 11) as f64 * (-53_f64).exp2()
    }

    /// Draws a single-precision number from [low, high], with the arithmetic of
    /// `torch.empty(1).uniform_(low, high)`: if both ends are equal, the draw equals them.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        let (low, high) = (low as f32, high as f32);
        let unit = (self.bits() >> 8) as f32 * (-24_f32).exp2();
        f64::from(unit * (high - low) + low)
    }

    /// Draws two numbers from the standard normal distribution, independent of each other.
    ///
    /// Box and Muller, "A note on the generation of random normal deviates", 1958. In double
    /// precision, which hides what machines disagree on in a logarithm's last bit.
    pub fn normals(&mut self) -> [f32; 2] {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * self.unit()).sin_cos();
        [(radius * cosine) as f32, (radius * sine) as f32]
    }

    /// Returns true with probability `p`.
    pub fn happens(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Draws an integer below `bound`, which must not be 0; all are equally likely.
    ///
    /// Lemire, "Fast random integer generation in an interval", 2019.
    pub fn below(&mut self, bound: u32) -> u32 {
        let mut product = u64::from(self.bits()) * u64::from(bound);
        if (product as u32) < bound {
            let reject = bound.wrapping_neg() % bound;
            while (product as u32) < reject {
                product = u64::from(self.bits()) * u64::from(bound);
            }
        }
        (product >> 32) as u32
    }

    /// Draws one of `items`, at least one; all are equally likely.
    pub fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u32) as usize]
    }

    /// Draws an index of `weights`, with probability proportional to the weight; their sum must be above 0.
    pub fn weighted(&mut self, weights: &[f64]) -> usize {
        let mut left = self.unit() * weights.iter().sum::<f64>();
        let chosen = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        let last = weights.iter().rposition(|&weight| weight > 0.0);
        chosen.or(last).unwrap_or_default() // the last, if rounding left something of the sum
    }

    /// Shuffles `items` (Fisher and Yates); all orders are equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end as u32 + 1) as usize);
        }
    }
}

fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

fn quarters(low: u64, high: u64) -> [u32; 4] {
    let ([a, b], [c, d]) = (halves(low), halves(high));
    [a, b, c, d]
}

/// Ten rounds of Philox4x32.
fn philox(mut key: [u32; 2], mut counter: [u32; 4]) -> [u32; 4] {
    for _ in 0..10 {
        let first = u64::from(counter[0]) * 0xd251_1f53;
        let second = u64::from(counter[2]) * 0xcd9e_8d57;
        counter = [
            (second >> 32) as u32 ^ counter[1] ^ key[0],
            second as u32,
            (first >> 32) as u32 ^ counter[3] ^ key[1],
            first as u32,
        ];
        key = [
            key[0].wrapping_add(0x9e37_79b9),
            key[1].wrapping_add(0xbb67_ae85),
        ];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight times the authors' xoshiro256++ after their `SplitMix64`, written out one after the other.
    #[test]
    fn states_are_those_of_eight_generators_side_by_side() {
        let seed = [1, 2, 3, u64::MAX];
        let state = expand(seed, 2);
        for lane in 0..8 {
            let mut s = seed.map(|word| {
                let at = (0..=16 + lane).fold(word, |at, _| at.wrapping_add(GOLDEN));
                mixed(at)
            });
            for step in 0..39 {
                let drawn = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
                let t = s[1] << 17;
                s[2] ^= s[0];
                s[3] ^= s[1];
                s[1] ^= s[2];
                s[0] ^= s[3];
                s[2] ^= t;
                s[3] = s[3].rotate_left(45);
                let place = 16 * step + 2 * lane;
                assert_eq!(state[place..place + 2], halves(drawn));
            }
        }
        // Vigna's splitmix64.c, seeded with 0
        assert_eq!(mixed(GOLDEN), 0xe220_a839_7b1d_cdaf);
    }

    /// The known answers that come with Random123, `kat_vectors`.
    #[test]
    fn philox_gives_the_known_answers() {
        let ones = u32::MAX;
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        for (key, counter, answer) in [
            (
                [0; 2],
                [0; 4],
                [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8],
            ),
            (
                [ones; 2],
                [ones; 4],
                [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
            ),
            (
                [0xa409_3822, 0x299f_31d0],
                pi,
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ] {
            assert_eq!(philox(key, counter), answer);
        }
    }

    #[test]
    fn seeds_differ_with_every_part_of_their_key() {
        let key = Key::default();
        let others = [
            Key { seed: 1, ..key },
            Key { epoch: 1, ..key },
            Key { index: 1, ..key },
            Key { draw: 1, ..key },
        ];
        let mut seen = vec![Seeds::of_sample(key), Seeds::of_batch(key)];
        for other in others {
            seen.extend([Seeds::of_sample(other), Seeds::of_batch(other)]);
        }
        for (place, seeds) in seen.iter().enumerate() {
            assert!(!seen[..place].contains(seeds), "{place}");
        }
        let leaf = Key { leaf: 7, ..key };
        assert_eq!(Seeds::of_sample(leaf), Seeds::of_sample(key));
    }
}
