//! The content of a cluster file, with the settings for the cluster as a whole. `cluster_file` reads them.

use std::path::PathBuf;

use flitcast_node::limits::Timeouts;
use flitcast_proto::Tree;

use crate::files::user_file::SourcePosition;
use crate::options::link_spec::{LinkSpec, Links};
use crate::site::placement::Placement;
use crate::site::reachability::Spanned;

#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The certificates, unless each launch makes its own.
    pub credentials: Option<Credentials>,
    /// `--timeouts`, with defaults for those that the file does not contain.
    pub timeouts: Timeouts,
    /// The links, if they are emulated.
    pub link: Option<LinkSpec>,
    /// Files that the start of the processes needs.
    pub files: Vec<NamedFile>,
}

/// The folder of certificates, with its position in the file.
#[derive(Clone, Debug)]
pub struct Credentials {
    pub folder: PathBuf,
    /// Position for messages about its content.
    pub spot: SourcePosition,
}

/// A file that `[launch]` names, with its position.
#[derive(Clone, Debug)]
pub struct NamedFile {
    /// Key in `[launch]`.
    pub key: &'static str,
    pub path: PathBuf,
    /// Position for messages about it.
    pub spot: SourcePosition,
}

#[derive(Clone, Debug)]
pub struct ClusterFile {
    pub name: Option<String>,
    pub edges: Edges,
    /// Places of the PEs, in the order of the file.
    pub placement: Placement,
    /// Link settings of certain PEs' edges to their parents; PEs are numbered in the order of the
    /// file.
    pub links: Links,
    /// Settings of the cluster as a whole.
    pub settings: Settings,
}

#[derive(Clone, Debug)]
pub enum Edges {
    /// A tree, given by parents.
    Tree(Tree),
    /// A connected network whose nodes are the PEs in the order of the file.
    Network(Spanned),
}
