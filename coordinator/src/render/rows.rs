//! The rows that a table of PEs shows, and its column of hosts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use flitcast_proto::PeId;

use flitcast_cluster::site::placement::{Place, Placement};
use flitcast_cluster::text::printable::printable;
use flitcast_cluster::text::screen::Detail;

/// Maximum number of PEs that a short table lists.
const SHORT_ROWS: usize = 16;

/// Returns all rows in their order, or without full detail, if there are many, the slowest and the largest
/// ones, and a line about the others. `figures` are the time and the size of a row.
pub fn notable<T, N: Ord, M: Ord>(
    all: &[T],
    detail: Detail,
    figures: impl Fn(&T) -> (N, M),
) -> (Vec<&T>, String) {
    // A line about one other PE would take as much room as its row.
    if detail == Detail::Full || all.len() <= SHORT_ROWS + 1 {
        return (all.iter().collect(), String::new());
    }
    let mut slowest: Vec<usize> = (0..all.len()).collect();
    slowest.sort_by_key(|at| Reverse(figures(&all[*at])));
    let mut largest = slowest.clone();
    largest.sort_by_key(|at| {
        let (time, size) = figures(&all[*at]);
        Reverse((size, time))
    });
    let mut chosen = BTreeSet::new();
    for at in slowest.into_iter().zip(largest).flat_map(<[_; 2]>::from) {
        if chosen.len() < SHORT_ROWS {
            chosen.insert(at);
        }
    }
    let others = all.len() - SHORT_ROWS;
    let others = format!("  and {others} others, neither slowest nor largest: -v lists all\n");
    (chosen.into_iter().map(|at| &all[at]).collect(), others)
}

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
