//! The parameters of a launch.

use std::net::SocketAddr;
use std::path::Path;

use flitcast_node::limits::Timeouts;
use flitcast_proto::{PeId, Tree};
use tokio::sync::mpsc;

use super::member::PeEvent;
use crate::launch::starter::StarterConfig;
use crate::observe::console::Console;
use crate::site::guard::{Guard, Guarded};
use crate::site::placement::{Launch, Placement};
use crate::tuning::LAUNCH;

#[derive(Clone, Copy, Debug)]
pub struct LaunchPlan<'a> {
    /// Program that runs a PE.
    pub program: &'a Path,
    pub pes: &'a [PeId],
    pub tree: &'a Tree,
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
    pub logs: &'a [String],
    pub timeouts: &'a Timeouts,
}

/// A launch under way.
pub struct Launching<'a> {
    pub plan: LaunchPlan<'a>,
    pub guarded: Guarded,
    /// Channel for the events of the PEs.
    pub event_sender: mpsc::Sender<(PeId, PeEvent)>,
    pub console: &'a Console,
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
            logs: self.logs.to_vec(),
            console: console.clone(),
        }
    }
}
