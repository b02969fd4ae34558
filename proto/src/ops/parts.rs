//! Messages that go over several trees at once, in parts (paper 000, section IV): each tree carries
//! some flits of a message as a separate message with its own head and digest. The trees have
//! separate connections, or one static schedule covers all of them.
//!
//! The number of flits on each tree determines which flits these are. They leave the source in
//! turn, as evenly as possible, so that it reads its files from front to back and a destination
//! buffers few flits that are not next. The tail of a message that has one is its last flit, as part 0:
//! it goes where the others do not.

/// An iterator over the flits of a message that yields the tree of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlitInterleaver {
    /// For each tree, the number of its flits and how many of them have been assigned.
    flits: Vec<[u64; 2]>,
    has_tail: bool,
}

impl FlitInterleaver {
    /// Creates the sequence for a message with these numbers of flits on the trees, the first of which may
    /// be those of its tail.
    pub fn new(flits: &[u64], has_tail: bool) -> FlitInterleaver {
        FlitInterleaver {
            flits: flits.iter().map(|flits| [*flits, 0]).collect(),
            has_tail,
        }
    }
}

impl Iterator for FlitInterleaver {
    type Item = usize;

    /// Returns the tree with the smallest fraction of its flits sent, where half of its next flit
    /// counts as sent; the first of several. The tail is last.
    fn next(&mut self) -> Option<usize> {
        let after = |[of, sent]: [u64; 2]| (2 * u128::from(sent) + 1, u128::from(of));
        let waiting = (0..self.flits.len()).filter(|at| self.flits[*at][1] < self.flits[*at][0]);
        let is_tail = |at: &usize| self.has_tail && *at == 0;
        let next = waiting.min_by(|one, other| {
            let ((sent, of), (other_sent, of_other)) =
                (after(self.flits[*one]), after(self.flits[*other]));
            let by_share = (sent * of_other).cmp(&(other_sent * of));
            is_tail(one).cmp(&is_tail(other)).then(by_share)
        })?;
        self.flits[next][1] += 1;
        Some(next)
    }
}

/// Returns the tree to which [`FlitInterleaver`] gives the last flit: that of the tail, or the last of those
/// with the most flits.
fn last_of(flits: &[u64], has_tail: bool) -> Option<usize> {
    if has_tail {
        return flits.first().filter(|flits| **flits > 0).map(|_| 0);
    }
    let trees = (0..flits.len()).filter(|at| flits[*at] > 0);
    trees.max_by_key(|at| flits[*at])
}

/// Returns the bytes of each part of a message of `bytes` bytes; each tree gets `flits` flits. All
/// flits are full except the last.
pub fn bytes_of_parts(flits: &[u64], has_tail: bool, bytes: u64, flit_bytes: u64) -> Vec<u64> {
    let mut parts: Vec<u64> = flits.iter().map(|flits| flits * flit_bytes).collect();
    let lacks = parts.iter().sum::<u64>().saturating_sub(bytes);
    if let Some(last) = last_of(flits, has_tail) {
        parts[last] -= lacks;
    }
    parts
}

/// Returns the flits of each part; flit k belongs to part `k mod parts`.
pub fn even_flits(flits: u64, parts: usize) -> Vec<u64> {
    let of_part = |part| flits.saturating_sub(part).div_ceil(parts as u64);
    (0..parts as u64).map(of_part).collect()
}

/// Returns the flits of each part of a message, or `None` if the lengths are invalid because a part
/// other than the last ends with a short flit.
pub fn flits_of_parts(parts: &[u64], has_tail: bool, flit_bytes: u64) -> Option<Vec<u64>> {
    let flits: Vec<u64> = parts.iter().map(|part| part.div_ceil(flit_bytes)).collect();
    let last = last_of(&flits, has_tail)?;
    let mut all = parts.iter().enumerate();
    let are_full = all.all(|(at, part)| at == last || part % flit_bytes == 0);
    are_full.then_some(flits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn turns_are_even() {
        let turns = |flits: &[u64]| FlitInterleaver::new(flits, false).collect::<Vec<_>>();
        assert_eq!(turns(&[3, 3]), [0, 1, 0, 1, 0, 1]);
        assert_eq!(turns(&[1, 3]), [1, 0, 1, 1]);
        assert_eq!(turns(&[0, 2, 0]), [1, 1]);
        assert_eq!(turns(&[]), []);
        let turns = FlitInterleaver::new(&[1, 2, 1], true);
        assert_eq!(turns.collect::<Vec<_>>(), [1, 2, 1, 0]);
    }

    proptest! {
        #[test]
        fn every_flit_is_sent_once_and_the_short_one_last(
            flits in prop::collection::vec(0u64..40, 1..9),
            short in 0u64..7,
            has_tail: bool,
        ) {
            let mut flits = flits;
            if has_tail {
                flits[0] = 1;
            }
            let total: u64 = flits.iter().sum();
            let turns: Vec<usize> = FlitInterleaver::new(&flits, has_tail).collect();
            prop_assert_eq!(turns.len() as u64, total);
            for (at, flits) in flits.iter().enumerate() {
                prop_assert_eq!(turns.iter().filter(|turn| **turn == at).count() as u64, *flits);
            }
            prop_assert_eq!(turns.last().copied(), last_of(&flits, has_tail));
            // At any time the flits of a tree exceed its share by less than the number of trees.
            let mut sent_on = vec![0u64; flits.len()];
            for (sent, turn) in (1u64..).zip(&turns) {
                sent_on[*turn] += 1;
                let most = sent * flits[*turn] + flits.len() as u64 * total;
                prop_assert!(sent_on[*turn] * total <= most);
            }
            prop_assume!(total > 0);
            let bytes = total * 7 - short;
            let parts = bytes_of_parts(&flits, has_tail, bytes, 7);
            prop_assert_eq!(parts.iter().sum::<u64>(), bytes);
            prop_assert_eq!(flits_of_parts(&parts, has_tail, 7), Some(flits));
        }
    }

    #[test]
    fn a_short_flit_in_the_middle_is_no_part() {
        let flits = |parts: &[u64], has_tail| flits_of_parts(parts, has_tail, 4);
        assert_eq!(flits(&[8, 5], false), Some(vec![2, 2]));
        assert_eq!(flits(&[9, 4], false), Some(vec![3, 1]));
        assert_eq!(flits(&[5, 12], false), None);
        assert_eq!(flits(&[0, 0], false), None);
        assert_eq!(flits(&[3, 12], true), Some(vec![1, 3]));
        assert_eq!(flits(&[3, 11], true), None);
    }
}
