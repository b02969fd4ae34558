//! Access to hosts by `ssh`: running a command and copying this program there. The user's own `ssh`
//! connects, with the user's configuration. `cluster` decides what each host runs and observes it.
//!
//! All data for a host goes over standard input, first the script (`script.rs`). So no login shell
//! has to interpret it, no process list shows it, and an admission to the cluster, which is secret,
//! follows on the same stream.

mod binary;
mod call;
mod copy_plan;
mod hosts;
mod script;
mod serve;

pub use binary::own_hash;
pub use call::{SSH_FAILED, attach, lines, send_lines};
pub use hosts::{Begun, Hosts};
pub use script::RemoteCommand;
pub use serve::serve;
