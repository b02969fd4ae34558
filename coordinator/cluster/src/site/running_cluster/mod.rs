//! Running clusters that `flitcast up` started: a daemon starts their PEs, restarts them when they
//! end, and stops them. The PEs join each command that works on the cluster, like PEs that others
//! start. So only processes exist between two commands, and a command that dies leaves nothing
//! behind.
//!
//! The state of a running cluster is in a folder of its user, which is removed with the cluster:
//!
//! ```text
//! cluster.json   written once: the file, where commands listen, how connections are secured
//! pes.json       written by the daemon after each change: processes, starts, ends
//! rounds.jsonl   a line for each command that has ended
//! credentials/   certificates that were made for it, if any were
//! claim          locked by `flitcast up` until the cluster is up
//! lock           locked by the daemon while it lives
//! use            locked by the command that uses the cluster
//! log            lines of the PEs and the daemon
//! ```

pub mod claim;
pub mod rounds;
mod running;
mod state;

pub use rounds::{Round, note};
pub use running::{CALL, InUse, JOIN, RunningCluster, all, call, find, folder_of, take};
pub use state::{CREDENTIALS, ClusterRecord, KeptPe, Pes, digest, is_kept, lock};
