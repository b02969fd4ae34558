//! The steps of a gossip as data, and their costs: `t_s + D * t_d + F * t_l` each, with D the longest
//! distance and F the largest packet (Juurlink, Rao, Sibeyn, section 2, D included).

use flitcast_proto::PeId;

use super::flits::Flits;
use super::gossip_network::GossipNetwork;

/// A packet that crosses one or more hops of a straight line in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The sender.
    pub from: PeId,
    /// The receiver.
    pub to: PeId,
    pub axis: usize,
    /// The number of hops, in the direction of rising coordinates if above 0.
    pub hops: i64,
    /// The class of its flits.
    pub class: usize,
    /// The flits, at least one.
    pub flits: Flits,
}

impl Packet {
    /// Returns all PEs that the packet passes, ends included.
    pub fn path(&self, arena: &GossipNetwork) -> Vec<PeId> {
        match arena {
            GossipNetwork::Grid(grid) => grid.path(self.from, self.axis, self.hops),
            GossipNetwork::Complete(_) => vec![self.from, self.to],
        }
    }
}

/// The packets that cross at once, at least one, each directed edge at most once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// All packets.
    pub packets: Vec<Packet>,
}

/// The longest distance and the largest packet of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCost {
    /// D, in hops; 0 if nothing is sent.
    pub distance: u64,
    /// F, in flits.
    pub flits: u64,
}

impl StepCost {
    /// Returns the cost of two steps combined into one.
    pub fn max(self, other: StepCost) -> StepCost {
        StepCost {
            distance: self.distance.max(other.distance),
            flits: self.flits.max(other.flits),
        }
    }
}

impl Step {
    /// Creates a step of these packets, of which those without flits are omitted; `None` if none is left.
    pub(super) fn of(packets: impl Iterator<Item = Packet>) -> Option<Step> {
        let packets = packets.filter(|packet| !packet.flits.is_empty());
        let packets: Vec<Packet> = packets.collect();
        (!packets.is_empty()).then_some(Step { packets })
    }

    /// Returns the cost of the step. On a complete network F is the most that one PE sends or receives.
    pub fn cost(&self, arena: &GossipNetwork) -> StepCost {
        match arena {
            GossipNetwork::Grid(_) => {
                let of_packet = |packet: &Packet| StepCost {
                    distance: packet.hops.unsigned_abs(),
                    flits: packet.flits.len(),
                };
                let costs = self.packets.iter().map(of_packet);
                costs.reduce(StepCost::max).unwrap_or_default()
            }
            GossipNetwork::Complete(pes) => {
                let (mut sent, mut received) = (vec![0; *pes], vec![0; *pes]);
                for packet in &self.packets {
                    sent[packet.from.index()] += packet.flits.len();
                    received[packet.to.index()] += packet.flits.len();
                }
                StepCost {
                    distance: 1,
                    flits: sent.into_iter().chain(received).max().unwrap_or(0),
                }
            }
        }
    }
}

/// The cost of a gossip: sums over its steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Number of steps.
    pub startups: u64,
    /// Sum of D over all steps, in hops.
    pub distance: u64,
    /// Sum of F over all steps, in flits.
    pub flits: u64,
}

impl FromIterator<StepCost> for Cost {
    /// Sums the steps in which something is sent.
    fn from_iter<I: IntoIterator<Item = StepCost>>(steps: I) -> Cost {
        let steps = steps.into_iter().filter(|step| step.distance > 0);
        steps.fold(Cost::default(), |sum, step| Cost {
            startups: sum.startups + 1,
            distance: sum.distance + step.distance,
            flits: sum.flits + step.flits,
        })
    }
}

impl std::ops::Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost {
            startups: self.startups + other.startups,
            distance: self.distance + other.distance,
            flits: self.flits + other.flits,
        }
    }
}

/// Prices of a step, a hop and a flit, each at most [`Prices::MAX`], in one unit of time which is a
/// `unit`-th of the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// t_s.
    pub startup: u64,
    /// t_d.
    pub hop: u64,
    /// t_l.
    pub flit: u64,
    /// The number of these units in one of the user's: at least 1.
    pub unit: u64,
}

impl Prices {
    /// The greatest price: with it, and with the largest numbers of steps and flits, times stay below
    /// 2^128.
    pub const MAX: u64 = 1_000_000_000_000_000;

    /// Returns the time of this cost, in units of these prices.
    pub fn time(&self, cost: Cost) -> u128 {
        u128::from(self.startup) * u128::from(cost.startups)
            + u128::from(self.hop) * u128::from(cost.distance)
            + u128::from(self.flit) * u128::from(cost.flits)
    }
}

impl Default for Prices {
    /// Returns prices at which a step takes as long as a flit, and hops take no time.
    fn default() -> Prices {
        Prices {
            startup: 1,
            hop: 0,
            flit: 1,
            unit: 1,
        }
    }
}
