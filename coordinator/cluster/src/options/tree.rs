//! The options that choose a command's tree.

use std::fmt;
use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use flitcast_plan::network::NetworkSpec;
use serde::{Deserialize, Serialize};

use crate::options::host_list;
use crate::options::names::{given_options, typed};
use crate::options::pes::MAX_LOCAL_PES;
use crate::options::values::joined;

/// Maximum value of `-n`: the largest complete network that `flitcast_plan::network` builds has 5,793 nodes.
const MAX_WORKERS: u32 = 5792;

/// Arguments of every command that works on a tree.
#[derive(Clone, Debug, Default, Args)]
#[command(group = ArgGroup::new("host_list").multiple(true))]
pub struct TreeArgs {
    /// Number of PEs beside P0, on this machine: short for --network complete:N+1, whose tree is chosen
    /// by its predicted time where a command can choose.
    #[arg(short = 'n', long, value_name = "N", value_parser = parse_workers)]
    pub workers: Option<u32>,
    /// The tree, like kary:2:8: path:N, star:N, kary:K:N, binomial:N, random:N:SEED, parents:p1,p2,.. (of P1..Pn) or
    /// file:PATH (TOML). N counts every PE, P0 included.
    #[arg(long, value_name = "TREE")]
    pub tree: Option<String>,
    /// The network that the tree spans, by name.
    #[arg(long, value_name = "NETWORK", help = network_help())]
    pub network: Option<String>,
    /// A cluster file (TOML), instead of --tree: the hosts, and the tree or the network
    /// that joins them. Or `srun`, inside a job of Slurm, where it is the default: the tasks of a step that
    /// this command starts, one for each of SLURM_NTASKS, on a star or on the --tree that is given. Or
    /// `slurm`: such tasks that join with `srun flitcast node --join slurm`; slurm:PORT at both
    /// ends chooses the port.
    #[arg(long, value_name = "FILE")]
    pub cluster: Option<PathBuf>,
    /// Hosts that ssh reaches, like node[01-64],login: a PE on each, beside P0 on this machine. @GROUP
    /// stands for the hosts of a group of ClusterShell.
    #[arg(short = 'w', long, value_name = "HOSTS", group = "host_list")]
    pub hosts: Option<String>,
    /// The hosts of a group of ClusterShell, as `--hosts @GROUP`; beside those of --hosts.
    #[arg(short = 'g', long, value_name = "GROUP", group = "host_list")]
    pub group: Option<String>,
    /// Hosts of --hosts to leave out.
    #[arg(short = 'x', long, value_name = "HOSTS", requires = "host_list")]
    pub exclude_hosts: Option<String>,
    /// The network's node that becomes P0; of a cluster file's network, a PE's name or its number in
    /// the file [default: 0].
    #[arg(long, value_name = "R")]
    pub root: Option<String>,
    /// How the tree spans the network [default: broadcast where single-port PEs
    /// gather, unless --hosts leaves the algorithm open; else bfs].
    #[arg(long, value_enum)]
    pub spanning: Option<SpanningArg>,
    /// The reason why the input does not give the number of PEs, if no option does.
    #[arg(skip)]
    pub uncounted: Option<String>,
}

/// Parses `-n N`.
fn parse_workers(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 PE is needed beside P0".to_owned()),
        Ok(workers) if workers > MAX_WORKERS => Err(format!(
            "N is at most {} in a run, and {MAX_WORKERS} in a plan",
            MAX_LOCAL_PES - 1
        )),
        Ok(workers) => Ok(workers),
        Err(_) => Err("it is not a number of PEs".to_owned()),
    }
}

fn network_help() -> String {
    format!(
        "A network like mesh:4x4, instead of --tree: one of {} (an edge `A B` on each line)",
        joined(NetworkSpec::forms(), "or")
    )
}

/// Arguments of the commands about one cluster file.
#[derive(Clone, Debug, Args)]
pub struct ClusterArgs {
    /// The cluster file (TOML).
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// With [network] in the file: the PE that becomes P0, by its name or its number in the file
    /// [default: 0].
    #[arg(long, value_name = "R")]
    pub root: Option<String>,
    /// With [network] in the file: how the tree spans it [default: bfs].
    #[arg(long, value_enum)]
    pub spanning: Option<SpanningArg>,
}

impl TreeArgs {
    /// Leaves the tree of a network open, unless an option is about it.
    pub fn leave_open(&mut self) {
        let has_network = self.network().is_some() || self.cluster_file().is_some();
        if self.tree.is_none() && has_network && self.spanning.is_none() {
            self.tree = Some("auto".to_owned());
        }
    }

    /// Returns the cluster file of `--cluster`, or the list of `--hosts` and `--group` in its place.
    pub fn cluster_file(&self) -> Option<PathBuf> {
        let group = self.group.as_deref();
        let list = host_list::joined(group, self.hosts.as_deref(), self.exclude_hosts.as_deref());
        let list = self.has_hosts().then(|| format!("hosts:{list}").into());
        self.cluster.clone().or(list)
    }

    pub fn has_hosts(&self) -> bool {
        self.hosts.is_some() || self.group.is_some()
    }

    /// Returns the network of `--network`, or the complete network of `-n`.
    pub fn network(&self) -> Option<String> {
        let complete = |workers: u32| format!("complete:{}", u64::from(workers) + 1);
        self.network.clone().or(self.workers.map(complete))
    }

    /// Returns the given options that each define the PEs.
    pub fn pe_options(&self) -> Vec<&'static str> {
        let options = [
            ("-n", self.workers.is_some()),
            ("--tree", self.tree.is_some()),
            ("--network", self.network.is_some()),
            ("--cluster", self.cluster.is_some()),
            ("--hosts", self.has_hosts()),
        ];
        given_options(options).collect()
    }

    /// Returns the given options that do not apply to a network without a tree.
    pub fn given_for_trees(&self) -> impl Iterator<Item = &'static str> {
        let options = [
            ("--tree", self.tree.is_some()),
            ("--cluster", self.cluster.is_some()),
            ("--hosts", self.has_hosts()),
            ("--root", self.root.is_some()),
            ("--spanning", self.spanning.is_some()),
        ];
        given_options(options)
    }

    /// Returns whether the tree is to be chosen.
    pub fn is_auto(&self) -> bool {
        self.tree.as_deref() == Some("auto")
    }
}

impl From<ClusterArgs> for TreeArgs {
    fn from(args: ClusterArgs) -> TreeArgs {
        TreeArgs {
            cluster: Some(args.file),
            root: args.root,
            spanning: args.spanning,
            ..TreeArgs::default()
        }
    }
}

/// How a tree spans a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpanningArg {
    /// Breadth first: every PE as near to P0 as the network allows.
    Bfs,
    /// Near a minimum broadcast tree: the token soon reaches all PEs.
    Broadcast,
}

impl fmt::Display for SpanningArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&typed(self))
    }
}
