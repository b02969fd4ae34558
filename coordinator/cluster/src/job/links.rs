//! The shapes of a request's links: those in a tree or cluster file, and the command line's for all
//! others.

use anyhow::{anyhow, bail};
use flitcast_proto::PeId;

use crate::options::args::RoundArgs;
use crate::options::link_spec::{self, EdgeSpec, LinkSpec};
use crate::site::cluster_file::across_hosts;
use crate::site::placement::Placement;
use crate::site::topology::{Topology, of_option};
use crate::text::faults::Faults;
use crate::text::units::BitRate;

/// The lowest limit of a PE's rate. With a lower one, a PE that waits for its next bytes to be due would
/// seem to be dead.
const LEAST_LIMIT: BitRate = BitRate(64_000);

/// Returns the shape of all links that no file describes: as typed, or else the cluster file's.
pub fn link_over(topology: &Topology, typed: Option<LinkSpec>) -> anyhow::Result<Option<LinkSpec>> {
    let placement = topology.placement.as_ref();
    match (typed, placement.and_then(Placement::away)) {
        (Some(_), Some(place)) => {
            let fault = across_hosts(place.name.as_deref(), &place.address);
            bail!("--link: {fault}")
        }
        (typed, _) => Ok(typed.or(topology.settings.link)),
    }
}

/// Returns the highest rate of each PE, if one is requested.
///
/// # Errors
///
/// Returns an error for each reason: the text is not a rate, the rate is too low, links are emulated, or
/// several trees would share the rate.
pub fn rate_limit(
    args: &RoundArgs,
    link: Option<LinkSpec>,
    topology: Option<&Topology>,
) -> Result<Option<BitRate>, Faults> {
    let Some(rate) = args.transmission.bwlimit.as_deref() else {
        return Ok(None);
    };
    let mut faults = Faults::default();
    let limit = link_spec::rate(rate).map_err(of_option("--bwlimit"));
    let limit = faults.take(limit).flatten();
    if link.is_some() || topology.is_some_and(|topology| !topology.links.is_empty()) {
        faults.add(anyhow!(
            "--bwlimit: these links are emulated; limit them with --link rate=RATE, or in their file"
        ));
    }
    if args.cover {
        faults.add(anyhow!(
            "--bwlimit: the trees of a cover would share the limit, so that one tree is as quick; \
             take --cover out"
        ));
    }
    if let Some(limit) = limit.filter(|limit| limit.0 < LEAST_LIMIT.0) {
        faults.add(anyhow!("--bwlimit: {limit} is less than {LEAST_LIMIT}"));
    }
    faults.check()?;
    Ok(limit)
}

/// Returns the shape of each PE's link to its parent, by PE index.
pub fn links(topology: &Topology, everywhere: Option<LinkSpec>) -> Vec<Option<EdgeSpec>> {
    let everywhere = everywhere.map(EdgeSpec::alike);
    let root = topology.tree.root();
    let link = |pe: PeId| topology.links.get(&pe).copied().or(everywhere);
    let links = topology.tree.pes();
    links.map(|pe| link(pe).filter(|_| pe != root)).collect()
}

/// Describes the links, such as `links of 200mbit, 1ms`; `None` if none is shaped.
pub fn links_name(links: &[Option<EdgeSpec>]) -> Option<String> {
    // The root has none.
    let edges = links.len() - 1;
    let shaped: Vec<EdgeSpec> = links.iter().flatten().copied().collect();
    let first = shaped.first()?;
    let alike = shaped.iter().all(|link| link == first);
    Some(match (alike, shaped.len() == edges) {
        (true, true) => format!("links of {first}"),
        (true, false) => format!("{} of {edges} links shaped: {first}", shaped.len()),
        (false, true) => "links of several kinds".to_owned(),
        (false, false) => format!("{} of {edges} links shaped", shaped.len()),
    })
}
