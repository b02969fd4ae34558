//! The measurement before the rounds: edges, and clocks.

use std::time::Duration;

use flitcast_proto::PeId;
use flitcast_proto::calibration::clock::{ClockOffset, offsets_to_root};
use flitcast_proto::calibration::fit::{LinkFit, Point};
use flitcast_proto::calibration::{Exchange, MeasuredEdge, fit_directions, fit_latencies};
use tokio::time::Instant;

use super::driver::{Driver, Halt, or_joined_from};
use crate::job::fit::{EdgeFit, FitPoint};
use crate::job::model::{Alike, Measurement};
use crate::rounds::conductor::{Trouble, Update};

/// An interval of a rate that is no wider than this, as a part of the rate, is good
/// enough.
const SURE: f64 = 0.2;

/// Over a network, all edges that are measured whole take about so long; then those follow that
/// are to be like none of them.
const ENOUGH: Duration = Duration::from_secs(1);
/// On one machine, so many edges of a kind are measured, since all are sockets of one kernel:
/// the middling one of three is not the one that something disturbed, ...
const SAMPLES: usize = 3;
/// ... and all that takes about so long.
const ENOUGH_HERE: Duration = Duration::from_millis(100);
/// Points of a direction that a picture shows, at most: more would be a blot.
const SHOWN: usize = 300;

/// The edges that are being measured, and those that were.
#[derive(Default)]
struct Survey {
    asked: Vec<BusyEdge>,
    /// Those that were measured whole.
    known: Vec<PeId>,
}

/// An edge that is being measured.
struct BusyEdge {
    pe: PeId,
    /// What nobody else may use meanwhile.
    ends: Vec<String>,
}

impl Survey {
    fn is_busy(&self, ends: &[String]) -> bool {
        let mut busy = self.asked.iter().flat_map(|asked| &asked.ends);
        busy.any(|end| ends.contains(end))
    }
}

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

impl Driver<'_> {
    /// Measures all clocks and edges, each with `budget`: side by side where no host and no
    /// machine has a part in two of them, so that none disturbs another. Unless `thorough`,
    /// edges that are to be like others are spared (see [`Survey::spared`]).
    pub async fn measure(&mut self, budget: Duration, thorough: bool) -> Result<Measurement, Halt> {
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
                    Some(Alike {
                        other,
                        asked: false,
                    }) => measured.edges[pe.index()] = measured.edges[other.index()],
                    Some(_) => self.ask(pe, Duration::ZERO, ends, &mut survey),
                    None => self.ask(pe, budget, ends, &mut survey),
                }
            }
            waiting = blocked;
            self.console
                .measured(edges - waiting.len() - survey.asked.len(), edges);
            let Some((pe, answer)) = self.answer(&mut survey).await? else {
                break;
            };
            let exchanged = &mut exchanges[pe.index()];
            *exchanged = answer;
            measured.edges[pe.index()] = match measured.alike[pe.index()] {
                Some(Alike { other, .. }) => {
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

    /// Whether an edge is taken to be like one that was measured: on one machine in all, when a
    /// few of its kind are known; over a network all but its latencies, when measuring has taken
    /// long enough.
    fn spared(
        &self,
        pe: PeId,
        survey: &Survey,
        edges: &[MeasuredEdge],
        elapsed: Duration,
    ) -> Option<Alike> {
        let is_here = !self.request.site.placement.is_spread() && self.shares_parents_clock(pe);
        let enough = if is_here { ENOUGH_HERE } else { ENOUGH };
        let kind = |other: &&PeId| self.is_of_a_kind(pe, **other);
        let has_samples = is_here && survey.known.iter().filter(kind).count() >= SAMPLES;
        if !has_samples && elapsed < enough {
            return None;
        }
        let other = self.alike(pe, &survey.known, edges)?;
        Some(Alike {
            other,
            asked: !is_here,
        })
    }

    /// Whether two edges are shaped alike, if they are.
    fn is_of_a_kind(&self, one: PeId, other: PeId) -> bool {
        let links = &self.request.site.links;
        links[one.index()] == links[other.index()]
    }

    /// What an edge's measurement needs for itself: both its hosts, by address, and the machines
    /// that they are on, by the clocks that their PEs read.
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

    /// All but the root, so that each parent's first edge comes before any one's second: if not all
    /// are measured, it is of edges everywhere in the tree.
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

    /// Of the edges that are known, the one that the edge to `pe` is taken to be like: shaped
    /// alike, and of the same parent, if there are such; of several the one of middling rate.
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

    /// All edges, and once more each of whose rate that was not sure: something else may have
    /// had the machine just then.
    pub async fn measure_well(&mut self, budget: Duration) -> Result<Measurement, Halt> {
        let mut measured = self.measure(budget, true).await?;
        for pe in self.request.site.tree.clone().below_root() {
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

    /// Compares the clocks of those that do not read the root's.
    pub async fn clocks(&mut self) -> Result<Vec<ClockOffset>, Halt> {
        let tree = &self.request.site.tree;
        let root = self.clock(tree.root());
        let others: Vec<PeId> = tree
            .below_root()
            .filter(|&pe| root.is_empty() || self.clock(pe) != root)
            .collect();
        let mut exchanges = vec![Vec::new(); self.request.site.tree.len()];
        for (done, &pe) in others.iter().enumerate() {
            self.console.measured(done, others.len());
            exchanges[pe.index()] = self.probe(pe, Duration::ZERO).await?;
        }
        Ok(self.offsets(&exchanges)?)
    }

    /// The name of the clock that a PE reads.
    fn clock(&self, pe: PeId) -> String {
        let register = self.cluster.register(pe);
        register.map_or_else(String::new, |register| register.clock.clone())
    }

    fn shares_parents_clock(&self, pe: PeId) -> bool {
        let parent = self.request.site.tree.parent(pe);
        let parents = parent.map_or_else(String::new, |parent| self.clock(parent));
        !parents.is_empty() && self.clock(pe) == parents
    }

    fn offsets(&self, exchanges: &[Vec<Exchange>]) -> Result<Vec<ClockOffset>, Trouble> {
        let ids = self.request.site.tree.ids();
        let names: Vec<String> = ids.map(|pe| self.clock(pe)).collect();
        let to_parent = exchanges.iter().map(|all| ClockOffset::between(all));
        let to_parent: Vec<Option<ClockOffset>> = to_parent.collect();
        offsets_to_root(&self.request.site.tree, &names, &to_parent)
            .map_err(Trouble::ClockNotComparable)
    }

    /// Has the edge between a PE and its parent measured: what was exchanged. With a budget
    /// of 0 that is little, and tells of the clocks and latencies alone.
    async fn probe(&mut self, edge: PeId, budget: Duration) -> Result<Vec<Exchange>, Halt> {
        let mut survey = Survey::default();
        self.ask(edge, budget, Vec::new(), &mut survey);
        let answer = self.answer(&mut survey).await?;
        Ok(answer.map_or_else(Vec::new, |(_, exchanges)| exchanges))
    }

    /// Asks for the edge between a PE and its parent to be measured.
    fn ask(&mut self, pe: PeId, budget: Duration, ends: Vec<String>, survey: &mut Survey) {
        self.conductor.probe(self.now(), pe, budget);
        survey.asked.push(BusyEdge { pe, ends });
    }

    /// The next answer to what was asked; `None` if nothing is.
    async fn answer(&mut self, survey: &mut Survey) -> Result<Option<(PeId, Vec<Exchange>)>, Halt> {
        while let Some(answer) = self.next_answer().await? {
            if let Update::Probed(pe, exchanges) = answer {
                survey.asked.retain(|asked| asked.pe != pe);
                return Ok(Some((pe, exchanges)));
            }
        }
        Ok(None)
    }
}
