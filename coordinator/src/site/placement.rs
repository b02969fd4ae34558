//! Where the processes of a cluster run, how each is started there, and at which
//! address it is reached. Starting them is `launch/cluster`'s business.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use flitcast_proto::{PeId, Tree};

use crate::site::guard::Guard;
use crate::site::ssh::Ssh;
use crate::site::starter::Starter;

/// Where the processes of a cluster run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Where the coordinator listens for them.
    pub coordinator: IpAddr,
    /// Who starts them.
    pub launch: Launch,
    /// If `flitcast up` keeps them, and so they join.
    pub kept: Option<KeptPlaces>,
    /// By PE index.
    pub places: Vec<Place>,
}

/// Who starts the processes of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launch {
    /// The coordinator.
    Local,
    /// The coordinator, on hosts that it reaches by ssh.
    Ssh(Ssh),
    /// Somebody else: they join.
    Join {
        /// Where the coordinator listens for them.
        port: u16,
        /// How long it waits until all are there.
        wait: Duration,
        /// What has them started for each cluster, and ended with it; else they are there.
        starter: Option<Starter>,
    },
}

/// What is known of PEs that `flitcast up` keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptPlaces {
    /// The folder with what is known of them.
    pub folder: PathBuf,
    /// How they are guarded.
    pub guard: Guard,
    /// Whether their files lie on hosts of their own.
    pub elsewhere: bool,
}

/// Where one PE runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What people call it; `None` in a cluster that was not named host by host.
    pub name: Option<String>,
    /// What is put before the command that plays the PE.
    pub run: Vec<String>,
    /// What ssh is given to reach its host, if not its name.
    pub ssh: Option<String>,
    /// Where others reach it that have no link of their own with it. Unspecified: at the address
    /// that it joins from.
    pub address: IpAddr,
    /// Its addresses on all rails, if it has several network cards; that is the first of them.
    pub rails: Vec<IpAddr>,
    /// Where those reach it that have a link of their own with it.
    pub reached_by: BTreeMap<PeId, IpAddr>,
    /// What it listens on, for its children.
    pub listen: IpAddr,
}

impl Place {
    /// What ssh is given to reach its host.
    pub fn destination(&self) -> String {
        let said = self.ssh.as_ref().or(self.name.as_ref());
        said.cloned().unwrap_or_else(|| self.address.to_string())
    }
}

impl Placement {
    /// All on this machine, where only this machine reaches them.
    pub fn local(pes: usize) -> Placement {
        let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
        let place = Place {
            name: None,
            run: Vec::new(),
            ssh: None,
            address: loopback,
            rails: Vec::new(),
            reached_by: BTreeMap::new(),
            listen: loopback,
        };
        Placement {
            coordinator: loopback,
            launch: Launch::Local,
            kept: None,
            places: vec![place; pes],
        }
    }

    /// All where they join from, which is not known beforehand.
    pub fn joining(coordinator: IpAddr, launch: Launch, pes: usize) -> Placement {
        // Each listens to all that its host has: which of it is theirs to use, they know less
        // than who hears them call.
        let anywhere = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        let place = Place {
            name: None,
            run: Vec::new(),
            ssh: None,
            address: anywhere,
            rails: Vec::new(),
            reached_by: BTreeMap::new(),
            listen: anywhere,
        };
        Placement {
            coordinator,
            launch,
            kept: None,
            places: vec![place; pes],
        }
    }

    /// Where `from` reaches `pe`: over the link that they have for themselves, or else on a rail.
    pub fn address_for(&self, pe: PeId, from: PeId, rail: usize) -> IpAddr {
        let place = &self.places[pe.index()];
        let own = place.reached_by.get(&from).or(place.rails.get(rail));
        own.copied().unwrap_or(place.address)
    }

    /// How many network cards each host has, as far as somebody has said it.
    pub fn rails(&self) -> usize {
        let rails = self.places.iter().map(|place| place.rails.len().max(1));
        rails.min().unwrap_or(1)
    }

    /// Whether two PEs have a link that is nobody else's.
    pub fn has_link_for(&self, one: PeId, other: PeId) -> bool {
        let is_reached = |pe: PeId, by| self.places[pe.index()].reached_by.contains_key(by);
        is_reached(one, &other) || is_reached(other, &one)
    }

    /// Whether each edge of a tree is a link that is nobody else's.
    pub fn has_own_links(&self, tree: &Tree) -> bool {
        let mut edges = tree.below_root().map(|pe| (pe, tree.parent(pe)));
        edges.all(|(pe, parent)| parent.is_some_and(|parent| self.has_link_for(pe, parent)))
    }

    /// Whether others start the processes.
    pub fn is_joined(&self) -> bool {
        matches!(self.launch, Launch::Join { .. })
    }

    /// What has the PEs started that join.
    pub fn starter(&self) -> Option<&Starter> {
        match &self.launch {
            Launch::Join { starter, .. } => starter.as_ref(),
            Launch::Local | Launch::Ssh(_) => None,
        }
    }

    /// Whether the PEs' files lie on hosts of their own, where nobody here looks.
    pub fn is_elsewhere(&self) -> bool {
        match &self.kept {
            Some(kept) => kept.elsewhere,
            None => self.is_joined() || matches!(self.launch, Launch::Ssh(_)),
        }
    }

    /// Whether each PE has files of its own: it runs on a host that no other one runs on, by their
    /// addresses. Nodes of Slurm mostly share their file systems, and where PEs join from is not
    /// known before they do.
    pub fn is_apart(&self) -> bool {
        let is_slurm = matches!(self.starter(), Some(Starter::Slurm(_)));
        let addresses = self.places.iter().map(|place| place.address);
        let is_a_host = |address: &IpAddr| !address.is_loopback() && !address.is_unspecified();
        let hosts: BTreeSet<IpAddr> = addresses.filter(is_a_host).collect();
        let reached: BTreeSet<String> = self.places.iter().map(Place::destination).collect();
        let all = self.places.len();
        self.is_elsewhere() && !is_slurm && hosts.len() == all && reached.len() == all
    }

    /// Whether PEs have hosts of their own, as far as anybody here can tell.
    pub fn is_spread(&self) -> bool {
        let mut places = self.places.iter();
        self.is_elsewhere()
            || places.any(|place| !place.run.is_empty() || !place.address.is_loopback())
    }

    /// A PE that may not be a process of the same host as the others: links are shaped by
    /// a clock that all PEs read.
    pub fn away(&self) -> Option<&Place> {
        let mut places = self.places.iter();
        places.find(|place| !place.address.is_loopback())
    }

    /// The same places for PEs of other numbers: P_i stands where the PE `nodes[i]` did.
    pub fn renumbered(&self, nodes: &[u32]) -> Placement {
        let mut pe_on = BTreeMap::new();
        for (pe, node) in (0..).map(PeId).zip(nodes) {
            pe_on.insert(PeId(*node), pe);
        }
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
            coordinator: self.coordinator,
            launch: self.launch.clone(),
            kept: self.kept.clone(),
            places: places.collect(),
        }
    }

    /// Whether all connections stay on one host, where only its root can listen to them.
    pub fn is_on_loopback(&self) -> bool {
        let mut places = self.places.iter();
        self.coordinator.is_loopback()
            && places.all(|place| {
                let others = place.rails.iter().chain(place.reached_by.values());
                let mut all = others.chain([&place.address, &place.listen]);
                all.all(IpAddr::is_loopback)
            })
    }

    /// Whether each PE is reached at one address by all others, so that any tree can
    /// be laid over them.
    pub fn has_any_edge(&self) -> bool {
        let mut places = self.places.iter();
        places.all(|place| place.reached_by.is_empty())
    }
}

/// What a PE listens on that is reached at all of these addresses: the only one, or
/// everything that its host has.
pub fn listen_on(reached_at: &[IpAddr]) -> Option<IpAddr> {
    let first = *reached_at.first()?;
    Some(match reached_at.iter().all(|&address| address == first) {
        true => first,
        // The unspecified IPv6 address takes IPv4 connections as well.
        false if reached_at.iter().any(IpAddr::is_ipv6) => Ipv6Addr::UNSPECIFIED.into(),
        false => Ipv4Addr::UNSPECIFIED.into(),
    })
}
