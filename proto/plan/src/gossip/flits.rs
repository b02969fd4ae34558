//! Sets of flits. The flits of a class are numbered in the order in which every PE holds them (by
//! block, then by place in it), so that a set is a few ranges, and neighbouring blocks are one.

use flitcast_proto::MessageId;

/// A set of flits of one class: ranges `begin..end` that rise and do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flits(Vec<(u64, u64)>);

impl Flits {
    /// Returns the flits from `begin` to `end - 1`.
    pub fn range(begin: u64, end: u64) -> Flits {
        Flits(Vec::from_iter((begin < end).then_some((begin, end))))
    }

    /// Returns the ranges, `begin..end`.
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// Returns the number of flits.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|(begin, end)| end - begin).sum()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the flits in either set.
    pub fn union(&self, other: &Flits) -> Flits {
        let (mut own, mut others) = (&self.0[..], &other.0[..]);
        let mut all: Vec<(u64, u64)> = Vec::with_capacity(self.0.len() + 1);
        loop {
            let ahead = match (own.first(), others.first()) {
                (Some(one), Some(other)) if other.0 < one.0 => &mut others,
                (Some(_), _) => &mut own,
                (None, _) => &mut others,
            };
            let next = ahead.split_off_first();
            match (next, all.last_mut()) {
                (None, _) => return Flits(all),
                (Some((begin, end)), Some(last)) if *begin <= last.1 => last.1 = last.1.max(*end),
                (Some(range), _) => all.push(*range),
            }
        }
    }

    /// Returns the flits in this set and not in the other.
    pub fn minus(&self, other: &Flits) -> Flits {
        let mut left = Vec::with_capacity(self.0.len());
        for &(begin, end) in &self.0 {
            let mut begin = begin;
            // A range that ends before this one removes nothing from it.
            let first = other.0.partition_point(|taken| taken.1 <= begin);
            for taken in other.0[first..].iter().take_while(|taken| taken.0 < end) {
                if begin < taken.0 {
                    left.push((begin, taken.0));
                }
                begin = taken.1;
            }
            if begin < end {
                left.push((begin, end));
            }
        }
        Flits(left)
    }

    /// Returns one of `parts` parts that are as equal as flits allow: the flits of rank `floor(part *
    /// len / parts)` to `floor((part + 1) * len / parts) - 1`.
    pub fn cut(&self, part: usize, parts: usize) -> Flits {
        if parts == 1 {
            return self.clone();
        }
        let len = self.len();
        let (from, to) = (share(len, part, parts), share(len, part + 1, parts));
        let mut rank = 0;
        let mut kept = Vec::new();
        for &(begin, end) in &self.0 {
            let (low, high) = (from.max(rank), to.min(rank + end - begin));
            if low < high {
                kept.push((begin + low - rank, begin + high - rank));
            }
            rank += end - begin;
        }
        Flits(kept)
    }

    /// Returns the ranks in `whole` of the flits of this set, which is a subset.
    pub fn ranks_in(&self, whole: &Flits) -> Flits {
        let mut ranks: Vec<(u64, u64)> = Vec::with_capacity(self.0.len());
        let mut around = whole.0.iter();
        let (mut outer, mut rank) = (around.next(), 0);
        for &(begin, end) in &self.0 {
            while let Some((first, last)) = outer
                && *last <= begin
            {
                rank += last - first;
                outer = around.next();
            }
            let first = outer.map_or(begin, |outer| outer.0);
            let place = (rank + begin - first, rank + end - first);
            match ranks.last_mut() {
                Some(last) if last.1 == place.0 => last.1 = place.1,
                _ => ranks.push(place),
            }
        }
        Flits(ranks)
    }

    /// Cuts a set of `whole` flits into parts, and returns how much of each is left without the ranks
    /// in this set.
    pub fn outside_of_parts(&self, whole: u64, parts: usize) -> impl Iterator<Item = u64> {
        let mut ranges = &self.0[..];
        let (mut begin, mut before) = (0, 0);
        (1..=parts).map(move |part| {
            let end = share(whole, part, parts);
            // Number of ranks of this set before `end`.
            while let [(first, last), rest @ ..] = ranges
                && *last <= end
            {
                before += last - first;
                ranges = rest;
            }
            let partly = ranges.first().map_or(0, |it| end.saturating_sub(it.0));
            let outside = end - (before + partly);
            let left = outside - begin;
            begin = outside;
            left
        })
    }
}

/// Computes `floor(part * len / parts)`.
pub fn share(len: u64, part: usize, parts: usize) -> u64 {
    // At most `len`, since `part` is at most `parts`.
    (u128::from(len) * part as u128 / parts as u128) as u64
}

/// Returns the length of one of `parts` parts that are as equal as flits allow.
pub(super) fn share_of(len: u64, part: usize, parts: usize) -> u64 {
    share(len, part + 1, parts) - share(len, part, parts)
}

/// A part of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The message of the block.
    pub message: MessageId,
    /// The first flit.
    pub offset: u64,
    /// The number of flits.
    pub flits: u64,
}

/// The blocks of all PEs, each cut into as many classes as the network has dimensions.
#[derive(Clone, Debug)]
pub struct Blocks {
    lengths: Vec<u64>,
    /// The number of each block's first flit, and of the flit after the last, by class.
    first: Vec<Vec<u64>>,
}

impl Blocks {
    /// Creates blocks of `lengths[i]` flits; part c of a block is flits `floor(c * L / classes)` to
    /// `floor((c + 1) * L / classes) - 1`.
    pub fn new(lengths: &[u64], classes: usize) -> Blocks {
        let of_class = |class| {
            let mut first = vec![0];
            let mut next = 0;
            for &flits in lengths {
                next += share_of(flits, class, classes);
                first.push(next);
            }
            first
        };
        Blocks {
            lengths: lengths.to_vec(),
            first: (0..classes).map(of_class).collect(),
        }
    }

    /// Returns the length of each block, in flits.
    pub fn lengths(&self) -> &[u64] {
        &self.lengths
    }

    /// Returns the number of classes.
    pub fn classes(&self) -> usize {
        self.first.len()
    }

    /// Returns the initial flits of a PE in a class.
    pub fn of(&self, class: usize, pe: usize) -> Flits {
        self.of_range(class, pe, pe + 1)
    }

    /// Returns the initial flits of PEs `from` to `to - 1` in a class.
    pub fn of_range(&self, class: usize, from: usize, to: usize) -> Flits {
        Flits::range(self.first[class][from], self.first[class][to])
    }

    /// Returns the parts of blocks that flits of a class belong to.
    pub fn pieces<'a>(
        &'a self,
        class: usize,
        flits: &'a Flits,
    ) -> impl Iterator<Item = Piece> + use<'a> {
        let first = &self.first[class];
        let classes = self.classes();
        flits.ranges().iter().flat_map(move |&(begin, end)| {
            let block = first.partition_point(|at| *at <= begin) - 1;
            let blocks = (block..self.lengths.len()).take_while(move |block| first[*block] < end);
            let nonnull = blocks.filter(move |block| first[*block] < first[block + 1]);
            nonnull.map(move |block| {
                let (low, high) = (begin.max(first[block]), end.min(first[block + 1]));
                let part = share(self.lengths[block], class, classes);
                Piece {
                    message: MessageId(block as u64),
                    offset: part + low - first[block],
                    flits: high - low,
                }
            })
        })
    }
}
