//! The controller of rounds, without sockets, processes or a clock: it decides which messages the
//! coordinator sends to the PEs, and evaluates their answers and their ends. A driver passes in the
//! time and the events, and sends the messages: `rounds/execution` does so on real connections, the
//! storm on simulated ones.
//!
//! | in | out |
//! | --- | --- |
//! | `request`: a command to one PE that it answers | `poll_update`: events, for display or as answers |
//! | `run_rounds`: all rounds | `poll_command`: messages to PEs |
//! | `handle_reply`, `handle_lost`: messages and ends of PEs | `poll_timeout`: when to call `handle_timeout` |
//! | `fail`: an error of the driver | `gave_up`: the end of all rounds after an error, with the results |
//!
//! This module contains all rules about errors: which PEs are awaited and for how long (`awaited`),
//! when a round has stalled (`stall_detector`), which error was first, and how a round is given up
//! (`end`). The owner of the connections pings PEs and detects silent ones;
//! [`RoundController::wants_look`] is a parameter of its pings.

mod awaited;
mod beginning;
mod clock;
mod control;
mod end;
mod failure_cause;
mod round;
mod stall_detector;
mod state;

pub use failure_cause::{FailureCause, PeLoss, out_of_turn};
pub use stall_detector::{Stall, StallDetector};
pub use state::{ClusterInfo, ControllerEvent, GaveUp, Plan, RoundController, has_part_in};

#[cfg(test)]
mod tests;
