//! The algorithm of a gather, by its options and the tree.

use anyhow::{anyhow, bail};
use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::TreeRequirement;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::{PeId, Tree};

use super::checked::Request;
use crate::algorithms::candidates;
use crate::algorithms::candidates::NotApplicable;
use crate::algorithms::method::{Method, operation_by};
use crate::options::baseline::Baseline;
use crate::options::ports::Ports;
use crate::options::sync::TokenArg;
use crate::options::values::AUTO;
use crate::site::topology::Topology;

/// The gather that works on any tree.
pub const GATHER: Algorithm = Algorithm::CERTIFICATION_PIPELINED;

/// The gather that works on any tree if P0 receives from all its children at once.
pub const GATHER_BY_PORTS: Algorithm = Algorithm::CERTIFICATION_MULTI_PORT;

/// Returns the algorithm of a gather on a tree.
pub fn gather_operation(
    tree: &Tree,
    name: &str,
    algorithm: Option<&str>,
    token: Option<TokenArg>,
) -> anyhow::Result<Algorithm> {
    let mut offered = Algorithm::offered(GATHER.collective());
    let on_paths = offered.find(|one| one.fits() == TreeRequirement::Paths);
    let by_tree = match tree.is_path() && token.is_none() {
        true => on_paths.unwrap_or(GATHER),
        false => GATHER,
    };
    let algorithm = algorithm.unwrap_or(by_tree.name());
    let is_certification = algorithm == GATHER.name();
    let operation = match token {
        Some(TokenArg::Serial) if is_certification => Algorithm::CERTIFICATION_SERIAL,
        _ if is_certification => GATHER,
        Some(_) => bail!("--token belongs to --algorithm certification"),
        None => operation_by(GATHER.collective().name(), algorithm).unwrap_or(GATHER),
    };
    match Baseline::named(algorithm) {
        // The baseline checks itself whether it supports the tree.
        Some(_) => Ok(operation),
        None => fitting(operation, tree, name),
    }
}

/// Returns the alternatives to the default gather for the choice after the links are measured: `window`,
/// `linear` and `orders`, if all PEs are children of P0 over a network without a profile.
pub fn other_gathers(request: &Request) -> Vec<Method> {
    let (site, tree) = (&request.site, &request.site.tree);
    let is_star = tree.root() == PeId::ROOT && tree.pes().all(|pe| tree.depth(pe) <= 1);
    // With a link for each child, or with several cards, P0 receives several messages at once.
    let has_ports = request.way.operation.has_all_ports() || site.placement.rails() > 1;
    if !request.is_measured_later() || !is_star || has_ports {
        return Vec::new();
    }
    let baselines = candidates::baselines(GATHER.collective().name());
    let others = baselines.filter(|one| one.baseline.is_some_and(|it| !it.stores()));
    let mut others: Vec<Method> = others.map(|one| one.way(request.way.flit_bytes)).collect();
    // If both are equal, the first is chosen: `linear` is predicted with too few waits.
    others.reverse();
    others.push(Method {
        pacing: Some(Pacing::Turns),
        flit_bytes: request.way.flit_bytes,
        ..Method::of(Algorithm::GATHER_BY_ORDERS)
    });
    others
}

/// Returns the algorithm of a gather, with a port of P0 for each child if these are requested or if
/// each child has a separate link.
pub fn gather_by_ports(
    (topology, has_own_links): (&Topology, bool),
    ports: Option<Ports>,
    algorithm: Option<&str>,
    token: Option<TokenArg>,
) -> anyhow::Result<Algorithm> {
    let is_any = |name: &str| name == AUTO || name == GATHER.name();
    let other = algorithm.filter(|name| !is_any(name));
    if ports != Some(Ports::Multi) {
        let one_port = gather_operation(&topology.tree, &topology.name, algorithm, token)?;
        let has_own_links = || has_own_links || topology.places().has_own_links(&topology.tree);
        let is_open = ports.is_none() && token.is_none() && other.is_none();
        return Ok(match is_open && one_port == GATHER && has_own_links() {
            true => GATHER_BY_PORTS,
            false => one_port,
        });
    }
    match (token, other) {
        (Some(_), _) => {
            bail!("--ports multi synchronises over all links at once: leave out --token")
        }
        (None, None) => Ok(GATHER_BY_PORTS),
        (None, Some(named)) => {
            let baseline = Baseline::named(named).map(Baseline::name);
            let one = operation_by(GATHER.collective().name(), named).unwrap_or(GATHER);
            Err(one_port(baseline.unwrap_or(one.name())))
        }
    }
}

/// Returns the operation if it supports the tree.
pub fn fitting(operation: Algorithm, tree: &Tree, name: &str) -> anyhow::Result<Algorithm> {
    let works = candidates::check_fits(operation, tree, name);
    works.map_err(unfit(operation.name()))?;
    Ok(operation)
}

/// Returns the error of an algorithm that does not support the tree.
pub fn unfit(algorithm: &str) -> impl Fn(NotApplicable) -> anyhow::Error {
    move |why| anyhow!("--algorithm {algorithm} is {why}: use {}", why.instead)
}

/// Returns the error of many ports for an algorithm that has one port in each direction.
pub fn one_port(algorithm: &str) -> anyhow::Error {
    anyhow!(
        "--ports multi: {algorithm} uses one port at a time; over all links at once go fdf, \
         certification, flood and tree, over a tree, and the algorithms of a --network of lines or rings"
    )
}
