//! The ways to do an operation for real: one list for whoever tries them all or chooses
//! among them, and on which trees each of them works. How they are timed, or chosen, is
//! not said here.

use flitcast_proto::pe::Operation;
use flitcast_proto::schedule::certification::Sync;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::{PeId, Tree};
use thiserror::Error;

use crate::site::topology::Topology;
use crate::ways::baseline::Baseline;

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
}

impl Unfit {
    /// What does work.
    pub fn instead(&self) -> &'static str {
        match self {
            Unfit::NoPath { .. } => "--algorithm certification",
            Unfit::NotComplete { .. } => "--network complete:N",
        }
    }
}

/// That a tree is a path.
pub fn check_path(tree: &Tree, name: &impl std::fmt::Display) -> Result<(), Unfit> {
    match tree.pes().find(|&pe| tree.children(pe).len() > 1) {
        None => Ok(()),
        Some(pe) => Err(Unfit::NoPath {
            spec: name.to_string(),
            pe,
            children: tree.children(pe).len(),
        }),
    }
}

/// All ways to scatter, ours first.
pub fn scatters() -> Vec<Candidate> {
    let baselines = [Baseline::Linear, Baseline::Binomial, Baseline::Adaptive];
    let baselines = baselines.map(|baseline| Candidate {
        name: baseline.name(),
        operation: baseline.scatter(),
        pacing: None,
        baseline: Some(baseline),
    });
    [ours("fdf", Operation::Scatter, None)]
        .into_iter()
        .chain(baselines)
        .collect()
}

/// All ways to gather, ours first.
pub fn gathers() -> Vec<Candidate> {
    let baselines = [
        Baseline::Linear,
        Baseline::Window,
        Baseline::Binomial,
        Baseline::Adaptive,
    ];
    let baselines = baselines.map(|baseline| Candidate {
        name: baseline.name(),
        operation: baseline.gather(),
        pacing: None,
        baseline: Some(baseline),
    });
    let serial = Operation::Certification(Sync::Serial);
    let pipelined = Operation::Certification(Sync::Pipelined);
    let tap = Operation::ShoulderTap;
    let (turns, eager) = (Pacing::Turns, Pacing::Eager);
    let gather = |name, operation, pacing| ours(name, operation, Some(pacing));
    [
        gather("certification-serial", serial, Pacing::Scheduled),
        gather("certification-serial-turns", serial, turns),
        gather("certification-serial-eager", serial, eager),
        gather("certification-pipelined", pipelined, Pacing::Scheduled),
        gather("certification-pipelined-turns", pipelined, turns),
        gather("certification-pipelined-eager", pipelined, eager),
        gather("shoulder-tap", tap, Pacing::Scheduled),
        gather("shoulder-tap-turns", tap, turns),
        gather("shoulder-tap-eager", tap, eager),
    ]
    .into_iter()
    .chain(baselines)
    .collect()
}

fn ours(name: &'static str, operation: Operation, pacing: Option<Pacing>) -> Candidate {
    Candidate {
        name,
        operation,
        pacing,
        baseline: None,
    }
}

impl Candidate {
    /// That it works on this tree. A network's breadth-first tree says whether P0
    /// reaches everybody, as a baseline wants; of `--tree`, both are the same.
    pub fn check(&self, topology: &Topology, breadth_first: &Topology) -> Result<(), Unfit> {
        match (self.baseline, self.operation) {
            (Some(baseline), _) => baseline.check(breadth_first),
            (None, Operation::ShoulderTap) => check_path(&topology.tree, &topology.name),
            _ => Ok(()),
        }
    }
}
