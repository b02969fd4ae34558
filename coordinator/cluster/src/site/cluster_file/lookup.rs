//! Addresses of hosts that a cluster file names, and of this machine where they reach it.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _, UdpSocket};

/// A source of addresses.
#[derive(Clone, Copy)]
pub struct Lookup {
    /// Returns the addresses of a host in the order of preference.
    addresses: fn(&str) -> Result<Vec<IpAddr>, String>,
    /// Returns the address of this machine on the way to another one.
    own: fn(IpAddr) -> Option<IpAddr>,
}

impl Lookup {
    /// The system's resolver and routes.
    pub const SYSTEM: Lookup = Lookup {
        addresses: resolved,
        own: own_address,
    };

    /// No addresses, for texts that come from anywhere.
    pub const NONE: Lookup = Lookup {
        addresses: |_| Err("names are not looked up here".to_owned()),
        own: |_| None,
    };

    /// Returns the address of a host: the first one of the coordinator's family, if that is known.
    ///
    /// # Errors
    ///
    /// Returns the reason if there is none.
    pub fn address(self, host: &str, coordinator: Option<IpAddr>) -> Result<IpAddr, String> {
        let all = (self.addresses)(host)?;
        let is_alike = |address: &&IpAddr| {
            coordinator.is_none_or(|coordinator| coordinator.is_ipv4() == address.is_ipv4())
        };
        let found = all.iter().find(is_alike).or(all.first());
        found.copied().ok_or_else(|| "it has no address".to_owned())
    }

    /// Returns the address at which another machine reaches this one.
    pub fn own(self, other: IpAddr) -> Option<IpAddr> {
        (self.own)(other)
    }
}

fn resolved(host: &str) -> Result<Vec<IpAddr>, String> {
    let found = (host, 0).to_socket_addrs();
    let all = found.map_err(|error| error.to_string())?;
    Ok(all.map(|address| address.ip()).collect())
}

fn own_address(other: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match other {
        IpAddr::V4(_) => [0; 4].into(),
        IpAddr::V6(_) => [0; 16].into(),
    };
    // This chooses the route; nothing is sent.
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
    socket.connect(SocketAddr::new(other, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Returns whether this could be the name of a host.
pub fn is_host_name(text: &str) -> bool {
    let is_of_name = |char: char| char.is_ascii_alphanumeric() || "-._".contains(char);
    text.starts_with(|char: char| char.is_ascii_alphanumeric())
        && text.len() < 254
        && text.chars().all(is_of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_the_coordinators_family_is_preferred() {
        let both = Lookup {
            addresses: |_| Ok(vec![[0; 16].into(), [10, 0, 0, 1].into()]),
            ..Lookup::NONE
        };
        let [v4, v6]: [IpAddr; 2] = [[10, 0, 0, 1].into(), [0; 16].into()];
        assert_eq!(both.address("a", None), Ok(v6));
        assert_eq!(both.address("a", Some(v4)), Ok(v4));
        assert_eq!(both.address("a", Some(v6)), Ok(v6));
        assert!(Lookup::NONE.address("a", None).is_err());
        let loopback = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(Lookup::SYSTEM.address("127.0.0.1", None), Ok(loopback));
        assert_eq!(Lookup::SYSTEM.own(loopback), Some(loopback));
    }
}
