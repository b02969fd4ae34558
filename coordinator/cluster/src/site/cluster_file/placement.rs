//! The places of the PEs of a cluster file.

use std::collections::BTreeMap;
use std::net::IpAddr;

use flitcast_proto::PeId;

use super::entry::PeEntry;
use super::launch::Launched;
use super::values::At;
use crate::files::toml_file::Reader;
use crate::site::placement::{Place, Placement, listen_on};
use crate::site::settings::Edges;

/// Returns the addresses of each PE on separate links, by the PE at the other end. Reports unknown
/// PEs, and PEs whose number of network cards differs from the first one's.
fn own_links(reader: &Reader<'_>, entries: &[PeEntry]) -> Vec<BTreeMap<PeId, IpAddr>> {
    let mut all = vec![BTreeMap::new(); entries.len()];
    let called = |name: &str| {
        let mut all = entries.iter();
        all.position(|entry| entry.called() == Some(name))
    };
    for (at, entry) in entries.iter().enumerate() {
        let name = entry.name();
        for (spot, by, address) in &entry.reached_by {
            match called(by) {
                Some(other) if other == at => {
                    reader.fault(*spot, format!("{name}: it is to be reached by itself"));
                }
                Some(other) => {
                    all[at].insert(PeId(other as u32), *address);
                }
                None => reader.fault(*spot, format!("{name}: no [[pe]] is called `{by}`")),
            }
        }
        let parent = At::value(&entry.parent).and_then(|parent| called(&parent));
        if let (Some(parent), Some(address)) = (parent, At::value(&entry.parent_address)) {
            all[parent].insert(PeId(at as u32), address);
        }
    }
    let cards = |entry: &PeEntry| {
        let addresses = entry.addresses.as_ref();
        addresses.map_or(Some(1), |at| Some(at.value.as_ref()?.len()))
    };
    let mut known = entries
        .iter()
        .filter_map(|entry| Some((entry, cards(entry)?)));
    let first = entries.first().and_then(cards);
    let other = known.find(|(_, cards)| first.is_some_and(|first| *cards != first));
    if let (Some((other, cards)), Some(first)) = (other, first) {
        let (name, of_first) = (other.name(), entries[0].name());
        reader.fault(
            other.spot,
            format!("{name} has another number of addresses ({cards}) than {of_first} ({first})"),
        );
    }
    all
}

/// Returns the places of all PEs, if no fault was reported.
pub fn placement(
    reader: &Reader<'_>,
    entries: &[PeEntry],
    edges: Option<&Edges>,
    launched: Option<&Launched>,
) -> Option<Placement> {
    let own_links = own_links(reader, entries);
    let edges = edges?;
    let launched = launched?;
    let place = |(entry, reached_by): (&PeEntry, BTreeMap<PeId, IpAddr>)| {
        let address = At::value(&entry.address)?;
        Some(Place {
            name: Some(entry.called()?.to_owned()),
            run: At::value(&entry.run).unwrap_or_default(),
            ssh: At::value(&entry.ssh),
            is_here: entry.here,
            address,
            rails: At::value(&entry.addresses).unwrap_or_default(),
            reached_by,
            listen: address,
        })
    };
    let places: Option<Vec<Place>> = entries.iter().zip(own_links).map(place).collect();
    let mut placement = Placement {
        coordinator: launched.coordinator,
        launch: launched.launch.clone(),
        kept: None,
        places: places?,
    };
    for (pe, place) in (0..).map(PeId).zip(&mut placement.places) {
        let by = |other: &PeId| place.reached_by.contains_key(other);
        let is_reached_there = match edges {
            Edges::Tree(tree) => tree.children(pe).iter().any(|child| !by(child)),
            Edges::Network(spanned) => {
                let mut neighbours = spanned.network.neighbours(pe.0).iter();
                neighbours.any(|other| !by(&PeId(*other)))
            }
        };
        let address = is_reached_there.then_some(&place.address);
        let others = place.rails.iter().chain(place.reached_by.values());
        let reached_at: Vec<IpAddr> = address.into_iter().chain(others).copied().collect();
        place.listen = listen_on(&reached_at).unwrap_or(place.address);
    }
    Some(placement)
}
