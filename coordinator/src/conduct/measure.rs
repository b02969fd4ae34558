//! The measurement before the rounds: each edge in turn, and the clocks.

use std::time::Duration;

use flitcast_proto::PeId;
use flitcast_proto::calibration::clock::{ClockOffset, offsets_to_root};
use flitcast_proto::calibration::fit::{LinkFit, Point};
use flitcast_proto::calibration::{Exchange, MeasuredEdge, fit_directions};
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
    /// Measures all edges and clocks.
    pub(super) async fn measure(&mut self, budget: Duration) -> Result<Measurement, Trouble> {
        let all: Vec<PeId> = self.cluster.pes().skip(1).collect();
        let exchanges = self.probe(&all, budget).await?;
        let mut edges = vec![MeasuredEdge::default(); exchanges.len()];
        let mut fits = Vec::new();
        for pe in all {
            let (edge, points) = self.fitted(pe, &exchanges[pe.index()])?;
            edges[pe.index()] = edge;
            fits.extend(points);
        }
        let clocks = self.offsets(&exchanges)?;
        Ok(Measurement {
            edges,
            clocks,
            fits,
        })
    }

    /// The same, and once more for each edge of whose rate that was not sure: something
    /// else may have had the machine just then.
    pub(super) async fn measure_well(&mut self, budget: Duration) -> Result<Measurement, Trouble> {
        let mut measured = self.measure(budget).await?;
        for pe in self.cluster.pes().skip(1) {
            let doubt = doubt(&measured.edges[pe.index()]);
            if doubt <= SURE {
                continue;
            }
            let exchanges = self.probe(&[pe], budget).await?;
            let (edge, _) = self.fitted(pe, &exchanges[pe.index()])?;
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
        let exchanges = self.probe(&others, Duration::ZERO).await?;
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

    /// Has the edges to these PEs measured, one after the other, so that none disturbs
    /// another; what was exchanged, by PE index.
    async fn probe(
        &mut self,
        pes: &[PeId],
        budget: Duration,
    ) -> Result<Vec<Vec<Exchange>>, Trouble> {
        let tree = self.request.tree.clone();
        let mut exchanges = vec![Vec::new(); tree.len()];
        let budget_ns = budget.as_nanos() as u64;
        for (done, &edge) in pes.iter().enumerate() {
            let Some(parent) = tree.parent(edge) else {
                continue;
            };
            self.console.measured(done, pes.len());
            let probe = ToPe::ProbeEdge {
                child: edge,
                budget_ns,
            };
            self.cluster.say(parent, probe).await;
            let limit = PROBE + budget;
            let deadline = Instant::now() + limit;
            match self.next_word(Some(deadline)).await? {
                Some((
                    pe,
                    FromPe::ProbeResult {
                        child,
                        exchanges: all,
                    },
                )) if (pe, child) == (parent, edge) => {
                    exchanges[edge.index()] = all;
                }
                Some((pe, other)) => return Err(out_of_turn(pe, &other)),
                None => {
                    let (silent, doing) = (vec![parent], "measuring its edges");
                    return Err(Trouble::Silent {
                        silent,
                        limit,
                        doing,
                    });
                }
            }
        }
        Ok(exchanges)
    }
}
