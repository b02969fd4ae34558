//! The content of a cluster file.

use flitcast_proto::Tree;

use crate::options::link_spec::Links;
use crate::site::placement::Placement;
use crate::site::reachability::Spanned;
use crate::site::settings::Settings;

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
