//! The parameters of a launch, and the PEs that may join.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use flitcast_node::limits::Timeouts;
use flitcast_proto::{PeId, Tree};

use crate::launch::log_args::LogArgs;
use crate::launch::starter::StarterConfig;
use crate::observe::console::Console;
use crate::site::guard::Guard;
use crate::site::placement::{Launch, Placement};
use crate::tuning::LAUNCH;

/// The parameters of a launch.
#[derive(Clone, Copy, Debug)]
pub struct LaunchPlan<'a> {
    /// Program that runs a PE.
    pub program: &'a Path,
    /// PEs to launch.
    pub pes: &'a [PeId],
    /// Tree of these PEs.
    pub tree: &'a Tree,
    /// Hosts and addresses of the PEs.
    pub placement: &'a Placement,
    /// Security of connections.
    pub guard: &'a Guard,
    /// Whether further clusters may follow this one.
    pub again: bool,
    /// Whether all PEs must join, or those that join in time are enough.
    pub require_all: bool,
    /// Whether the PEs must run commands, in this cluster or in one that follows.
    pub commands: bool,
    /// Logging of the processes that are started.
    pub logs: &'a LogArgs,
    /// Time limits.
    pub timeouts: &'a Timeouts,
}

impl LaunchPlan<'_> {
    /// Returns the parameters of a starter.
    pub fn orders(&self, console: &Console) -> StarterConfig {
        let (port, wait) = match self.placement.launch {
            Launch::Join { port, wait, .. } => (port, wait),
            Launch::Local | Launch::Ssh(_) => (0, LAUNCH),
        };
        let place = |&pe: &PeId| (pe, self.placement.places[pe.index()].clone());
        StarterConfig {
            program: self.program.to_owned(),
            pes: self.pes.iter().map(place).collect(),
            coordinator: SocketAddr::new(self.placement.coordinator, port),
            guard: self.guard.clone(),
            commands: self.commands,
            wait,
            logs: self.logs.clone(),
            console: console.clone(),
        }
    }
}

#[derive(Debug)]
pub struct Joining {
    pub listen: BTreeMap<PeId, IpAddr>,
    /// Time limits that the PEs receive.
    pub timeouts: Timeouts,
    /// Address where PEs join.
    pub at: SocketAddr,
    /// Total time for all PEs to join.
    pub wait: Duration,
    /// Whether further clusters follow this one.
    pub again: bool,
    pub require_all: bool,
    /// Whether the PEs must run commands.
    pub commands: bool,
}

impl Joining {
    /// Derives the PEs that may join from a launch plan.
    pub fn new(plan: &LaunchPlan<'_>, at: SocketAddr, wait: Duration) -> Joining {
        let listen = |&pe: &PeId| (pe, plan.placement.places[pe.index()].listen);
        Joining {
            listen: plan.pes.iter().map(listen).collect(),
            timeouts: *plan.timeouts,
            at,
            wait,
            // PEs that this launch's starter starts are started again for the next cluster.
            again: plan.again && plan.placement.starter().is_none(),
            require_all: plan.require_all,
            commands: plan.commands,
        }
    }
}
