//! The controller of rounds, without sockets, processes or a clock: it decides which messages the
//! coordinator sends to the PEs, and evaluates their answers and their ends. A driver passes in the
//! time and the events, and sends the messages: `rounds/conduct` does so on real connections, the
//! storm on simulated ones.
//!
//! | in | out |
//! | --- | --- |
//! | `assign`, `probe`, `measure_files`, `measure_host`: a request to one PE | `poll_update`: events, for display or as answers |
//! | `conduct`: all rounds | `poll_word`: messages to PEs |
//! | `handle_word`, `handle_lost`: messages and ends of PEs | `poll_timeout`: when to call `handle_timeout` |
//! | `fail`: an error of the driver | `gave_up`: the end of all rounds after an error, with the results |
//!
//! This module contains all rules about errors: which PEs are awaited and for how long (`awaited`),
//! when a round has stalled (`watch`), which error was first (`cause`), and how a round is given up
//! (`end`). The owner of the connections pings PEs and detects silent ones;
//! [`Conductor::wants_look`] is a parameter of its pings.

mod awaited;
mod beginning;
mod cause;
mod clock;
mod control;
mod end;
mod plan;
mod round;
mod setting;
mod state;
mod trouble;
mod update;
mod watch;

pub use plan::{Plan, has_part_in};
pub use setting::Setting;
pub use state::Conductor;
pub use trouble::{LEFT, Lost, Trouble, out_of_turn};
pub use update::{GaveUp, Update};
pub use watch::{Stall, Watch};

#[cfg(test)]
mod tests;
