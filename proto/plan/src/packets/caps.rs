//! Largest packet sizes that are worth trying.

use std::collections::BTreeSet;

/// Limit of listed distinct sizes, beyond which there are too many.
const MOST_LISTED: u64 = 1 << 21;

/// A cap on packet sizes that represents all caps up to the next one: bounds for all of them use the
/// tail of the least and the packet count of the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// The represented cap with the least size, which is tried.
    pub least: u64,
    /// The largest represented cap.
    pub most: u64,
}

/// A list of caps to try.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// The caps, smallest first.
    pub tried: Vec<Cap>,
    /// Whether these caps give all possible numbers of packets.
    pub are_all: bool,
}

/// Returns at most `at_most` caps (and at least 2) for messages of these lengths: all sizes
/// `ceil(length / r)` if they are few enough, which are all relevant ones; else a geometric grid.
pub fn caps(lengths: impl Iterator<Item = u64>, at_most: usize) -> Caps {
    let lengths: BTreeSet<u64> = lengths.collect();
    let Some(&longest) = lengths.last() else {
        return Caps::default();
    };
    let listed = lengths.iter().map(|length| 2 * (length.isqrt() + 1));
    let mut sizes: Vec<u64> = match longest <= at_most as u64 {
        true => (1..=longest).collect(),
        false if listed.sum::<u64>() > MOST_LISTED => Vec::new(),
        false => lengths.iter().flat_map(|&length| sizes(length)).collect(),
    };
    sizes.sort_unstable();
    sizes.dedup();
    let are_all = !sizes.is_empty() && sizes.len() <= at_most;
    if !are_all {
        sizes = grid(longest, at_most);
    }
    let next = sizes.iter().skip(1).map(|next| next - 1).chain([longest]);
    let both = sizes.iter().zip(next);
    Caps {
        tried: both.map(|(&least, most)| Cap { least, most }).collect(),
        are_all,
    }
}

/// Returns all values of `ceil(length / r)`.
fn sizes(length: u64) -> impl Iterator<Item = u64> {
    let next = move |&size: &u64| {
        // The least r that makes packets smaller than `size`.
        let r = length.div_ceil(size) + 1;
        (size > 1).then(|| length.div_ceil(r).min(size - 1))
    };
    std::iter::successors(Some(length), next)
}

/// Returns sizes from 1 to `longest` with equal ratios, as far as integers allow.
fn grid(longest: u64, at_most: usize) -> Vec<u64> {
    let factor = (longest as f64).powf(1.0 / (at_most.max(2) - 1) as f64);
    let next = |&size: &u64| {
        let next = ((size as f64 * factor).ceil() as u64).max(size + 1);
        (size < longest).then_some(next.min(longest))
    };
    std::iter::successors(Some(1), next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sizes_that_matter_are_tried() {
        let Caps { tried, are_all } = caps([12, 12].into_iter(), 6);
        assert!(are_all);
        let sizes: Vec<u64> = tried.iter().map(|cap| cap.least).collect();
        assert_eq!(sizes, [1, 2, 3, 4, 6, 12]);
        assert_eq!(tried[4], Cap { least: 6, most: 11 });
    }

    #[test]
    fn caps_lie_side_by_side_and_are_few() {
        for longest in [1, 2, 7, 1000, 1 << 40, 1 << 48] {
            for at_most in [2, 3, 30, 3000] {
                let tried = caps([longest, 5].into_iter(), at_most).tried;
                assert!(tried.len() <= at_most, "{longest} {at_most}");
                assert_eq!(tried[0].least, 1);
                assert_eq!(tried[tried.len() - 1].most, longest.max(5));
                let mut pairs = tried.windows(2);
                assert!(pairs.all(|pair| pair[0].most + 1 == pair[1].least));
            }
        }
    }
}
