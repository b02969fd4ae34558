//! The measurement before the rounds: edges, one after the other, and clocks.

use std::time::Duration;

use flitcast_proto::PeId;
use flitcast_proto::calibration::clock::{ClockOffset, offsets_to_root};
use flitcast_proto::calibration::fit::{LinkFit, Point};
use flitcast_proto::calibration::{Exchange, MeasuredEdge, fit_directions, fit_latencies};
use flitcast_proto::wire::control::{FromPe, ToPe};
use tokio::time::Instant;

use super::{Conductor, Trouble, out_of_turn};
use crate::model::Measurement;
use crate::page::{EdgeFit, FitPoint};

/// For one edge to be measured, beyond its budget and what the PE itself allows.
const PROBE: Duration = Duration::from_secs(30);

/// An interval of a rate that is no wider than this, as a part of the rate, is good
/// enough.
const SURE: f64 = 0.2;
/// Points of a direction that a picture shows, at most: more would be a blot.
const SHOWN: usize = 300;

/// How wide the interval of the less sure direction's rate is.
fn doubt(edge: &MeasuredEdge) -> f64 {
    let doubts = [edge.down, edge.up].map(|link| {
        let rate = link.ns_per_byte;
        (rate.high - rate.low) / rate.value.max(f64::MIN_POSITIVE)
    });
    doubts[0].max(doubts[1])
}

/// A fit and its points, as a picture shows them.
fn shown(edge: PeId, down: bool, (points, fit): &(Vec<Point>, LinkFit)) -> EdgeFit {
    let each = points.len().div_ceil(SHOWN).max(1);
    let points = points.iter().zip(&fit.used).step_by(each);
    let points = points.map(|(point, &used)| FitPoint {
        bytes: point.bytes,
        ns: point.ns,
        used,
    });
    EdgeFit {
        edge,
        down,
        points: points.collect(),
        link: fit.link.value(),
    }
}

impl Conductor<'_> {
    /// Measures all clocks, and edges one after the other, so that none disturbs another. Once
    /// it has taken `enough`, an edge that is to be like one that was measured is asked for its
    /// latencies alone.
    pub(super) async fn measure(
        &mut self,
        budget: Duration,
        enough: Duration,
    ) -> Result<Measurement, Trouble> {
        let began = Instant::now();
        let all = self.first_children_first();
        let mut exchanges = vec![Vec::new(); self.request.tree.len()];
        let mut measured = Measurement {
            edges: vec![MeasuredEdge::default(); exchanges.len()],
            alike: vec![None; exchanges.len()],
            clocks: Vec::new(),
            fits: Vec::new(),
        };
        let mut known: Vec<PeId> = Vec::new();
        for (done, &pe) in all.iter().enumerate() {
            self.console.measured(done, all.len());
            let alike = match began.elapsed() < enough {
                true => None,
                false => self.alike(pe, &known, &measured.edges),
            };
            let exchanged = &mut exchanges[pe.index()];
            measured.edges[pe.index()] = match alike {
                None => {
                    *exchanged = self.probe(pe, budget).await?;
                    let (edge, points) = self.fitted(pe, exchanged)?;
                    measured.fits.extend(points);
                    known.push(pe);
                    edge
                }
                Some(other) => {
                    *exchanged = self.probe(pe, Duration::ZERO).await?;
                    measured.alike[pe.index()] = Some(other);
                    let shared = self.shares_parents_clock(pe);
                    fit_latencies(exchanged, shared, &measured.edges[other.index()])
                }
            };
        }
        measured.fits.sort_by_key(|fit| fit.edge);
        measured.clocks = self.offsets(&exchanges)?;
        Ok(measured)
    }

    /// All but P0, so that each parent's first edge comes before any one's second: if not all
    /// are measured, it is of edges everywhere in the tree.
    fn first_children_first(&self) -> Vec<PeId> {
        let tree = &self.request.tree;
        let place = |pe: &PeId| {
            let parent = tree.parent(*pe);
            parent.and_then(|parent| tree.children(parent).iter().position(|child| child == pe))
        };
        let mut all: Vec<PeId> = self.cluster.pes().skip(1).collect();
        all.sort_by_cached_key(place);
        all
    }

    /// Of the edges that are known, the one that the edge to `pe` is taken to be like: shaped
    /// alike, and of the same parent, if there are such; of several the one of middling rate.
    fn alike(&self, pe: PeId, known: &[PeId], edges: &[MeasuredEdge]) -> Option<PeId> {
        let (tree, links) = (&self.request.tree, &self.request.links);
        let is_meant = |other: &PeId| links[other.index()] == links[pe.index()];
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

    /// All edges, and once more each of whose rate that was not sure: something else may have
    /// had the machine just then.
    pub(super) async fn measure_well(&mut self, budget: Duration) -> Result<Measurement, Trouble> {
        let mut measured = self.measure(budget, Duration::MAX).await?;
        for pe in self.cluster.pes().skip(1) {
            let doubt = doubt(&measured.edges[pe.index()]);
            if doubt <= SURE {
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
    ) -> Result<(MeasuredEdge, Vec<EdgeFit>), Trouble> {
        let fitted = fit_directions(exchanges, self.shares_parents_clock(pe));
        let [down, up] = fitted.map_err(|error| Trouble::Unmeasured(pe, error))?;
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

    /// Compares the clocks of those that do not read P0's.
    pub(super) async fn clocks(&mut self) -> Result<Vec<ClockOffset>, Trouble> {
        let root = self.clock(PeId::ROOT);
        let others: Vec<PeId> = self
            .cluster
            .pes()
            .skip(1)
            .filter(|&pe| root.is_empty() || self.clock(pe) != root)
            .collect();
        let mut exchanges = vec![Vec::new(); self.request.tree.len()];
        for (done, &pe) in others.iter().enumerate() {
            self.console.measured(done, others.len());
            exchanges[pe.index()] = self.probe(pe, Duration::ZERO).await?;
        }
        self.offsets(&exchanges)
    }

    /// The name of the clock that a PE reads.
    fn clock(&self, pe: PeId) -> String {
        let register = self.cluster.register(pe);
        register.map_or_else(String::new, |register| register.clock.clone())
    }

    fn shares_parents_clock(&self, pe: PeId) -> bool {
        let parent = self.request.tree.parent(pe);
        let parents = parent.map_or_else(String::new, |parent| self.clock(parent));
        !parents.is_empty() && self.clock(pe) == parents
    }

    fn offsets(&self, exchanges: &[Vec<Exchange>]) -> Result<Vec<ClockOffset>, Trouble> {
        let ids = self.request.tree.ids();
        let names: Vec<String> = ids.map(|pe| self.clock(pe)).collect();
        let to_parent = exchanges.iter().map(|all| ClockOffset::between(all));
        let to_parent: Vec<Option<ClockOffset>> = to_parent.collect();
        offsets_to_root(&self.request.tree, &names, &to_parent).map_err(Trouble::Timeless)
    }

    /// Has the edge between a PE and its parent measured: what was exchanged. With a budget
    /// of 0 that is little, and tells of the clocks and latencies alone.
    async fn probe(&mut self, edge: PeId, budget: Duration) -> Result<Vec<Exchange>, Trouble> {
        let Some(parent) = self.request.tree.parent(edge) else {
            return Ok(Vec::new());
        };
        let probe = ToPe::ProbeEdge {
            child: edge,
            budget_ns: budget.as_nanos() as u64,
        };
        self.cluster.say(parent, probe).await;
        let limit = PROBE + budget;
        match self.next_word(Some(Instant::now() + limit)).await? {
            Some((pe, FromPe::ProbeResult { child, exchanges }))
                if (pe, child) == (parent, edge) =>
            {
                Ok(exchanges)
            }
            Some((pe, other)) => Err(out_of_turn(pe, &other)),
            None => Err(Trouble::Silent {
                silent: vec![parent],
                limit,
                doing: "measuring its edges",
            }),
        }
    }
}
