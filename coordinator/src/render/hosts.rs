//! The host column of tables of PEs.

use std::collections::BTreeMap;

use flitcast_cluster::site::placement::{Place, Placement};
use flitcast_cluster::text::printable::printable;
use flitcast_proto::PeId;

/// Returns the host of each PE, by index, if there are several and they are not the names of the PEs.
/// `joined` has the hosts that PEs have joined from, for those with neither a name nor an address.
pub fn hosts(placement: &Placement, joined: &BTreeMap<PeId, String>) -> Option<Vec<String>> {
    let host = |(pe, place): (u32, &Place)| match &place.ssh {
        Some(ssh) => Some(ssh.clone()),
        None if place.address.is_unspecified() => {
            let host = joined.get(&PeId(pe)).filter(|_| place.name.is_none());
            host.map(|host| printable(host).to_string())
        }
        None => (!place.address.is_loopback()).then(|| place.address.to_string()),
    };
    let places = (0..).zip(&placement.places);
    let hosts = places.map(|place| host(place).unwrap_or("-".to_owned()));
    let hosts: Vec<String> = hosts.collect();
    let are_several = hosts.iter().any(|host| *host != hosts[0]);
    (are_several && hosts != placement.names()).then_some(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_shown_if_names_do_not_distinguish_them() {
        let of = |addresses: &[&str], name: Option<&str>| {
            let mut placement = Placement::local(addresses.len());
            for (place, address) in placement.places.iter_mut().zip(addresses) {
                place.address = address.parse().expect("an address");
                place.name = name.map(|name| format!("{name}{address}"));
            }
            let joined = [(0, "node1"), (1, "node2")];
            let joined = joined.map(|(pe, host)| (PeId(pe), host.to_owned()));
            hosts(&placement, &joined.into())
        };
        let several = ["10.0.0.1", "10.0.0.2", "10.0.0.1"];
        for (addresses, name, expected) in [
            (&several[..], None, Some("10.0.0.1 10.0.0.2 10.0.0.1")),
            (&several, Some("node-"), Some("10.0.0.1 10.0.0.2 10.0.0.1")),
            (&several, Some(""), None),
            (&["127.0.0.1", "127.0.0.2"], None, None),
            (&["10.0.0.1", "10.0.0.1"], None, None),
            (&["127.0.0.1", "10.0.0.2"], None, Some("- 10.0.0.2")),
            (&["0.0.0.0", "0.0.0.0"], None, Some("node1 node2")),
            (&["0.0.0.0", "0.0.0.0"], Some("node-"), None),
            (&["0.0.0.0"; 3], None, Some("node1 node2 -")),
        ] {
            let shown = of(addresses, name).map(|hosts| hosts.join(" "));
            assert_eq!(shown.as_deref(), expected, "{addresses:?}");
        }
    }
}
