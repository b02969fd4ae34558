//! The tree that a command works on: `--tree`, `--cluster`, or `--network` with `--root` and
//! `--spanning`. This module converts the typed arguments to a [`Topology`] or to all their faults. For
//! `--cluster`, the tree is that of the file, or one that spans its network from the PE that `--root` names.
//! It does not check how many processes a machine can start. `flitcast_plan::network` computes
//! spanning trees.

mod found;
mod typed;

use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use flitcast_proto::PeId;
use flitcast_proto::tree::TreeSpec;

use crate::options::link_spec::Links;
use crate::options::tree::{SpanningArg, TreeArgs};
use crate::site::cluster_file::{self, ClusterFile, Edges};
use crate::site::placement::Placement;
use crate::site::running_cluster;
use crate::site::slurm::Slurm;
use crate::text::faults::Faults;
use typed::{of_job, plainly_named, span, spanning, tree_of, value};

pub use found::{Topology, tree_of_shape};
pub use typed::{build_network, of_option};

impl TreeArgs {
    /// Returns the tree; `default` is the spanning tree of a network if `--spanning` is missing.
    pub fn topology(&self, default: SpanningArg) -> Result<Topology, Faults> {
        let mut one = self.topologies(&[default])?;
        Ok(one.remove(0))
    }

    /// Returns the trees that `--tree auto` chooses from; for any other `--tree`, that one.
    pub fn offered(&self, default: SpanningArg) -> Result<Vec<Topology>, Faults> {
        if !self.is_auto() {
            return Ok(vec![self.topology(default)?]);
        }
        if self.network().is_none() && self.cluster_file().is_none() {
            return Err(anyhow!(
                "--tree auto chooses among the trees over a network; \
                 add --network NETWORK (like complete:8) or --cluster FILE"
            )
            .into());
        }
        let given = TreeArgs {
            tree: None,
            ..self.clone()
        };
        let mut trees = given.topologies(&[SpanningArg::Bfs, SpanningArg::Broadcast])?;
        let first = trees[0].clone();
        if first.reaches_all() {
            let n = first.tree.len();
            for shape in ["star:", "path:", "kary:2:", "kary:4:", "binomial:"] {
                let name = format!("{shape}{n}");
                let tree = name.parse::<TreeSpec>().ok().and_then(|s| s.build().ok());
                let of = |tree| Topology {
                    name,
                    tree,
                    ..first.clone()
                };
                trees.extend(tree.map(of));
            }
        }
        let mut distinct: Vec<Topology> = Vec::new();
        for tree in trees {
            if distinct.iter().all(|other| other.tree != tree.tree) {
                distinct.push(tree);
            }
        }
        Ok(distinct)
    }

    /// Returns the tree of `--tree`, or of a cluster file without a network. For a network, returns one
    /// tree if `--spanning` is given, else one of each kind in `kinds`.
    pub fn topologies(&self, kinds: &[SpanningArg]) -> Result<Vec<Topology>, Faults> {
        let mut faults = Faults::default();
        let (network, cluster) = (self.network(), self.cluster_file());
        let slurm = cluster.as_deref().and_then(Slurm::named);
        let made = match (&self.tree, &network, &cluster, slurm) {
            _ if self.workers.is_some() && self.network.is_some()
                || self.has_hosts() && self.cluster.is_some() =>
            {
                Err(self.several().into())
            }
            (tree, None, Some(_), Some(slurm)) => {
                of_job(slurm, tree.as_deref()).map_err(Faults::from)
            }
            (None, None, None, _) => Err(match &self.uncounted {
                Some(why) => anyhow!("{why}"),
                None => anyhow!(
                    "no PEs are given; use -n N, --hosts HOSTS or --cluster FILE (or --tree or --network)"
                ),
            }
            .into()),
            (Some(tree), None, None, _) => tree_of(tree).map_err(Faults::from),
            (None, None, Some(file), _) => self.cluster(file, kinds),
            (None, Some(network), None, _) => {
                let kinds = self.kinds(kinds);
                let root = self.root.as_deref();
                let root = root.map_or(Ok(0), |root| value("--root", root));
                match (value("--network", network), root) {
                    (Ok(spec), Ok(root)) => {
                        let spanned = span(&spec, root, kinds).map_err(Faults::from);
                        let is_chosen = self.workers.is_some();
                        spanned.map(|all| if is_chosen { plainly_named(all) } else { all })
                    }
                    (spec, root) => Err(Faults::all(spec.err().into_iter().chain(root.err()))),
                }
            }
            _ => Err(self.several().into()),
        };
        let made = faults.take(made);
        if network.is_none() && cluster.is_none() {
            faults.0.extend(self.without_network());
        }
        match made {
            Some(made) if faults.0.is_empty() => Ok(made),
            _ => Err(faults),
        }
    }

    /// Returns the error that several options define the PEs.
    fn several(&self) -> anyhow::Error {
        anyhow!("{}: use one of them", self.pe_options().join(" and "))
    }

    /// Returns the typed kind of spanning trees, or else `kinds`.
    fn kinds<'a>(&'a self, kinds: &'a [SpanningArg]) -> &'a [SpanningArg] {
        self.spanning.as_ref().map_or(kinds, std::slice::from_ref)
    }

    /// Returns faults for options about networks that were given without a network.
    fn without_network(&self) -> Faults {
        let root = self.root.as_ref().map(|_| "--root");
        let spanning = self.spanning.map(|_| "--spanning");
        let has_all =
            "a --tree has its root and its edges already, and so has a --cluster without [network]";
        let fault = |option| anyhow!("{option} belongs to --network: {has_all}");
        Faults::all(root.into_iter().chain(spanning).map(fault))
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn args(tree: Option<&str>, network: Option<&str>) -> TreeArgs {
        TreeArgs {
            tree: tree.map(str::to_owned),
            network: network.map(str::to_owned),
            ..TreeArgs::default()
        }
    }

    fn messages(args: &TreeArgs) -> Vec<String> {
        let faults = args.topology(SpanningArg::Bfs).unwrap_err();
        faults.0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_show_how_the_network_is_spanned() {
        let mut args = args(None, Some("mesh:4x4"));
        let name = |args: &TreeArgs| args.topology(SpanningArg::Broadcast).unwrap().name;
        assert_eq!(name(&args), "mesh:4x4 root 0 broadcast");
        args.root = Some("5".to_owned());
        args.spanning = Some(SpanningArg::Bfs);
        assert_eq!(name(&args), "mesh:4x4 root 5 bfs");
        let both = [SpanningArg::Bfs, SpanningArg::Broadcast];
        assert_eq!(args.topologies(&both).unwrap().len(), 1);
        args.spanning = None;
        assert_eq!(args.topologies(&both).unwrap().len(), 2);
    }

    #[test]
    fn trees_of_a_number_of_workers_are_named_and_all_faults_are_in_order() {
        let mut workers = args(None, None);
        workers.workers = Some(8);
        let name = workers.topology(SpanningArg::Bfs).unwrap().name;
        assert_eq!(name, "star:9");
        workers.spanning = Some(SpanningArg::Broadcast);
        workers.workers = Some(7);
        let name = workers.topology(SpanningArg::Bfs).unwrap().name;
        assert_eq!(name, "a broadcast tree");
        let mut only_tree = args(Some("parents:7"), None);
        only_tree.root = Some("1".to_owned());
        only_tree.spanning = Some(SpanningArg::Bfs);
        let faults = messages(&only_tree);
        assert!(faults[0].starts_with("--tree parents:7: "), "{faults:?}");
        assert!(faults[1].starts_with("--root belongs to --network"));
        assert!(faults[2].starts_with("--spanning belongs to --network"));
    }
}
