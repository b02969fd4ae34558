//! The choice by prediction: of all algorithms on all offered trees, the one with the shortest
//! predicted time (`--algorithm auto`, `--tree auto`).
//!
//! Nothing is run here. The values of links and hosts come from the profile, or from the requested
//! links.

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use flitcast_proto::cost::Edge;
use flitcast_proto::ops::Fits;
use flitcast_proto::round::RoundFault;
use flitcast_proto::schedule::pace::Pacing;
use serde::Serialize;

use super::{Request, Site};
use crate::job::host_costs;
use crate::job::model::{foresee, model_by, model_of};
use crate::options::link_spec::{EdgeSpec, LinkSpec};
use crate::site::topology::Topology;
use crate::text::figures::as_micros;
use crate::text::units::{Bytes, Nanos};
use crate::ways::candidates::Candidate;

/// Flit payloads that are tried if none is requested: a short one fills the pipe of a deep tree sooner,
/// a long one costs less software.
pub const FLITS: [u32; 3] = [64 << 10, 16 << 10, 256 << 10];

/// Ratio of predicted times within which predictions count as equal. The shallowest tree and the
/// longest flits are then chosen, because they cost least where predictions are incomplete.
const ALIKE: f64 = 1.02;

/// Returns the time that a choice may take until another prediction: for the first flit size, in which
/// the algorithms differ most, as long as a user waits without a question; for the others a part of
/// the predicted time, or what no user notices.
fn budget(pass: usize, best_ns: u64) -> Duration {
    match pass {
        0 => Duration::from_millis(250),
        _ => Duration::from_nanos(best_ns / 20).max(Duration::from_millis(20)),
    }
}

/// The chosen algorithm, and the number of alternatives.
#[derive(Clone, Debug, Serialize)]
pub struct Choice {
    /// The number of predicted alternatives.
    pub ways: usize,
    /// The time that the choice took.
    #[serde(rename = "took_us", serialize_with = "as_micros")]
    pub took_ns: u64,
    /// The choice.
    pub chosen: Forecast,
    /// The next best on another tree or by another algorithm, if there is one.
    pub runner_up: Option<Forecast>,
}

/// The predicted duration of a round by one algorithm on one tree.
#[derive(Clone, Debug, Serialize)]
pub struct Forecast {
    /// The algorithm's name.
    pub algorithm: &'static str,
    /// The tree's name.
    pub tree: String,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// Predicted duration in nanoseconds.
    #[serde(rename = "predicted_us", serialize_with = "as_micros")]
    pub predicted_ns: u64,
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flit = Bytes(self.flit_bytes.into());
        write!(f, "{} on {}, flits of {flit}", self.algorithm, self.tree)
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Choice {
            ways,
            took_ns,
            chosen,
            runner_up,
        } = self;
        let [time, took] = [chosen.predicted_ns, *took_ns].map(Nanos);
        write!(
            f,
            "{chosen}: {time}, of {ways} predictions in {took} none is less by 2 %"
        )?;
        if let Some(next) = runner_up {
            let more = next.predicted_ns as f64 / chosen.predicted_ns.max(1) as f64 - 1.0;
            let time = Nanos(next.predicted_ns);
            write!(f, "; next {next}: {time} ({:+.1} %)", more * 100.0)?;
        }
        Ok(())
    }
}

/// The alternatives of a choice.
#[derive(Debug)]
pub struct Offer<'a> {
    /// Trees.
    pub topologies: Vec<Topology>,
    /// Algorithms; those that do not support a tree are skipped.
    pub candidates: Vec<Candidate>,
    /// Whether the user requested a pacing: then no other is offered, and it need not be a safe one.
    pub any_pacing: bool,
    /// Payload bytes of a full flit.
    pub flits: Vec<u32>,
    /// The requested shape of all links.
    pub link: Option<LinkSpec>,
    /// Bytes of M_i.
    pub bytes: &'a [u64],
}

/// Returns the request with the algorithm, tree and flit size that have the shortest predicted time.
///
/// # Errors
///
/// Returns the error of a state machine, which is a bug in the schedule.
pub fn choose(request: Request, offer: Offer<'_>) -> Result<Request, RoundFault> {
    let began = Instant::now();
    let mut open: Vec<(usize, &Candidate, Request)> = Vec::new();
    for (place, topology) in offer.topologies.iter().enumerate() {
        let request = on(&request, topology, offer.link);
        let works = offer.candidates.iter().filter(|candidate| {
            // Data between any two PEs does not go over the tree.
            let uses_tree = !matches!(candidate.operation.fits(), Fits::Complete | Fits::Cubes);
            let is_safe = |pacing| offer.any_pacing || is_safe(&request, pacing);
            (uses_tree || place == 0)
                && candidate.check(topology, topology).is_ok()
                && candidate.pacing.is_none_or(is_safe)
        });
        open.extend(works.map(|candidate| (place, candidate, request.clone())));
    }
    let mut ways: Vec<(Forecast, Request)> = Vec::new();
    for (pass, &flit_bytes) in offer.flits.iter().enumerate() {
        for (place, candidate, request) in &open {
            let best = ways.iter().map(|(way, _)| way.predicted_ns).min();
            if best.is_some_and(|best| began.elapsed() > budget(pass, best)) {
                break;
            }
            let request = Request {
                way: candidate.way(Some(flit_bytes)),
                ..request.clone()
            };
            let way = Forecast {
                algorithm: candidate.name,
                tree: offer.topologies[*place].name.clone(),
                flit_bytes,
                predicted_ns: predicted_ns(&request, offer.bytes, flit_bytes)?,
            };
            ways.push((way, request));
        }
    }
    let took = began.elapsed();
    ways.sort_by_key(|(way, _)| way.predicted_ns);
    let count = ways.len();
    let Some(least) = ways.first().map(|(way, _)| way.predicted_ns) else {
        return Ok(request);
    };
    let alike = (least as f64 * ALIKE) as u64;
    let costs = |(way, request): &(Forecast, Request)| {
        let tree = &request.site.tree;
        let depth = tree.pes().map(|pe| tree.depth(pe)).max();
        (depth, Reverse(way.flit_bytes))
    };
    let alike = ways.iter().take_while(|(way, _)| way.predicted_ns <= alike);
    let place = alike.enumerate().min_by_key(|(_, way)| costs(way));
    let (chosen, best) = ways.remove(place.map_or(0, |(place, _)| place));
    let mut ways = ways.into_iter();
    // Another flit size of the same algorithm is not an alternative.
    let differs = |way: &Forecast| (way.algorithm, &way.tree) != (chosen.algorithm, &chosen.tree);
    let runner_up = ways.by_ref().map(|(way, _)| way).find(differs);
    Ok(Request {
        choice: Some(Choice {
            ways: count,
            took_ns: took.as_nanos() as u64,
            chosen,
            runner_up,
        }),
        ..best
    })
}

/// Returns whether a pacing may be chosen for its predicted time. Predictions do not include switches
/// that drop packets under load. A profile does, since all pacings were run for it; without one, turns
/// are safe.
fn is_safe(request: &Request, pacing: Pacing) -> bool {
    match (&request.profile, request.site.placement.is_spread()) {
        (Some(profile), _) => pacing == profile.pacing,
        (None, true) => pacing == Pacing::Turns,
        (None, false) => true,
    }
}

/// Returns the request on another tree.
fn on(request: &Request, topology: &Topology, link: Option<LinkSpec>) -> Request {
    let tree = &topology.tree;
    let profile = request.profile.as_ref();
    let profile = profile.map(|profile| Arc::new(profile.for_tree(tree, &topology.name)));
    let site = Site {
        reach: request.site.reach.clone(),
        cluster: request.site.cluster.clone(),
        own_links: request.site.own_links,
        ..Site::of(topology.clone(), link, request.site.guard.clone())
    };
    Request {
        site,
        profile,
        ..request.clone()
    }
}

fn predicted_ns(request: &Request, bytes: &[u64], flit_bytes: u32) -> Result<u64, RoundFault> {
    let model = match &request.profile {
        Some(profile) => model_by(profile, &request.site),
        None => {
            let asked = request.site.links.iter();
            let edge = |link: &Option<EdgeSpec>| link.map_or_else(Edge::default, |l| l.edge());
            let hosts = host_costs::expected(&request.site);
            model_of(asked.map(edge).collect(), hosts, &request.site)
        }
    };
    let pacing = request.pacing();
    let (tree, operation) = (&request.site.tree, request.way.operation);
    let foreseen = foresee(
        tree,
        operation,
        pacing,
        bytes,
        flit_bytes,
        &model,
        &AtomicBool::new(false),
    );
    Ok(foreseen?.1.round_ns())
}
