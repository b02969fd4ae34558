//! What the links of a request are to be like: those that somebody says something of, and
//! all others as is typed.

use super::RequestError;
use crate::options::link_spec::{EdgeSpec, LinkSpec};
use crate::site::cluster_file::across_hosts;
use crate::site::placement::Placement;
use crate::site::topology::Topology;

/// What all links are to be like that nobody says anything of: as typed, or else as the
/// cluster file says.
pub fn link_over(
    topology: &Topology,
    typed: Option<LinkSpec>,
) -> Result<Option<LinkSpec>, RequestError> {
    let placement = topology.placement.as_ref();
    match (typed, placement.and_then(Placement::away)) {
        (Some(_), Some(place)) => Err(RequestError::LinkAcrossHosts(across_hosts(
            place.name.as_deref(),
            &place.address,
        ))),
        (typed, _) => Ok(typed.or(topology.settings.link)),
    }
}

/// What the links to their parents are to be like, by PE index.
pub fn links(topology: &Topology, everywhere: Option<LinkSpec>) -> Vec<Option<EdgeSpec>> {
    let everywhere = everywhere.map(EdgeSpec::alike);
    let links = topology.tree.pes().skip(1).map(|pe| {
        let named = topology.links.get(&pe).copied();
        named.or(everywhere)
    });
    std::iter::once(None).chain(links).collect()
}

/// The links in a few words: `links of 200mbit, 1ms`; `None` if none is shaped.
pub fn links_name(links: &[Option<EdgeSpec>]) -> Option<String> {
    let edges = &links[1..];
    let shaped: Vec<EdgeSpec> = edges.iter().flatten().copied().collect();
    let first = shaped.first()?;
    let alike = shaped.iter().all(|link| link == first);
    Some(match (alike, shaped.len() == edges.len()) {
        (true, true) => format!("links of {first}"),
        (true, false) => format!("{} of {} links shaped: {first}", shaped.len(), edges.len()),
        (false, true) => "links of several kinds".to_owned(),
        (false, false) => format!("{} of {} links shaped", shaped.len(), edges.len()),
    })
}
