//! The hosts and addresses of a cluster's processes and the way each is started, with the settings of ssh and
//! of other starters. `launch` starts them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use flitcast_proto::{PeId, Tree};

use crate::site::guard::kind::Guard;

/// The places of a cluster's processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Address where the coordinator listens for them.
    pub coordinator: IpAddr,
    pub launch: Launch,
    /// The running cluster of `flitcast up` whose PEs join, if it is one.
    pub kept: Option<KeptPlaces>,
    /// Places by PE index.
    pub places: Vec<Place>,
}

/// The starter of a cluster's processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launch {
    /// The coordinator, on this host.
    Local,
    /// The coordinator, by ssh on other hosts.
    Ssh(Ssh),
    /// Other programs: the processes join.
    Join {
        /// Port where the coordinator listens for them.
        port: u16,
        /// Time to wait until all have joined.
        wait: Duration,
        /// Program that starts them for each cluster and ends with it; `None` if they run already.
        starter: Option<Starter>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptPlaces {
    /// Folder with its state.
    pub folder: PathBuf,
    pub guard: Guard,
    /// The places as the cluster file has them, for processes that a command starts beside the kept ones.
    pub started: Box<Placement>,
}

/// The place of one PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the host; `None` if the cluster file does not name hosts.
    pub name: Option<String>,
    /// Words before the command that runs the PE.
    pub run: Vec<String>,
    /// Destination of ssh, if it is not the name.
    pub ssh: Option<String>,
    /// Whether the process runs on this machine, though ssh starts the others.
    pub is_here: bool,
    /// Address for PEs without a separate link to this one. Unspecified: the address that the PE
    /// joins from.
    pub address: IpAddr,
    /// Addresses on all rails, if the host has several network cards; the first is `address`.
    pub rails: Vec<IpAddr>,
    /// Addresses on separate links, by the PE at the other end.
    pub reached_by: BTreeMap<PeId, IpAddr>,
    /// Address on which the PE listens for its children.
    pub listen: IpAddr,
}

impl Place {
    pub fn destination(&self) -> String {
        let name = self.ssh.as_ref().or(self.name.as_ref());
        name.cloned().unwrap_or_else(|| self.address.to_string())
    }
}

impl Placement {
    /// Returns places on this machine, reachable from this machine only.
    pub fn local(pes: usize) -> Placement {
        let loopback = Ipv4Addr::LOCALHOST.into();
        Placement::alike(loopback, Launch::Local, loopback, pes)
    }

    /// Returns places of PEs that join, whose addresses are not known yet.
    pub fn joining(coordinator: IpAddr, launch: Launch, pes: usize) -> Placement {
        // Each PE listens on all addresses of its host, because the coordinator learns the right
        // one only from the connection.
        Placement::alike(coordinator, launch, Ipv4Addr::UNSPECIFIED.into(), pes)
    }

    /// Returns places without names, each reached at the same address.
    fn alike(coordinator: IpAddr, launch: Launch, address: IpAddr, pes: usize) -> Placement {
        let place = Place {
            name: None,
            run: Vec::new(),
            ssh: None,
            is_here: false,
            address,
            rails: Vec::new(),
            reached_by: BTreeMap::new(),
            listen: address,
        };
        Placement {
            coordinator,
            launch,
            kept: None,
            places: vec![place; pes],
        }
    }

    /// Returns the names of all PEs, by index; empty if they have none.
    pub fn names(&self) -> Vec<String> {
        let names = self.places.iter().map(|place| place.name.clone());
        names.collect::<Option<_>>().unwrap_or_default()
    }

    /// Returns a PE's number with its name, if it has one: `P1 beta`.
    pub fn called(&self, pe: PeId) -> String {
        let number = pe.to_string();
        match &self.places[pe.index()].name {
            Some(name) if !name.eq_ignore_ascii_case(&number) => format!("{number} {name}"),
            _ => number,
        }
    }

    /// Returns the address at which `from` reaches `pe`: on their separate link, or else on a rail.
    pub fn address_for(&self, pe: PeId, from: PeId, rail: usize) -> IpAddr {
        let place = &self.places[pe.index()];
        let own = place.reached_by.get(&from).or(place.rails.get(rail));
        own.copied().unwrap_or(place.address)
    }

    /// Returns the number of network cards that every host has.
    pub fn rails(&self) -> usize {
        let rails = self.places.iter().map(|place| place.rails.len().max(1));
        rails.min().unwrap_or(1)
    }

    /// Returns whether two PEs have a separate link.
    pub fn has_link_for(&self, one: PeId, other: PeId) -> bool {
        let is_reached = |pe: PeId, by| self.places[pe.index()].reached_by.contains_key(by);
        is_reached(one, &other) || is_reached(other, &one)
    }

    /// Returns whether each edge of a tree is a separate link.
    pub fn has_own_links(&self, tree: &Tree) -> bool {
        let mut edges = tree.below_root().map(|pe| (pe, tree.parent(pe)));
        edges.all(|(pe, parent)| parent.is_some_and(|parent| self.has_link_for(pe, parent)))
    }

    pub fn is_joined(&self) -> bool {
        matches!(self.launch, Launch::Join { .. })
    }

    /// Returns whether the PEs are tasks that a command starts in Slurm.
    pub fn is_slurm(&self) -> bool {
        matches!(self.starter(), Some(Starter::Slurm(_)))
    }

    pub fn starter(&self) -> Option<&Starter> {
        match &self.launch {
            Launch::Join { starter, .. } => starter.as_ref(),
            Launch::Local | Launch::Ssh(_) => None,
        }
    }

    /// Returns the places for a second process of a PE beside one that is busy; `None` if only others can
    /// start it.
    pub fn beside(&self) -> Option<&Placement> {
        let started = self.kept.as_ref().map_or(self, |kept| &kept.started);
        (!started.is_joined()).then_some(started)
    }

    /// Returns whether other programs start the PEs, which then read and write only what these lend them.
    pub fn is_confined(&self) -> bool {
        self.is_joined() && self.kept.is_none() && !self.is_slurm()
    }

    /// Returns whether the PEs' files are on other hosts, which the coordinator cannot read.
    pub fn is_elsewhere(&self) -> bool {
        match &self.kept {
            Some(kept) => kept.started.is_elsewhere(),
            None => self.is_joined() || matches!(self.launch, Launch::Ssh(_)),
        }
    }

    /// Returns whether each PE has separate files: judging by the addresses, it runs on a separate
    /// host. Nodes of Slurm mostly share their file systems, and the addresses of PEs that join are
    /// not known in advance.
    pub fn is_apart(&self) -> bool {
        let addresses = self.places.iter().map(|place| place.address);
        let is_a_host = |address: &IpAddr| !address.is_loopback() && !address.is_unspecified();
        let hosts: BTreeSet<IpAddr> = addresses.filter(is_a_host).collect();
        let reached: BTreeSet<String> = self.places.iter().map(Place::destination).collect();
        let all = self.places.len();
        self.is_elsewhere() && !self.is_slurm() && hosts.len() == all && reached.len() == all
    }

    /// Returns whether PEs may be on different hosts, as far as is known.
    pub fn is_spread(&self) -> bool {
        let mut places = self.places.iter();
        self.is_elsewhere()
            || places.any(|place| !place.run.is_empty() || !place.address.is_loopback())
    }

    /// Returns a PE that may be on another host. Links are shaped by a clock that all PEs read, so
    /// this prevents shaping.
    pub fn away(&self) -> Option<&Place> {
        let mut places = self.places.iter();
        places.find(|place| !place.address.is_loopback())
    }

    /// Renumbers the places: P_i gets the place of the PE `nodes[i]`.
    pub fn renumbered(&self, nodes: &[u32]) -> Placement {
        let pe_on = nodes.iter().copied().map(PeId).zip((0..).map(PeId));
        let pe_on: BTreeMap<PeId, PeId> = pe_on.collect();
        let places = nodes.iter().map(|&node| {
            let place = &self.places[node as usize];
            let by = place.reached_by.iter();
            let by = by.filter_map(|(node, address)| Some((*pe_on.get(node)?, *address)));
            Place {
                reached_by: by.collect(),
                ..place.clone()
            }
        });
        Placement {
            places: places.collect(),
            launch: self.launch.clone(),
            kept: self.kept.as_ref().map(|kept| KeptPlaces {
                started: Box::new(kept.started.renumbered(nodes)),
                ..kept.clone()
            }),
            ..*self
        }
    }

    /// Returns whether all connections stay on one host, where only its administrator can intercept
    /// them.
    pub fn is_on_loopback(&self) -> bool {
        let mut places = self.places.iter();
        self.coordinator.is_loopback()
            && places.all(|place| {
                let others = place.rails.iter().chain(place.reached_by.values());
                let mut all = others.chain([&place.address, &place.listen]);
                all.all(IpAddr::is_loopback)
            })
    }

    /// Returns whether all other PEs reach each PE at the same address, so that any tree can be
    /// built.
    pub fn has_any_edge(&self) -> bool {
        let mut places = self.places.iter();
        places.all(|place| place.reached_by.is_empty())
    }
}

/// Returns the listen address of a PE that is reached at these addresses: the only one, or the
/// unspecified address.
pub fn listen_on(reached_at: &[IpAddr]) -> Option<IpAddr> {
    let first = *reached_at.first()?;
    Some(match reached_at.iter().all(|&address| address == first) {
        true => first,
        // The unspecified IPv6 address accepts IPv4 connections as well.
        false if reached_at.iter().any(IpAddr::is_ipv6) => Ipv6Addr::UNSPECIFIED.into(),
        false => Ipv4Addr::UNSPECIFIED.into(),
    })
}

/// Default directory of the program on a host.
pub const DIRECTORY: &str = "~/.cache/flitcast";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ssh {
    /// User, unless the PE's destination or ssh's configuration defines it.
    pub user: Option<String>,
    /// Port, unless ssh's configuration defines it.
    pub port: Option<u16>,
    /// Configuration file for ssh instead of the user's.
    pub config: Option<PathBuf>,
    /// Directory of the program on a host: absolute, or relative to `~/`; by default [`DIRECTORY`].
    pub directory: Option<String>,
    /// Names of this process's environment variables that are passed to the PEs.
    pub environment: Vec<String>,
    /// Program to copy to the hosts; by default this program.
    pub binary: Option<PathBuf>,
}

/// Returns whether ssh takes the text for a destination: one word that is not an option.
pub fn is_destination(text: &str) -> bool {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || "'\"`$;&|<>()\\".contains(c);
    !text.is_empty() && !text.starts_with('-') && !text.contains("@-") && !text.contains(is_odd)
}

/// A starter of PEs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Starter {
    /// Slurm: the PEs are the tasks of one step.
    Slurm(SlurmStep),
    /// Compose: the PEs are services.
    Compose(Compose),
}

impl Starter {
    /// Name in cluster files.
    pub fn name(&self) -> &'static str {
        match self {
            Starter::Slurm(_) => "slurm",
            Starter::Compose(_) => "compose",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlurmStep {
    /// Options of srun, such as `--partition=short`.
    pub options: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compose {
    pub file: PathBuf,
    /// Options of compose before its subcommand, such as `--project-name=one`.
    pub options: Vec<String>,
}
