//! Total exchange in packets of several messages, in a complete network (Bruck, Ho, Kipnis, Upfal,
//! Weathersby, 1997; uneven lengths: Fan et al., arXiv:2411.02581).
//!
//! The distance of a message is the number of PEs from its source up to its destination, in the order of
//! numbers, around. It is written in digits of a radix r. For each digit and each of its values z from 1
//! to r - 1 there is a step, in which each PE sends in one packet all messages that it has and in whose
//! distance the digit has the value z, to the PE that is z times the digit's weight further. So N PEs
//! need `ceil(log2 N)` steps with r = 2 and N - 1 with r = N; the fewer the steps, the more PEs forward a
//! message.

use flitcast_proto::PeId;

use super::exchange::{ROUNDS, hops};
use super::exchange_plan::message;
use super::lock_step::LockStep;
use super::plan_limits::check_crossings;
use super::spec::{AlgorithmSpec, LinkRequirement, Offer};
use super::timetable::Timetable;

/// Short messages in packets of several messages, in `ceil(log2 N)` steps or more.
pub(super) const BRUCK: AlgorithmSpec = AlgorithmSpec {
    name: "bruck",
    offer: Offer::choice(
        &[("bruck", None)],
        "In a complete network, a few packets of many short messages, which PEs forward; for links with \
         a set-up time",
    ),
    pays_on: LinkRequirement::Setup,
    hops: |tree, bytes, timing| {
        hops(tree, bytes, timing, |_, flits| {
            in_packets(flits, timing.setup_flits)
        })
    },
    plan: LockStep::List(|task| {
        check_crossings(crossings(task.tree.len(), 2))?;
        Ok(in_packets(&task.rows(), task.setup_flits))
    }),
    ..ROUNDS
};

/// A step: each PE sends to the PE `ahead` places after it the messages of these distances.
struct Step {
    ahead: usize,
    /// The weight of the digit: a message has come this distance's remainder so far.
    weight: usize,
    distances: Vec<usize>,
}

/// Returns the steps among `pes` PEs with a radix of at least 2.
fn steps(pes: usize, radix: usize) -> impl Iterator<Item = Step> {
    let weights = std::iter::successors(Some(1), move |weight| Some(weight * radix));
    let weights = weights.take_while(move |weight| *weight < pes);
    weights.flat_map(move |weight| {
        let aheads = (1..radix).map(move |digit| digit * weight);
        let aheads = aheads.take_while(move |ahead| *ahead < pes);
        aheads.map(move |ahead| {
            let has_digit =
                |distance: &usize| distance % (weight * radix) / weight * weight == ahead;
            Step {
                ahead,
                weight,
                distances: (1..pes).filter(has_digit).collect(),
            }
        })
    })
}

/// Returns the number of crossings of messages with a radix.
fn crossings(pes: usize, radix: usize) -> u64 {
    let of_each: usize = steps(pes, radix).map(|step| step.distances.len()).sum();
    (pes * of_each) as u64
}

/// Returns the radix with the least sum of set-up times and longest packets, in flits; 2 without a set-up
/// time.
fn best_radix(flits: &[Vec<u64>], setup_flits: u64) -> usize {
    let pes = flits.len();
    let cost = |radix: &usize| -> u64 {
        let longest = |step: Step| {
            let packet = |pe| {
                step.messages(pe, pes)
                    .map(|[from, to]| flits[from][to])
                    .sum()
            };
            let packets = (0..pes).map(packet);
            packets
                .max()
                .map_or(0, |flits: u64| flits.saturating_add(setup_flits))
        };
        steps(pes, *radix).map(longest).fold(0, u64::saturating_add)
    };
    let most = if setup_flits == 0 { 2 } else { pes };
    (2..=most).min_by_key(cost).unwrap_or(2)
}

impl Step {
    /// Returns the ends of the messages that a PE sends.
    fn messages(&self, pe: usize, pes: usize) -> impl Iterator<Item = [usize; 2]> {
        self.distances.iter().map(move |distance| {
            let from = (pe + pes - distance % self.weight) % pes;
            [from, (from + distance) % pes]
        })
    }
}

/// Plans by the radix that is best for a set-up time in flits.
fn in_packets(flits: &[Vec<u64>], setup_flits: u64) -> Timetable {
    by_radix(flits, best_radix(flits, setup_flits))
}

/// Plans all steps of a radix. A step takes as long as its longest packet.
fn by_radix(flits: &[Vec<u64>], radix: usize) -> Timetable {
    let pes = flits.len();
    let with_flits = |[from, to]: [usize; 2]| {
        let message = message(PeId(from as u32), PeId(to as u32), pes);
        (message, flits[from][to])
    };
    let rounds = steps(pes, radix).map(|step| {
        (0..pes).map(move |pe| {
            let messages = step.messages(pe, pes).map(with_flits);
            ([pe, (pe + step.ahead) % pes], messages.collect())
        })
    });
    Timetable::of_rounds(rounds)
}

#[cfg(test)]
mod tests {
    use flitcast_proto::items::{Packing, ScheduledHop};
    use flitcast_proto::seeded::SplitMix64;

    use super::super::exchange_plan::ends;
    use super::*;
    use crate::tests::{check_single_ports, of_pairs};

    /// Every message reaches its destination, from PE to PE that have it, in one packet a step.
    #[test]
    fn every_radix_delivers_every_message() {
        let mut random = SplitMix64::new(3);
        for pes in 1..20 {
            let flits = of_pairs(pes as u64, || random.below(4));
            for radix in 2..=pes + 1 {
                let plan = by_radix(&flits, radix);
                let all = check_single_ports(&plan.hops, |id| ends(id, pes)[0]);
                let mut received = vec![vec![0; pes]; pes];
                for (_, _, pe, (id, _)) in all {
                    let [from, to] = ends(id, pes).map(PeId::index);
                    received[from][to] += u64::from(pe.index() == to);
                }
                assert_eq!(received, flits, "{pes} {radix}");
            }
        }
    }

    /// `ceil(log2 N)` packets of each PE, and half of the messages in each, for N = 2^d.
    #[test]
    fn a_small_radix_needs_few_packets_and_a_large_one_sends_whole_messages() {
        for pes in [2_usize, 3, 5, 8, 9, 12, 16, 33] {
            let ones = vec![vec![1; pes]; pes];
            let packets = |radix| {
                let plan = by_radix(&ones, radix);
                let begins = |hop: &&ScheduledHop| hop.packing == Packing::Begins;
                plan.hops.iter().filter(begins).count() / pes
            };
            assert_eq!(packets(2), pes.next_power_of_two().ilog2() as usize);
            assert_eq!(packets(pes), pes - 1);
        }
        let eight = vec![vec![1; 8]; 8];
        assert_eq!(by_radix(&eight, 2).time_steps, 3 * 4);
        assert_eq!(best_radix(&eight, 0), 2);
        assert_eq!(best_radix(&eight, 100), 2);
        // As many steps as with 8.
        assert_eq!(best_radix(&vec![vec![100; 8]; 8], 1), 7);
    }
}
