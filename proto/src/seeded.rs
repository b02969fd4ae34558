//! Seeded sequences that every PE and every version must agree on.
//!
//! A test tree, a workload or a payload is named by its seed, and the name must
//! mean the same thing on every machine, for ever. So the generator lives here,
//! not in a crate that may change its sequence with a new version. Nothing here
//! picks a seed: seeds are passed in.

/// Steele, Lea and Flood's SplitMix64.
///
/// Its sequence, and that of [`below`](Self::below), are part of the protocol
/// and never change: a run's tree and lengths are reproduced from their seeds.
/// It is not for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Returns the sequence that `seed` names.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the next number, uniform over all of `u64`.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns the next number, uniform over `0..n`, by Lemire's method: the high half of a 128-bit
    /// product, drawn again where the low half would give some results one chance more than others.
    ///
    /// # Panics
    ///
    /// If `n` is 0: there is no number to give.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "no number is below 0");
        // 2^64 mod n: that many of the 2^64 draws are too many for a fair split.
        let surplus = n.wrapping_neg() % n;
        loop {
            let product = u128::from(self.next_u64()) * u128::from(n);
            if product as u64 >= surplus {
                return (product >> 64) as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_published_sequence() {
        let mut seed_0 = SplitMix64::new(0);
        assert_eq!(seed_0.next_u64(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(seed_0.next_u64(), 0x6e78_9e6a_a1b9_65f4);
        assert_eq!(seed_0.next_u64(), 0x06c4_5d18_8009_454f);

        let mut other = SplitMix64::new(1_234_567);
        assert_eq!(other.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(other.next_u64(), 3_203_168_211_198_807_973);
        assert_eq!(other.next_u64(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn below_never_changes() {
        let mut rng = SplitMix64::new(7);
        let drawn: Vec<u64> = (0..8).map(|_| rng.below(10)).collect();
        assert_eq!(drawn, [3, 0, 9, 5, 4, 2, 4, 3]);
    }

    #[test]
    fn below_stays_below_and_reaches_everything() {
        let mut rng = SplitMix64::new(42);
        for n in [1, 2, 3, 7, 1 << 40, (1 << 63) + 1, u64::MAX] {
            for _ in 0..100 {
                assert!(rng.below(n) < n);
            }
        }
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[rng.below(6) as usize] += 1;
        }
        assert!(counts.iter().all(|&c| (9_500..10_500).contains(&c)));
    }
}
