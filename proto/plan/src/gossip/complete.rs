//! Gossip on a complete network with one port for each PE: the sender, the receiver and the blocks of
//! each packet, step by step.
//!
//! Dissemination is Bruck's (Bruck, Ho, Kipnis, Upfal, Weathersby, 1997); circulating, and neighbours
//! that swap, are the algorithms of MPI libraries for rings and for even numbers of PEs.

use std::fmt;

use flitcast_proto::PeId;

use super::flits::Blocks;
use super::steps::{Packet, Step};

/// The names of all algorithms for complete networks.
pub const COMPLETE_FORMS: &str = "dissemination[:K], circulate, neighbour, direct";

/// Help of the algorithms that are not in the registry of [`crate::algorithms`] as well.
pub const COMPLETE_HELP: &str = "neighbour (pairs swap what the pair before sent them)";

/// The names of algorithms for any number of PEs.
pub(super) const FORMS_OF_ODD: &str = "circulate or dissemination";

/// A gossip algorithm for complete networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompleteGossip {
    /// Each PE receives from `ports` others all blocks that they have: `ceil(log_{ports + 1} N)` steps.
    Dissemination {
        /// Number of packets that a PE sends in a step.
        ports: usize,
    },
    /// Each PE forwards to the next what it received from the previous one.
    Circulate,
    /// Circulation in both directions at once.
    CirculateBothWays,
    /// Neighbours in an even number of PEs swap what they received in the step before.
    Neighbour,
    /// Each PE sends to all.
    Direct,
}

impl CompleteGossip {
    /// All algorithms, each with its name in comparisons; those with parameters have the least ones.
    pub const ALL: [(&str, CompleteGossip); 5] = [
        ("dissemination", CompleteGossip::Dissemination { ports: 1 }),
        ("circulate", CompleteGossip::Circulate),
        ("neighbours swap", CompleteGossip::Neighbour),
        ("approach 1", CompleteGossip::CirculateBothWays),
        ("direct", CompleteGossip::Direct),
    ];

    /// Returns the form of a name and the algorithm, which is `None` if the number behind the name
    /// is invalid. Returns `None` if no algorithm has the name, or if its name takes no number.
    pub(super) fn named(
        name: &str,
        number: Option<Option<usize>>,
    ) -> Option<(&'static str, Option<CompleteGossip>)> {
        let mut all = CompleteGossip::ALL.into_iter().map(|(_, one)| one);
        if name == "dissemination" {
            let ports = number.unwrap_or(Some(1));
            let one = ports.map(|ports| CompleteGossip::Dissemination { ports });
            return Some(("dissemination:K", one));
        }
        let one = all.find(|one| one.to_string() == name && number.is_none())?;
        Some(("", Some(one)))
    }

    /// Returns the maximum number of packets that a PE sends in a step.
    pub fn ports(self, pes: usize) -> usize {
        match self {
            CompleteGossip::Dissemination { ports } => ports,
            CompleteGossip::Circulate | CompleteGossip::Neighbour => 1,
            CompleteGossip::CirculateBothWays => 2,
            CompleteGossip::Direct => pes - 1,
        }
    }

    /// Returns the blocks that PEs send in each step. Where two halves of a block meet, each counts as
    /// the whole.
    pub(crate) fn sendings(self, n: usize) -> Box<dyn Iterator<Item = Vec<Sending>>> {
        let one = move |from: usize, to: usize, first: usize| Sending {
            from: from % n,
            to: to % n,
            first: first % n,
            count: 1,
        };
        match self {
            CompleteGossip::Dissemination { ports } => {
                let widths = std::iter::successors(Some(1), move |w| Some(w * (ports + 1)));
                let widths = widths.take_while(move |width| *width < n);
                // PE p has blocks p to p + width - 1, and receives those that begin at `p + i * width`.
                Box::new(widths.map(move |width| {
                    let sources = (1..=ports).map(move |i| i * width);
                    let sources = sources.take_while(move |away| *away < n);
                    let to = |away: usize| {
                        let count = width.min(n - away);
                        (0..n).map(move |pe| Sending {
                            count,
                            ..one(pe + away, pe, pe + away)
                        })
                    };
                    sources.flat_map(to).collect()
                }))
            }
            CompleteGossip::Circulate => Box::new((1..n).map(move |step| {
                let from = |pe| one(pe, pe + 1, pe + 1 + n - step);
                (0..n).map(from).collect()
            })),
            CompleteGossip::CirculateBothWays => Box::new((1..=n / 2).map(move |step| {
                let right = (0..n).map(|pe| one(pe, pe + 1, pe + 1 + n - step));
                let left = (0..n).map(|pe| one(pe, pe + n - 1, pe + step - 1));
                right.chain(left).collect()
            })),
            CompleteGossip::Neighbour => {
                Box::new((0..n / 2).map(move |step| (0..n).map(|pe| swap(n, step, pe)).collect()))
            }
            CompleteGossip::Direct => Box::new((1..n).map(move |shift| {
                let from = |pe| one(pe, pe + shift, pe);
                (0..n).map(from).collect()
            })),
        }
    }

    /// Returns the steps; steps without packets are omitted.
    pub fn steps<'a>(self, blocks: &'a Blocks) -> Box<dyn Iterator<Item = Step> + 'a> {
        let n = blocks.lengths().len();
        let sendings = match self {
            // All at the same time.
            CompleteGossip::Direct => {
                let mut all: Vec<Sending> = self.sendings(n).flatten().collect();
                all.sort_by_key(|sending| sending.from);
                Box::new(std::iter::once(all))
            }
            _ => self.sendings(n),
        };
        let steps = sendings.enumerate().filter_map(move |(step, sendings)| {
            let meets = self == CompleteGossip::CirculateBothWays && 2 * (step + 1) == n;
            let packets = sendings.iter().enumerate().map(|(place, sending)| {
                let mut packet = sending.packet(blocks);
                if meets {
                    packet.flits = packet.flits.cut(place / n, 2);
                }
                packet
            });
            Step::of(packets)
        });
        Box::new(steps)
    }
}

impl fmt::Display for CompleteGossip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompleteGossip::Dissemination { ports } => write!(f, "dissemination:{ports}"),
            CompleteGossip::Circulate => f.write_str("circulate"),
            CompleteGossip::CirculateBothWays => f.write_str("approach1"),
            CompleteGossip::Neighbour => f.write_str("neighbour"),
            CompleteGossip::Direct => f.write_str("direct"),
        }
    }
}

/// Blocks `first` to `first + count - 1`, modulo the number of PEs, from one PE to another.
pub(crate) struct Sending {
    pub from: usize,
    pub to: usize,
    pub first: usize,
    pub count: usize,
}

impl Sending {
    fn packet(&self, blocks: &Blocks) -> Packet {
        let n = blocks.lengths().len();
        let end = self.first + self.count;
        let flits = blocks.of_range(0, self.first, end.min(n));
        let around = blocks.of_range(0, 0, end.saturating_sub(n));
        Packet {
            from: PeId(self.from as u32),
            to: PeId(self.to as u32),
            axis: 0,
            hops: 1,
            class: 0,
            flits: flits.union(&around),
        }
    }
}

/// Returns what a PE sends in step s, in which p and p + 1 swap where p + s is even: first their own
/// blocks, then those of both, then the two that arrived in the step before.
fn swap(n: usize, step: usize, pe: usize) -> Sending {
    let is_first = (pe + step).is_multiple_of(2);
    // Data from one side is forwarded to the other: in step 1 the own pair of the PE at distance
    // `step - 1` on the side where it came from.
    let first = match is_first {
        _ if step == 0 => pe,
        true => pe + n - step,
        false => pe + step - 1,
    };
    Sending {
        from: pe,
        to: (pe + if is_first { 1 } else { n - 1 }) % n,
        first: first % n,
        count: if step == 0 { 1 } else { 2 },
    }
}
