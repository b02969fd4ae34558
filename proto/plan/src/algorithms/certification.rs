//! Gather by Transmission-Certification (paper 000, section III-B), and its schedule, computed without
//! simulation.

use flitcast_proto::items::Control;
use flitcast_proto::ops::{PeRole, PeSchedule};
use flitcast_proto::schedule::certification::{self as rules, Certificate, Child, Slot, Sync};
use flitcast_proto::schedule::pace::{Pace, Pacing, Packets};
use flitcast_proto::{PeId, Tree};

use super::lock_step::{ControlPlan, LockStep, Steps, on_its_way};
use super::spec::{
    AlgorithmSpec, AllPorts, BASE, Latencies, LinkRequirement, Offer, TreeRequirement, paced,
};
use crate::schedule::gather_steps_beside_control;
use crate::timing::Timing;

/// Help of the algorithm, whichever its synchronisation.
const HELP: &str = "Transmission-Certification: any tree";

/// Gather by Transmission-Certification, one child after the other.
pub(super) const SERIAL: AlgorithmSpec = AlgorithmSpec {
    name: "certification",
    sync: Some("serial"),
    offer: Offer::choice(paced!("certification-serial"), HELP),
    gives_orders: true,
    role: PeRole::Certification(Sync::Serial),
    plan: LockStep::Messages(|tree, flits| steps(tree, Sync::Serial, flits, &[])),
    // A PE passes the token to its next child after the previous child's certificate has arrived. An order follows.
    latencies: |tree| Latencies {
        before: 2 * (tree.count() as u64 - 1) + 1,
        ..Latencies::in_tree(tree)
    },
    ..BASE
};

/// Gather by Transmission-Certification, pipelined.
pub(super) const PIPELINED: AlgorithmSpec = AlgorithmSpec {
    role: PeRole::Certification(Sync::Pipelined),
    sync: Some("pipelined"),
    offer: Offer::choice(paced!("certification-pipelined"), HELP),
    plan: LockStep::Messages(|tree, flits| steps(tree, Sync::Pipelined, flits, &[])),
    latencies: |tree| {
        let in_tree = Latencies::in_tree(tree);
        Latencies {
            before: 2 * in_tree.flits + 1,
            ..in_tree
        }
    },
    ..SERIAL
};

/// Gather by Transmission-Certification with a control port for each neighbour.
pub(super) const PARALLEL: AlgorithmSpec = AlgorithmSpec {
    role: PeRole::Certification(Sync::Parallel),
    sync: Some("parallel"),
    offer: Offer::INTERNAL,
    plan: LockStep::Messages(|tree, flits| steps(tree, Sync::Parallel, flits, &[])),
    bound: gather_steps_beside_control,
    ..PIPELINED
};

/// With a port for each neighbour, for messages as well. Its time in steps is that of
/// [`steps_of_gather_on_a_tree`](super::cover_plan::steps_of_gather_on_a_tree).
pub(super) const MULTI_PORT: AlgorithmSpec = AlgorithmSpec {
    role: PeRole::Certification(Sync::MultiPort),
    sync: Some("multi-port"),
    offer: Offer::choice(paced!("certification-multi-port"), HELP),
    all_ports: AllPorts::WithOwnLinks,
    plan: LockStep::None,
    ..PARALLEL
};

/// Without token and certificates: P0 has the lengths of all messages before the round. It takes 1 step
/// more than P0 needs to receive all flits, which no gather by orders can improve.
pub(super) const ORDERS: AlgorithmSpec = AlgorithmSpec {
    name: "orders",
    sync: None,
    offer: Offer::choice(
        paced!("orders"),
        "Orders without certificates: a star; P0 has the lengths of the messages",
    ),
    fits: TreeRequirement::Stars,
    pays_on: LinkRequirement::SlowOrFar,
    role: PeRole::Certification(Sync::Known),
    plan: LockStep::Messages(|tree, flits| steps(tree, Sync::Known, flits, &[])),
    latencies: |_| Latencies {
        before: 1,
        flits: 1,
    },
    ..SERIAL
};

/// Computes when all messages and control items cross if each PE takes its children's streams by rank.
/// `ranks` are by PE index, then in index order of the children; without any, each stream comes as
/// early as it can.
pub(super) fn steps(tree: &Tree, sync: Sync, flits: &[u64], ranks: &[Vec<u32>]) -> Steps {
    let basis = Basis {
        tree,
        sync,
        ranks: ranks.to_vec(),
        paces: paces(tree, &Timing::LOCK_STEP),
    };
    let mut control = Vec::with_capacity(3 * tree.len());
    let certified = synchronise(tree, sync, &mut control);
    let own = |pe: PeId| Packets::of(flits[pe.index()], 1);
    let certificates = basis.certificates(own);
    for item in &mut control {
        if let Control::Certificate(certificate) = &mut item.item {
            *certificate = certificates[item.from.index()];
        }
    }
    let mut messages = Vec::new();
    // The step in which a PE's order reaches it, and its s.
    let mut ordered = vec![None; tree.len()];
    ordered[tree.root().index()] = Some((certified, 0));
    for &pe in tree.top_down() {
        let Some((at, after)) = ordered[pe.index()] else {
            continue;
        };
        let message = flits[pe.index()];
        if message > 0 {
            messages.push(on_its_way(tree, pe, message, at + after));
        }
        for slot in basis.slots(&certificates, pe, after, own(pe)) {
            let Slot { pe: to, after, .. } = slot;
            let step = at + slot.ordered;
            control.push(ControlPlan::new(step, [pe, to], Control::Order { after }));
            ordered[to.index()] = Some((step, after));
        }
    }
    Steps { messages, control }
}

/// The certificate of a PE, and the s of its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPlan {
    /// (c_i, n_i).
    pub certificate: Certificate,
    /// s_i; `None` if the PE gets no order.
    pub after: Option<u64>,
}

/// Returns the certificates and orders of a round with these schedules, by PE index; `None` if it is not a
/// gather by certification.
pub fn streams(tree: &Tree, schedules: &[PeSchedule]) -> Option<Vec<StreamPlan>> {
    let root = &schedules[tree.root().index()];
    let sync = match root.role {
        // No PE sends one.
        PeRole::Certification(Sync::Known) => return None,
        PeRole::Certification(sync) => sync,
        _ => return None,
    };
    let basis = Basis {
        tree,
        sync,
        ranks: schedules.iter().map(|it| it.child_ranks.clone()).collect(),
        paces: schedules.iter().map(|it| it.pace.clone()).collect(),
    };
    let own = |pe: PeId| schedules[pe.index()].own_packets();
    let certificates = basis.certificates(own);
    let mut afters = vec![None; tree.len()];
    afters[tree.root().index()] = Some(0);
    for &pe in tree.top_down() {
        let Some(after) = afters[pe.index()] else {
            continue;
        };
        for slot in basis.slots(&certificates, pe, after, own(pe)) {
            afters[slot.pe.index()] = Some(match schedules[pe.index()].pace.pacing {
                // A child that is called in its turn starts as soon as it can.
                Pacing::Turns => slot.lag,
                Pacing::Scheduled | Pacing::Eager => slot.after,
            });
        }
    }
    afters[tree.root().index()] = None;
    let plans = certificates.into_iter().zip(afters);
    let plan = |(certificate, after)| StreamPlan { certificate, after };
    Some(plans.map(plan).collect())
}

/// Returns the PEs whose messages P0 receives, in its order, if certificates and orders count the time
/// of these links instead of steps. `bytes` are the lengths.
pub(super) fn order_on(tree: &Tree, sync: Sync, bytes: &[u64], timing: &Timing) -> Vec<PeId> {
    let basis = Basis {
        tree,
        sync,
        ranks: Vec::new(),
        paces: paces(tree, timing),
    };
    let own = |pe: PeId| Packets::of(bytes[pe.index()], timing.flit_bytes_of(pe.into()));
    let certificates = basis.certificates(own);
    let (mut order, mut left) = (Vec::new(), vec![tree.root()]);
    while let Some(pe) = left.pop() {
        order.extend((bytes[pe.index()] > 0).then_some(pe));
        let slots = basis.slots(&certificates, pe, certificates[pe.index()].lag, own(pe));
        left.extend(slots.iter().rev().map(|slot| slot.pe));
    }
    order
}

/// The times and ranks by which certificates and orders are computed.
struct Basis<'a> {
    tree: &'a Tree,
    sync: Sync,
    /// The ranks by PE index, then in index order of the children; empty without ranks.
    ranks: Vec<Vec<u32>>,
    /// The times by PE index.
    paces: Vec<Pace>,
}

fn paces(tree: &Tree, timing: &Timing) -> Vec<Pace> {
    tree.ids().map(|pe| timing.pace(tree, pe)).collect()
}

impl Basis<'_> {
    /// Returns the children of `pe` that get an order.
    fn ordered_children(&self, certificates: &[Certificate], pe: PeId) -> Vec<Child> {
        let in_token_order = match self.sync {
            Sync::Serial | Sync::Parallel | Sync::MultiPort | Sync::Known => self.tree.children(pe),
            Sync::Pipelined => self.tree.token_broadcast().order(pe),
        };
        let pace = &self.paces[pe.index()];
        let ranks = self.ranks.get(pe.index());
        let certified = in_token_order.iter().map(|child| {
            let place = self.tree.children(pe).binary_search(child).unwrap_or(0);
            let rank = ranks.and_then(|ranks| ranks.get(place)).copied();
            let certificate = certificates[child.index()];
            (*child, rank.unwrap_or(0), pace.below[place], certificate)
        });
        rules::places(self.sync, pace.control, certified)
    }

    /// Returns every PE's certificate.
    fn certificates(&self, own: impl Fn(PeId) -> Packets) -> Vec<Certificate> {
        let mut certificates = vec![Certificate::default(); self.tree.len()];
        for &pe in self.tree.top_down().iter().rev() {
            let children = self.ordered_children(&certificates, pe);
            let Pace { pacing, up, .. } = &self.paces[pe.index()];
            certificates[pe.index()] =
                rules::certificate(self.sync, *pacing, up, own(pe), &children);
        }
        certificates
    }

    /// Returns a PE's orders, if its own order contains `after`.
    fn slots(&self, certificates: &[Certificate], pe: PeId, after: u64, own: Packets) -> Vec<Slot> {
        let children = self.ordered_children(certificates, pe);
        let Pace { pacing, up, .. } = &self.paces[pe.index()];
        match pe == self.tree.root() {
            true => rules::root_orders(self.sync == Sync::MultiPort, &children),
            false => rules::orders(self.sync, *pacing, up, after, own, &children),
        }
    }
}

/// Adds the crossings of tokens and certificates, whose contents are set later; returns the step in
/// which P0 has the last certificate.
fn synchronise(tree: &Tree, sync: Sync, control: &mut Vec<ControlPlan>) -> u64 {
    let unknown = Control::Certificate(Certificate::default());
    let mut both_ways = |from: PeId, to: PeId, down: u64, up: u64| {
        control.push(ControlPlan::new(down, [from, to], Control::Token));
        control.push(ControlPlan::new(up, [to, from], unknown));
    };
    match sync {
        // The token's walk: down an edge, through the subtree, and up again.
        Sync::Serial => {
            let edges_below = tree.subtree_sums(|_| 1);
            let mut entered = vec![0; tree.len()];
            for &pe in tree.top_down() {
                let mut at = entered[pe.index()];
                for &child in tree.children(pe) {
                    let walk = 2 * edges_below[child.index()];
                    entered[child.index()] = at + 1;
                    both_ways(pe, child, at + 1, at + walk);
                    at += walk;
                }
            }
            2 * (tree.count() as u64 - 1)
        }
        Sync::Pipelined => {
            let broadcast = tree.token_broadcast();
            for [parent, pe] in tree.edges() {
                let received = broadcast.received_step(pe);
                both_ways(parent, pe, received, 2 * broadcast.steps() + 1 - received);
            }
            2 * broadcast.steps()
        }
        Sync::Known => 0,
        // A PE certifies in the step after its last child.
        Sync::Parallel | Sync::MultiPort => {
            let mut certified = vec![0; tree.len()];
            for &pe in tree.top_down().iter().rev() {
                let children = tree.children(pe).iter();
                let below = children.map(|child| certified[child.index()]);
                let depth = u64::from(tree.depth(pe));
                certified[pe.index()] = below.max().unwrap_or(depth) + 1;
                if let Some(parent) = tree.parent(pe) {
                    both_ways(parent, pe, depth, certified[pe.index()]);
                }
            }
            certified[tree.root().index()] - 1
        }
    }
}
