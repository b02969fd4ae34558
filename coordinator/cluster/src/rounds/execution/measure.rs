//! Measurements of edges and clocks before the rounds.

use std::collections::BTreeMap;
use std::time::Duration;

use flitcast_plan::calibration::clock::{ClockOffset, offsets_to_root};
use flitcast_plan::calibration::fit::{LinkFit, Point};
use flitcast_plan::calibration::{MeasuredEdge, fit_directions, fit_latencies};
use flitcast_proto::PeId;
use flitcast_proto::exchange::Exchange;
use flitcast_proto::wire::control::{FromPe, ToPe};
use tokio::time::Instant;

use super::driver::{Driver, StopReason, or_joined_from};
use crate::job::model::{EdgeFit, InferredEdge, Measurement};
use crate::rounds::controller::{ControllerEvent, FailureCause};
use crate::tuning::{MEASURED_APART, SHOWN_POINTS, SURE_RATE};

/// The edges that are being measured, and those that were.
#[derive(Default)]
struct Survey {
    /// For each edge the hosts and machines that no other measurement may use meanwhile.
    active: BTreeMap<PeId, Vec<String>>,
    /// Edges with complete measurements.
    known: Vec<PeId>,
}

impl Survey {
    fn is_busy(&self, ends: &[String]) -> bool {
        let mut busy = self.active.values().flatten();
        busy.any(|end| ends.contains(end))
    }
}

/// Returns the width of the less certain direction's interval, relative to its rate.
fn doubt(edge: &MeasuredEdge) -> f64 {
    let doubts = [edge.down, edge.up].map(|link| {
        let rate = link.ns_per_byte;
        (rate.high - rate.low) / rate.value.max(f64::MIN_POSITIVE)
    });
    doubts[0].max(doubts[1])
}

/// Returns a fit and its points for a chart.
fn shown(edge: PeId, down: bool, (points, fit): &(Vec<Point>, LinkFit)) -> EdgeFit {
    let each = points.len().div_ceil(SHOWN_POINTS).max(1);
    let points = points.iter().copied().zip(fit.used.iter().copied());
    EdgeFit {
        edge,
        down,
        points: points.step_by(each).collect(),
        link: fit.link.value(),
    }
}

impl Driver<'_> {
    /// Measures all clocks and edges, each with `budget`, at the same time if they share no host
    /// and no machine, so that none disturbs another. Unless `thorough`, some edges are assumed to
    /// equal others (see `spared`).
    pub async fn measure(
        &mut self,
        budget: Duration,
        thorough: bool,
    ) -> Result<Measurement, StopReason> {
        let began = Instant::now();
        let all = self.first_children_first().into_iter();
        let mut waiting: Vec<(PeId, Vec<String>)> = all.map(|pe| (pe, self.ends(pe))).collect();
        let edges = waiting.len();
        let mut exchanges = vec![Vec::new(); self.request.site.tree.len()];
        let mut measured = Measurement {
            edges: vec![MeasuredEdge::default(); exchanges.len()],
            alike: vec![None; exchanges.len()],
            clocks: Vec::new(),
            fits: Vec::new(),
            shared_cores: self.shared_cores(),
        };
        let mut survey = Survey::default();
        loop {
            let mut blocked = Vec::new();
            for (pe, ends) in std::mem::take(&mut waiting) {
                if survey.is_busy(&ends) {
                    blocked.push((pe, ends));
                    continue;
                }
                let alike = match thorough {
                    true => None,
                    false => self.spared(pe, &survey, &measured.edges, began.elapsed()),
                };
                measured.alike[pe.index()] = alike;
                match alike {
                    Some(InferredEdge {
                        other,
                        asked: false,
                    }) => measured.edges[pe.index()] = measured.edges[other.index()],
                    Some(_) => self.request_probe(pe, Duration::ZERO, ends, &mut survey),
                    None => self.request_probe(pe, budget, ends, &mut survey),
                }
            }
            waiting = blocked;
            self.console
                .measured(edges - waiting.len() - survey.active.len(), edges);
            let Some((pe, answer)) = self.answer(&mut survey).await? else {
                break;
            };
            let exchanged = &mut exchanges[pe.index()];
            *exchanged = answer;
            measured.edges[pe.index()] = match measured.alike[pe.index()] {
                Some(InferredEdge { other, .. }) => {
                    let shared = self.shares_parents_clock(pe);
                    fit_latencies(exchanged, shared, &measured.edges[other.index()])
                }
                None => {
                    let (edge, points) = self.fitted(pe, exchanged)?;
                    measured.fits.extend(points);
                    survey.known.push(pe);
                    edge
                }
            };
        }
        measured.fits.sort_by_key(|fit| fit.edge);
        measured.clocks = self.offsets(&exchanges)?;
        Ok(measured)
    }

    /// Returns the measured edge to which an edge is assumed to be equal: on one machine, where all edges
    /// are sockets of one kernel, in all respects; over a network except for its latencies, once
    /// measurements have taken long enough.
    fn spared(
        &self,
        pe: PeId,
        survey: &Survey,
        edges: &[MeasuredEdge],
        elapsed: Duration,
    ) -> Option<InferredEdge> {
        let is_here = !self.request.site.placement.is_spread() && self.shares_parents_clock(pe);
        if !is_here && elapsed < MEASURED_APART {
            return None;
        }
        let other = self.alike(pe, &survey.known, edges)?;
        Some(InferredEdge {
            other,
            asked: !is_here,
        })
    }

    fn is_of_a_kind(&self, one: PeId, other: PeId) -> bool {
        let links = &self.request.site.links;
        links[one.index()] == links[other.index()]
    }

    /// Returns the resources that a measurement of an edge needs exclusively: both hosts, by
    /// address, and their machines, by the clocks that the PEs read.
    fn ends(&self, pe: PeId) -> Vec<String> {
        let parent = self.request.site.tree.parent(pe);
        let ends = [Some(pe), parent].into_iter().flatten();
        ends.flat_map(|end| {
            let address = self.request.site.placement.places[end.index()].address;
            let host = or_joined_from(self.cluster, address, end).to_string();
            [host, self.clock(end)]
        })
        .filter(|name| !name.is_empty())
        .collect()
    }

    /// Returns all PEs but the root, each parent's first child before any second child, so that a
    /// partial measurement covers the whole tree.
    fn first_children_first(&self) -> Vec<PeId> {
        let tree = &self.request.site.tree;
        let place = |pe: &PeId| {
            let parent = tree.parent(*pe);
            parent.and_then(|parent| tree.children(parent).iter().position(|child| child == pe))
        };
        let mut all: Vec<PeId> = tree.below_root().collect();
        all.sort_by_cached_key(place);
        all
    }

    /// Returns the measured edge to which the edge of `pe` is assumed to be equal: one that is
    /// shaped equally, of the same parent if possible, and with the median rate of several.
    fn alike(&self, pe: PeId, known: &[PeId], edges: &[MeasuredEdge]) -> Option<PeId> {
        let tree = &self.request.site.tree;
        let is_meant = |other: &PeId| self.is_of_a_kind(pe, *other);
        let is_sibling = |other: &PeId| tree.parent(*other) == tree.parent(pe);
        let meant = known.iter().copied().filter(is_meant);
        let (siblings, others): (Vec<PeId>, Vec<PeId>) = meant.partition(is_sibling);
        let mut among = match siblings.is_empty() {
            true => others,
            false => siblings,
        };
        let rate = |pe: &PeId| edges[pe.index()].down.ns_per_byte.value;
        among.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
        among.get(among.len() / 2).copied()
    }

    /// Measures all edges, and those with uncertain rates again, because another process may have
    /// used the machine.
    pub async fn measure_well(&mut self, budget: Duration) -> Result<Measurement, StopReason> {
        let mut measured = self.measure(budget, true).await?;
        for pe in self.request.site.tree.clone().below_root() {
            let doubt = doubt(&measured.edges[pe.index()]);
            if doubt <= SURE_RATE {
                continue;
            }
            let exchanges = self.probe(pe, budget).await?;
            let (edge, _) = self.fitted(pe, &exchanges)?;
            if self::doubt(&edge) < doubt {
                measured.edges[pe.index()] = edge;
            }
        }
        Ok(measured)
    }

    fn fitted(
        &self,
        pe: PeId,
        exchanges: &[Exchange],
    ) -> Result<(MeasuredEdge, Vec<EdgeFit>), FailureCause> {
        let fitted = fit_directions(exchanges, self.shares_parents_clock(pe));
        let [down, up] = fitted.map_err(|error| {
            let text = format!("the edge to {pe} could not be measured: {error}");
            FailureCause::Other("measurement", Some(pe), text)
        })?;
        let edge = MeasuredEdge {
            down: down.1.link,
            up: up.1.link,
        };
        let points = match self.request.pictures.wanted() {
            true => vec![shown(pe, true, &down), shown(pe, false, &up)],
            false => Vec::new(),
        };
        Ok((edge, points))
    }

    /// Compares the clocks of the PEs that do not read the root's.
    pub async fn clocks(&mut self) -> Result<Vec<ClockOffset>, StopReason> {
        let tree = &self.request.site.tree;
        let root = self.clock(tree.root());
        let others = tree.below_root();
        let others = others.filter(|&pe| root.is_empty() || self.clock(pe) != root);
        let others: Vec<PeId> = others.collect();
        let mut exchanges = vec![Vec::new(); tree.len()];
        for (done, &pe) in others.iter().enumerate() {
            self.console.measured(done, others.len());
            exchanges[pe.index()] = self.probe(pe, Duration::ZERO).await?;
        }
        Ok(self.offsets(&exchanges)?)
    }

    /// Returns the name of the clock that a PE reads; empty if it is unknown.
    pub fn clock(&self, pe: PeId) -> String {
        let register = self.cluster.register(pe);
        register.map_or_else(String::new, |register| register.clock.clone())
    }

    fn shares_parents_clock(&self, pe: PeId) -> bool {
        let parent = self.request.site.tree.parent(pe);
        let parents = parent.map_or_else(String::new, |parent| self.clock(parent));
        !parents.is_empty() && self.clock(pe) == parents
    }

    fn offsets(&self, exchanges: &[Vec<Exchange>]) -> Result<Vec<ClockOffset>, FailureCause> {
        let ids = self.request.site.tree.ids();
        let names: Vec<String> = ids.map(|pe| self.clock(pe)).collect();
        let to_parent = exchanges.iter().map(|all| ClockOffset::between(all));
        let to_parent: Vec<Option<ClockOffset>> = to_parent.collect();
        offsets_to_root(&self.request.site.tree, &names, &to_parent).map_err(|pe| {
            let text = format!("the clock of {pe} could not be compared with its parent's");
            FailureCause::Other("measurement", Some(pe), text)
        })
    }

    /// Measures the edge between a PE and its parent and returns the exchanges. With a budget of 0
    /// these are few, and suffice only for clocks and latencies.
    async fn probe(&mut self, edge: PeId, budget: Duration) -> Result<Vec<Exchange>, StopReason> {
        let mut survey = Survey::default();
        self.request_probe(edge, budget, Vec::new(), &mut survey);
        let answer = self.answer(&mut survey).await?;
        Ok(answer.map_or_else(Vec::new, |(_, exchanges)| exchanges))
    }

    /// Requests a measurement of the edge between a PE and its parent.
    fn request_probe(
        &mut self,
        pe: PeId,
        budget: Duration,
        ends: Vec<String>,
        survey: &mut Survey,
    ) {
        if let Some(parent) = self.request.site.tree.parent(pe) {
            let budget_ns = budget.as_nanos() as u64;
            self.send_request(
                parent,
                ToPe::ProbeEdge {
                    child: pe,
                    budget_ns,
                },
            );
        }
        survey.active.insert(pe, ends);
    }

    /// Returns the next measured edge; `None` if none is requested.
    async fn answer(
        &mut self,
        survey: &mut Survey,
    ) -> Result<Option<(PeId, Vec<Exchange>)>, StopReason> {
        while let Some(answer) = self.next_answer().await? {
            if let ControllerEvent::Answered(_, FromPe::ProbeResult { child, exchanges }) = answer {
                survey.active.remove(&child);
                return Ok(Some((child, exchanges)));
            }
        }
        Ok(None)
    }
}
