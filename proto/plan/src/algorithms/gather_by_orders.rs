//! Gather on a star by orders as in Transmission-Certification (paper 000, section III-B), without token
//! and certificates: P0 has the lengths of all messages before the round. It takes 1 step more than P0
//! needs to receive all flits, which no gather by orders can improve.

use flitcast_proto::ops::PeRole;
use flitcast_proto::schedule::certification::Sync;

use super::algorithm::Algorithm;
use super::certification;
use super::lock_step::LockStep;
use super::spec::{AlgorithmSpec, BASE, LinkRequirement, Offer, TreeRequirement, paced};

const SPEC: AlgorithmSpec = AlgorithmSpec {
    name: "orders",
    offer: Offer::choice(
        paced!("orders"),
        "Orders without certificates: a star; P0 has the lengths of the messages",
    ),
    fits: TreeRequirement::Stars,
    pays_on: LinkRequirement::Slow,
    gives_orders: true,
    role: PeRole::Certification(Sync::Known),
    plan: LockStep::Messages(|tree, flits| certification::steps(tree, Sync::Known, flits, &[])),
    ..BASE
};

impl Algorithm {
    /// Gather on a star by orders, without token and certificates.
    pub const GATHER_BY_ORDERS: Algorithm = Algorithm::of(&SPEC);
}
