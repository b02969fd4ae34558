//! Trees for `--cluster`: the tree of the file, or one that spans its network from the PE that
//! `--root` names. `cluster_file` reads the file.

use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use flitcast_proto::PeId;

use super::found::Topology;
use super::typed::{of_option, spanning};
use crate::options::link_spec::Links;
use crate::options::tree::{SpanningArg, TreeArgs};
use crate::site::cluster_file::{self, ClusterFile, Edges};
use crate::site::placement::Placement;
use crate::site::running_cluster;
use crate::text::faults::Faults;

impl TreeArgs {
    /// Returns the tree of a cluster file; for a network, one of each kind, or the kind of
    /// `--spanning`.
    pub(super) fn cluster(
        &self,
        path: &Path,
        kinds: &[SpanningArg],
    ) -> Result<Vec<Topology>, Faults> {
        let option = match cluster_file::host_list(path) {
            Some(_) => "--hosts",
            None => "--cluster",
        };
        let file = cluster_file::load(path).map_err(of_option(option))?;
        let Some(kept) = running_cluster::find(path)? else {
            return self.of_cluster(path, file, kinds);
        };
        let arguments = kept.arguments(self)?;
        let mut trees = arguments.of_cluster(path, file, kinds)?;
        for placement in trees.iter_mut().filter_map(|tree| tree.placement.as_mut()) {
            kept.adopt(placement, running_cluster::JOIN);
        }
        Ok(trees)
    }

    /// Returns the trees of a cluster file that has been read.
    pub fn of_cluster(
        &self,
        path: &Path,
        file: ClusterFile,
        kinds: &[SpanningArg],
    ) -> Result<Vec<Topology>, Faults> {
        let ClusterFile {
            name,
            edges,
            placement,
            links,
            settings,
        } = file;
        let name = name.unwrap_or_else(|| format!("cluster:{}", path.display()));
        let spanned = match edges {
            Edges::Network(spanned) => Arc::new(spanned),
            Edges::Tree(tree) => {
                self.without_network().check()?;
                return Ok(vec![Topology {
                    links,
                    placement: Some(placement),
                    settings,
                    ..Topology::new(name, tree)
                }]);
            }
        };
        let root = match &self.root {
            Some(root) => root_of(root, path, &placement)?,
            None => 0,
        };
        let kinds = self.kinds(kinds);
        let called = placement.places[root as usize].name.as_deref();
        let name = format!("{name} root {}", called.unwrap_or("P0"));
        let trees = spanning(&name, &spanned, root, kinds)
            .map_err(|fault| anyhow!("--network {}: {fault}", path.display()))?;
        let placed = trees.into_iter().map(|tree| {
            let nodes = tree.nodes.as_deref().unwrap_or_default();
            Topology {
                links: renumbered(&links, nodes),
                placement: Some(placement.renumbered(nodes)),
                settings: settings.clone(),
                ..tree
            }
        });
        Ok(placed.collect())
    }
}

/// Returns the PE with this name, or with this number in the file.
fn root_of(text: &str, path: &Path, placement: &Placement) -> anyhow::Result<u32> {
    let places = &placement.places;
    let named = places
        .iter()
        .position(|place| place.name.as_deref() == Some(text));
    let numbered = || text.parse().ok().filter(|&number| number < places.len());
    let root = named.or_else(numbered).map(|root| root as u32);
    root.ok_or_else(|| {
        anyhow!(
            "--root {text}: no [[pe]] in {} is called so; \
             write a name, or a number from 0 to {} in the order of the file",
            path.display(),
            places.len() - 1
        )
    })
}

/// Renumbers links: P_i is number `nodes[i]` in the file.
fn renumbered(links: &Links, nodes: &[u32]) -> Links {
    let all = (0..).map(PeId).zip(nodes);
    all.filter_map(|(pe, node)| Some((pe, *links.get(&PeId(*node))?)))
        .collect()
}
