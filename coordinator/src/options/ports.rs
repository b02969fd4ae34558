//! How many ports a PE has, as users say it.

use clap::ValueEnum;

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
}
