//! The value of `--ports`: the number of ports of a PE.

use anyhow::ensure;
use clap::ValueEnum;
use flitcast_plan::cost;

/// How many ports a PE has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ports {
    /// One to send and one to receive.
    Single,
    /// One port for each neighbour.
    Multi,
}

impl Ports {
    /// Returns the name that users type.
    pub fn name(self) -> &'static str {
        match self {
            Ports::Single => "single",
            Ports::Multi => "multi",
        }
    }

    pub fn of_model(self) -> cost::Ports {
        match self {
            Ports::Single => cost::Ports::Single,
            Ports::Multi => cost::Ports::PerEdge,
        }
    }

    /// Refuses many ports in a complete network, for which `reach_all` stands.
    pub fn fit(self, reach_all: bool) -> anyhow::Result<()> {
        ensure!(
            self == Ports::Single || !reach_all,
            "--ports multi: with --network complete:N a PE has one port for all others: leave it out"
        );
        Ok(())
    }
}
