//! The ways to do an operation for real: one list for whoever tries them all or chooses
//! among them, and on which trees each of them works. How they are timed, or chosen, is
//! not said here.

use flitcast_proto::ops::{Broadcast, Exchange, Fits, Gossip, OnNetwork, Operation};
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::{PeId, Tree};
use thiserror::Error;

use crate::site::placement::Placement;
use crate::site::topology::Topology;
use crate::ways::baseline::Baseline;
use crate::ways::way::Way;

/// A way to do an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What it is called where ways are compared.
    pub name: &'static str,
    /// What the PEs do.
    pub operation: Operation,
    /// How orders are obeyed, where there are any.
    pub pacing: Option<Pacing>,
    /// What users know from elsewhere, if it is that.
    pub baseline: Option<Baseline>,
}

/// Why an algorithm does not work on a tree.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unfit {
    /// It wants a path.
    #[error("for paths only, and in {spec} {pe} has {children} children")]
    NoPath {
        /// The tree, as it was named.
        spec: String,
        /// A PE with several children.
        pe: PeId,
        /// How many.
        children: usize,
    },
    /// It lays a tree of its own.
    #[error("for PEs that can all reach each other, which {spec} does not promise")]
    NotComplete {
        /// The tree, as it was named.
        spec: String,
    },
    /// It lays the trees of a hypercube.
    #[error("for 2, 4, 8 and so on PEs, and there are {pes}")]
    NoCube {
        /// How many there are.
        pes: usize,
    },
}

impl Unfit {
    /// What does work.
    pub fn instead(&self) -> &'static str {
        match self {
            Unfit::NoPath { .. } => "--algorithm certification",
            Unfit::NotComplete { .. } => "--network complete:N",
            Unfit::NoCube { .. } => "--algorithm path",
        }
    }
}

/// That a tree is a path.
fn check_path(tree: &Tree, name: &impl std::fmt::Display) -> Result<(), Unfit> {
    match tree.pes().find(|&pe| tree.children(pe).len() > 1) {
        None => Ok(()),
        Some(pe) => Err(Unfit::NoPath {
            spec: name.to_string(),
            pe,
            children: tree.children(pe).len(),
        }),
    }
}

/// That an operation works on a tree.
pub fn check_fits(
    operation: Operation,
    tree: &Tree,
    name: &impl std::fmt::Display,
) -> Result<(), Unfit> {
    match operation.fits() {
        Fits::Paths => check_path(tree, name),
        Fits::Stars if !Fits::Stars.holds(tree) => Err(Unfit::NotComplete {
            spec: name.to_string(),
        }),
        Fits::Cubes if !Fits::Cubes.holds(tree) => Err(Unfit::NoCube { pes: tree.count() }),
        Fits::Trees | Fits::Stars | Fits::Complete | Fits::Cubes => Ok(()),
    }
}

/// That an operation works on a tree and on what connects its PEs beside it.
pub fn check_reach(operation: Operation, topology: &Topology) -> Result<(), Unfit> {
    let reaches_all = match operation {
        // Packets go directly from end to end, whatever lines the network has between.
        Operation::Gossip(Gossip::OnNetwork(one)) => {
            let placement = topology.placement.as_ref();
            let have_links = |placement: &Placement| {
                let mut pes = topology.tree.pes();
                let has_links = |one: &OnNetwork, pe: PeId| {
                    let partners = one.partners(pe);
                    partners
                        .iter()
                        .all(|other| placement.has_link_for(pe, *other))
                };
                one.is_some_and(|one| pes.all(|pe| has_links(&one, pe)))
            };
            placement.is_none_or(|it| it.has_any_edge() || have_links(it))
        }
        _ => topology.reaches_all(),
    };
    if matches!(operation.fits(), Fits::Complete | Fits::Cubes) && !reaches_all {
        let spec = topology.name.to_string();
        return Err(Unfit::NotComplete { spec });
    }
    check_fits(operation, &topology.tree, &topology.name)
}

/// All ways to do the operation of this name: ours first, and of these those for any tree.
pub fn all(name: &str) -> Vec<Candidate> {
    let ours = Operation::named(name).flat_map(|operation| {
        let ways = operation.ways().iter();
        ways.map(move |&(name, pacing)| Candidate {
            name,
            operation,
            pacing,
            baseline: None,
        })
    });
    let mut candidates: Vec<Candidate> = ours.collect();
    candidates.sort_by_key(|candidate| candidate.operation.fits() != Fits::Trees);
    candidates.extend(Baseline::ALL.into_iter().filter_map(|baseline| {
        Some(Candidate {
            name: baseline.name(),
            operation: baseline.operation(name)?,
            pacing: None,
            baseline: Some(baseline),
        })
    }));
    candidates
}

/// Ways of our own that nobody would choose, to measure the others against.
pub fn to_measure_against(name: &str) -> impl Iterator<Item = Candidate> {
    let all = [
        Operation::Broadcast(Broadcast::ChildByChild),
        Operation::Gossip(Gossip::RingEmulation),
        Operation::Exchange(Exchange::AtOnce),
    ];
    let named = all.into_iter().filter(move |one| one.name() == name);
    named.map(|operation| Candidate {
        name: operation.algorithm(),
        operation,
        pacing: None,
        baseline: None,
    })
}

impl Candidate {
    /// The way that it is, in flits of this size or of the best one.
    pub fn way(&self, flit_bytes: Option<u32>) -> Way {
        Way {
            operation: self.operation,
            baseline: self.baseline,
            pacing: self.pacing,
            flit_bytes,
            packets: None,
            searches_order: false,
            covers: false,
        }
    }

    /// That it works on this tree. A network's breadth-first tree says whether P0
    /// reaches everybody, as a baseline wants; of `--tree`, both are the same.
    pub fn check(&self, topology: &Topology, breadth_first: &Topology) -> Result<(), Unfit> {
        match self.baseline {
            Some(baseline) => baseline.check(breadth_first),
            None => check_reach(self.operation, topology),
        }
    }
}
