//! Hosts that are reached by `ssh`: how a command is run there, and how this program gets
//! there. The user's own `ssh` does the connecting, with the user's own configuration; who is
//! to run what, and what becomes of it, is `cluster`'s business.
//!
//! What a host is told goes over standard input, the program's script first (`script.rs`):
//! so no login shell has to understand it, no list of processes shows it, and an admission
//! to the cluster, which is a secret, goes the same way behind it.

mod binary;
mod call;
mod copy_plan;
mod fault;
mod hosts;
mod script;
mod serve;

pub use binary::own_hash;
pub use call::lines;
pub use copy_plan::CopyPlan;
pub use fault::{SSH_FAILED, SshFault};
pub use hosts::{Begun, Hosts, RemoteCommand};
pub use serve::serve;
