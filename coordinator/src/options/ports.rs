//! How many ports a PE has, as users say it.

use clap::ValueEnum;
use thiserror::Error;

/// How many ports a PE has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Ports {
    /// One to send and one to receive.
    Single,
    /// One for each neighbour.
    Multi,
}

impl Ports {
    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Ports::Single => "single",
            Ports::Multi => "multi",
        }
    }

    /// Whether PEs can have them, who all reach each other or do not.
    ///
    /// # Errors
    ///
    /// They are many, and all reach each other.
    pub fn fit(self, reach_all: bool) -> Result<(), PortsOfAll> {
        match self == Ports::Multi && reach_all {
            true => Err(PortsOfAll),
            false => Ok(()),
        }
    }
}

/// Many ports where all reach each other.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("--ports multi: with --network complete:N a PE has one port for all others: leave it out")]
pub struct PortsOfAll;
