//! The choice by prediction: of all algorithms on all offered trees, the one with the shortest
//! predicted time (no `--algorithm`, `--algorithm auto`, `--tree auto`).
//!
//! Alternatives are considered in the order of a lower bound of their time, and those whose bound is
//! no less than the best prediction are left out. A first pass predicts each with long flits, of
//! which a message has few, so that it takes little time; later ones predict the best of them with
//! the flits that a round would have. Nothing is run here. The values of links and hosts come from
//! the profile, or from the requested links.

use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_proto::ops::Collective;
use flitcast_proto::round::ProtocolError;
use flitcast_proto::schedule::pace::Pacing;

use super::alternative::{Alternative, Budget, Expected};
use super::checked::Request;
use super::expected::{expected_model, least_ns, steps};
use super::gossip_ways::candidates_on;
use super::spec::{OpenChoices, RequestSpec, check_crossings};
use crate::algorithms::method::Method;
use crate::job::decisions::{Choice, Forecast};
use crate::job::fault::no_choice;
use crate::job::flit_size::may_pay;
use crate::job::site::Site;
use crate::options::baseline::{Baseline, WINDOW};
use crate::options::link_spec::LinkSpec;
use crate::site::topology::Topology;
use crate::text::faults::Faults;
use crate::text::phrases::counted;
use crate::text::stderr;
use crate::tuning::{
    COMPARED_SEARCH_NS, EQUAL_EAGER, EQUAL_PREDICTIONS, EQUAL_SOFTWARE_PREDICTIONS,
    EQUAL_WITH_LESS_HELD, FINALISTS, LESS_HELD_BYTES, SEARCHED_FINALISTS, USUAL_FLIT_BYTES,
};

struct Offer {
    topologies: Vec<Topology>,
    /// The algorithms; those that do not support a tree are skipped.
    ways: OpenChoices,
    /// The requested shape of all links.
    link: Option<LinkSpec>,
    /// Whether every alternative is predicted, however long that takes.
    is_complete: bool,
}

/// Returns the request with the quickest of the algorithms and trees that the command line leaves open.
pub fn choose_open(
    request: Request,
    spec: &RequestSpec,
    mut ways: OpenChoices,
    topologies: Vec<Topology>,
    link: Option<LinkSpec>,
) -> Result<Request, Faults> {
    let bytes = &request.messages.bytes;
    let order = request.way.order.clone();
    if spec.like.collective() == Collective::Gossip {
        let pes = topologies[0].tree.len();
        let longest = |row: &[u64]| row.iter().copied().max().unwrap_or(0);
        let lengths: Vec<u64> = bytes.chunks(pes).map(longest).collect();
        let link = link.map(|link| link.link());
        let priced = link.as_ref().map(|link| (link, &lengths[..]));
        let more = candidates_on(&topologies[0], priced);
        ways.candidates.extend(more);
    }
    let offer = Offer {
        topologies,
        ways,
        link,
        is_complete: spec.round.compares,
    };
    let chosen = choose(request, offer).map_err(no_choice)?;
    let way = Method {
        order,
        ..chosen.way
    };
    Ok(Request { way, ..chosen })
}

/// Returns the request with the algorithm, tree and flit size that have the shortest predicted time.
fn choose(request: Request, offer: Offer) -> Result<Request, ProtocolError> {
    let mut budget = Budget::new(!offer.is_complete);
    let mut open = alternatives(&request, &offer);
    // If bounds are equal, an algorithm whose flits cross few edges is usually quicker. Stable: of equal ones the first
    // in the tables, which is the simplest.
    open.sort_by_key(|one| {
        let latencies = one.candidate.operation.latencies(&one.request.site.tree);
        (one.least_ns, latencies.flits)
    });
    let mut excluded = 0;
    for one in &mut open {
        if one.least_ns >= budget.best_ns && !offer.is_complete {
            excluded += 1;
        } else if budget.has_left(0.5) {
            one.estimate(&mut budget)?;
        }
    }
    open.sort_by_key(Alternative::rank);
    let least = if offer.is_complete { open.len() } else { 0 };
    for (place, one) in open.iter_mut().take(FINALISTS.max(least)).enumerate() {
        let is_first_estimate = place == 0 && one.is_estimated;
        let has_time = budget.has_left(0.75) && budget.has_left_ns(one.expected.usual_ns);
        if one.best.is_some() && (is_first_estimate || has_time) {
            one.predict_usual(&mut budget)?;
        }
    }
    open.iter_mut().for_each(Alternative::drop_estimate);
    open.sort_by_key(Alternative::rank);
    let mut unsearched = 0;
    for one in open.iter_mut().take(SEARCHED_FINALISTS.max(least)) {
        let has_time = match offer.is_complete {
            true => budget.used_ns() < COMPARED_SEARCH_NS,
            false => budget.has_left(1.0),
        };
        if one.best.is_some() && has_time {
            one.search_flits(&mut budget)?;
        } else {
            unsearched += 1;
        }
    }
    if offer.is_complete && unsearched > 0 {
        stderr::warning(format_args!(
            "the best flit sizes of {} were not searched for, which would take long; --flit-size sets one",
            counted(unsearched, "alternative", "alternatives")
        ));
    }
    open.sort_by_key(Alternative::rank);
    let alike = break_ties(&mut open);
    if let Some(chosen) = open.first_mut().filter(|one| one.best.is_some()) {
        // Without time for the usual flits of all: the longer ones of the first pass take more memory.
        chosen.predict_usual(&mut budget)?;
    }
    let mut all: Vec<Forecast> = open.iter().filter_map(Alternative::forecast).collect();
    if offer.is_complete {
        for (one, forecast) in open.iter().zip(&mut all) {
            forecast.steps = Some(steps(&one.request, forecast.flit_bytes)?);
        }
    }
    let alternatives = open.len();
    let skipped = alternatives - all.len() - excluded;
    let Some(best) = open.into_iter().next().filter(|_| !all.is_empty()) else {
        return Ok(request);
    };
    let choice = Choice {
        ways: budget.predictions,
        alternatives,
        excluded,
        skipped,
        ..Choice::of(all, alike.max(1), budget.took())
    };
    let mut request = best.request;
    request.way.flit_bytes = Some(choice.chosen.flit_bytes);
    request.choice = Some(Arc::new(choice));
    Ok(request)
}

/// Moves the alternatives whose times are about equal to the best to the front, sorted by
/// [`Alternative::tie_break`], and returns their number. `open` is in the order of the predicted times. The eager
/// form of the first of them, if there is one, is put before it.
fn break_ties(open: &mut [Alternative<'_>]) -> usize {
    let Some((first, best)) = open.first().and_then(|one| Some((one, one.best?))) else {
        return 0;
    };
    let equal = match first.has_slow_links() {
        true => EQUAL_PREDICTIONS,
        false => EQUAL_SOFTWARE_PREDICTIONS,
    };
    let within = |ratio: f64| {
        let most_ns = (best.ns as f64 * ratio) as u64;
        open.iter().take_while(|one| one.rank() <= most_ns).count()
    };
    let holds_less = |one: &Alternative<'_>| {
        let less = best.held_bytes.checked_sub(LESS_HELD_BYTES);
        one.best.map(|one| one.held_bytes) <= less
    };
    let (equal, equal_with_less) = (within(equal), within(EQUAL_WITH_LESS_HELD));
    let equal_if_eager = within(EQUAL_EAGER);
    let alike = match open[..equal_with_less].iter().any(holds_less) {
        true => equal_with_less,
        false => equal,
    };
    open[..alike].sort_by_key(Alternative::tie_break);
    let near = &open[..equal_if_eager.max(alike)];
    let is_eager = |one: &Alternative<'_>| one.is_eager_form_of(&open[0]);
    let Some(eager) = near.iter().position(is_eager) else {
        return alike;
    };
    open[..=eager].rotate_right(1);
    alike.max(eager + 1)
}

/// Returns all algorithms on all trees that support them.
fn alternatives<'a>(request: &Request, offer: &'a Offer) -> Vec<Alternative<'a>> {
    let (mut all, bytes) = (Vec::new(), &request.messages.bytes);
    for (place, topology) in offer.topologies.iter().enumerate() {
        let on_tree = on(request, topology, offer.link);
        let model = expected_model(&on_tree);
        let works = offer.ways.candidates.iter().filter(|candidate| {
            // Data between any two PEs does not go over the tree.
            let uses_tree = candidate.operation.fits().stays_in_tree();
            let is_safe = |pacing| offer.ways.any_pacing || is_safe(&on_tree, pacing);
            let operation = candidate.operation;
            let many = gathers_many(operation.collective(), &on_tree.site, bytes);
            let orders_all =
                candidate.pacing == Some(Pacing::Eager) && operation == Algorithm::GATHER_BY_ORDERS;
            let pays = || {
                offer.is_complete
                    || may_pay(&on_tree.site.tree, operation, &model)
                    || (many && orders_all)
            };
            let is_good = |baseline| {
                offer.ways.any_baseline
                    || (!many && is_good_baseline(baseline, &on_tree.site, bytes))
            };
            // A baseline has its own tree.
            ((uses_tree && candidate.baseline.is_none()) || place == 0)
                && candidate.baseline.is_none_or(is_good)
                && pays()
                && candidate.check(topology, topology).is_ok()
                && check_crossings(candidate.operation, &topology.tree, "", bytes).is_ok()
                && candidate.pacing.is_none_or(is_safe)
        });
        all.extend(works.map(|candidate| {
            let request = on_tree.done_by(candidate, topology);
            Alternative {
                candidate,
                least_ns: least_ns(&request.site.tree, request.way.operation, &model, bytes),
                request,
                model: model.clone(),
                best: None,
                is_estimated: false,
                expected: Expected::default(),
            }
        }));
    }
    all
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

/// Returns whether a baseline may be chosen for its predicted time: where no switch drops packets of PEs
/// that send without pacing, unless PEs would store messages of others.
fn is_good_baseline(baseline: Baseline, site: &Site, bytes: &[u64]) -> bool {
    let longest = bytes.iter().copied().max().unwrap_or(0);
    let is_safe = !site.placement.is_spread() || baseline.spares_queues(longest);
    is_safe && !site.is_shaped() && !site.own_links && !baseline.stores()
}

/// Returns whether messages of one flit are gathered on one machine from more than eight PEs: twice as many as
/// the windowed gather requests messages from at once. By orders to all at once, that took 0.76 to 0.9 of its
/// time with 11 and 15 PEs, and was predicted up to 16 % slower.
fn gathers_many(collective: Collective, site: &Site, bytes: &[u64]) -> bool {
    collective == Collective::Gather
        && !site.placement.is_spread()
        && bytes.iter().filter(|bytes| **bytes > 0).count() > 2 * WINDOW
        && bytes.iter().all(|bytes| *bytes <= USUAL_FLIT_BYTES.into())
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
        limit: request.site.limit,
        ..Site::of(topology.clone(), link, request.site.guard.clone())
    };
    Request {
        site,
        profile,
        ..request.clone()
    }
}
