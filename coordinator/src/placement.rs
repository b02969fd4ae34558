//! Where the processes of a cluster run, how each is started there, and at which
//! address it is reached. Starting them is `cluster.rs`'s business.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use flitcast_proto::PeId;

/// Where the processes of a cluster run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Where the coordinator listens for them.
    pub coordinator: IpAddr,
    /// By PE index.
    pub places: Vec<Place>,
}

/// Where one PE runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// What people call it; `None` in a cluster that was not named host by host.
    pub name: Option<String>,
    /// What is put before the command that plays the PE.
    pub run: Vec<String>,
    /// Where its children reach it, those with a `parent_address` apart.
    pub address: IpAddr,
    /// Where it reaches its parent on the edge between them, if not at the parent's
    /// `address`.
    pub parent_address: Option<IpAddr>,
    /// What it listens on, for its children.
    pub listen: IpAddr,
}

impl Placement {
    /// All on this machine, where only this machine reaches them.
    pub fn local(pes: usize) -> Placement {
        let loopback = IpAddr::from(Ipv4Addr::LOCALHOST);
        let place = Place {
            name: None,
            run: Vec::new(),
            address: loopback,
            parent_address: None,
            listen: loopback,
        };
        Placement {
            coordinator: loopback,
            places: vec![place; pes],
        }
    }

    /// Where `child` reaches its `parent`.
    pub fn parent_address(&self, child: PeId, parent: PeId) -> IpAddr {
        let of_the_edge = self.places[child.index()].parent_address;
        of_the_edge.unwrap_or(self.places[parent.index()].address)
    }

    /// Whether PEs have hosts of their own.
    pub fn is_spread(&self) -> bool {
        let mut places = self.places.iter();
        places.any(|place| !place.run.is_empty() || !place.address.is_loopback())
    }

    /// Whether each PE is reached at one address by all others, so that any tree can
    /// be laid over them.
    pub fn has_any_edge(&self) -> bool {
        let mut places = self.places.iter();
        places.all(|place| place.parent_address.is_none())
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
