//! Errors in the choice of a tree.

use flitcast_plan::network::{NetworkError, SpanningError};
use flitcast_proto::tree::TreeErrors;
use thiserror::Error;

use crate::files::user_file::FileError;
use crate::site::slurm::SlurmError;

/// An invalid choice of a tree.
#[derive(Debug, Error)]
pub enum TopologyError {
    /// An error of a running cluster.
    #[error(transparent)]
    Kept(#[from] crate::site::running_cluster::RunningClusterError),
    /// An invalid value.
    #[error("{option} {value}: {why}")]
    Value {
        /// Option.
        option: &'static str,
        /// Value as typed.
        value: String,
        /// Reason.
        why: String,
    },
    /// No option defines a tree.
    #[error(
        "no tree is given; use --tree TREE (like kary:2:8), --network NETWORK (like mesh:4x4) or --cluster FILE"
    )]
    NoTree,
    /// `--tree auto` without a network.
    #[error(
        "--tree auto chooses among the trees over a network; add --network NETWORK (like complete:8) or --cluster FILE"
    )]
    NothingToChooseFrom,
    /// Several options define a tree.
    #[error("{}: use one of them", .0.join(" and "))]
    Several(Vec<&'static str>),
    /// An option for networks without a network.
    #[error(
        "{0} belongs to --network: a --tree has its root and its edges already, and so has a --cluster without [network]"
    )]
    WithoutNetwork(&'static str),
    /// The tree is invalid.
    #[error("--tree {spec}: {faults}")]
    Tree {
        /// Value as typed.
        spec: String,
        /// Faults of the tree.
        faults: TreeErrors,
    },
    /// The file of the tree, the network or the cluster is invalid.
    #[error("{option}: {error}")]
    File {
        /// Option that names the file.
        option: &'static str,
        /// Fault of the file.
        error: FileError,
    },
    /// The process is not part of a Slurm job.
    #[error("--cluster slurm: {0}")]
    Slurm(#[from] SlurmError),
    /// The network is invalid.
    #[error("--network {spec}: {fault}")]
    Network {
        /// Value as typed.
        spec: String,
        /// Fault of the network.
        fault: NetworkError,
    },
    /// The network has no spanning tree from this root.
    #[error("--network {spec}: {fault}")]
    Spanning {
        /// Value as typed.
        spec: String,
        /// Reason.
        fault: SpanningError,
    },
}

impl TopologyError {
    /// Returns a function that adds the option to a fault of a file.
    pub fn of_file(option: &'static str) -> impl Fn(FileError) -> TopologyError {
        move |error| TopologyError::File { option, error }
    }
}
