//! The measurement before the rounds: each edge in turn, and the clocks.

use std::time::Duration;

use flitcast_proto::PeId;
use flitcast_proto::calibration::clock::{ClockOffset, offsets_to_root};
use flitcast_proto::calibration::{Exchange, MeasuredEdge, fit_edge};
use flitcast_proto::wire::control::{FromPe, ToPe};
use tokio::time::Instant;

use super::{Conductor, Trouble, out_of_turn};
use crate::model::Measurement;

/// For one edge to be measured, beyond its budget and what the PE itself allows.
const PROBE: Duration = Duration::from_secs(30);

impl Conductor<'_> {
    /// Measures all edges and clocks.
    pub(super) async fn measure(&mut self, budget: Duration) -> Result<Measurement, Trouble> {
        let all: Vec<PeId> = self.cluster.pes().skip(1).collect();
        let exchanges = self.probe(&all, budget).await?;
        let mut edges = vec![MeasuredEdge::default(); exchanges.len()];
        for pe in all {
            let fitted = fit_edge(&exchanges[pe.index()], self.shares_parents_clock(pe));
            edges[pe.index()] = fitted.map_err(|error| Trouble::Unmeasured(pe, error))?;
        }
        let clocks = self.offsets(&exchanges)?;
        Ok(Measurement { edges, clocks })
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
        let names: Vec<String> = self.cluster.pes().map(|pe| self.clock(pe)).collect();
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
