//! The simulation's only source of chance: xoshiro256\*\*, seeded through splitmix64.
//!
//! It must never be seeded from anything but the seed of the history.

use woodward_core::{Millis, Roll};

/// A small, fast generator whose every number follows from its seed.
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    state: [u64; 4],
}

/// One step of splitmix64: also a good 64-bit mixer for hashing.
pub(crate) const fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        let mut at = seed;
        let state = std::array::from_fn(|_| {
            at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(at)
        });
        Self { state }
    }

    pub(crate) const fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A number in `0..bound`; 0 for a bound of 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `low..=high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// A length of time in `low..=high` milliseconds.
    pub(crate) fn span(&mut self, low: u64, high: u64) -> Millis {
        Millis(self.between(low, high))
    }

    /// Whether something of this probability, in thousandths, happens now.
    pub(crate) fn chance(&mut self, permille: u32) -> bool {
        permille > 0 && self.below(1_000) < u64::from(permille)
    }

    /// An index below `len`, which must not be zero.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        debug_assert!(len > 0, "there is nothing to choose from");
        self.below(len as u64) as usize
    }

    /// The die of an event.
    pub(crate) fn roll(&mut self) -> Roll {
        Roll((self.next() >> 32) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let numbers = |seed| {
            let mut rng = Rng::new(seed);
            (0..16).map(|_| rng.next()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut rng = Rng::new(1);
        assert!((0..1_000).all(|_| (3..=5).contains(&rng.between(3, 5))));
        assert!(!rng.chance(0));
        assert!(rng.chance(1_000));
    }
}
