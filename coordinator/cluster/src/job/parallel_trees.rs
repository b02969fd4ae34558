//! Messages on several trees at once: over the rails of hosts that have several network cards each, or
//! over a cover of a network in which neighbours have separate links (paper 000, section IV).
//!
//! Each tree has its own connections and runs its own round, with the parts of messages that are
//! distributed to it. The prediction chooses the distribution.

use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::TreeRequirement;
use flitcast_plan::algorithms::cover_plan::{SplitPolicy, deal};
use flitcast_plan::cost::{Host, Hosts, Model};
use flitcast_plan::network::cover::Cover;
use flitcast_plan::predict::Prediction;
use flitcast_proto::cost::Edge;
use flitcast_proto::ops::parts::bytes_of_parts;
use flitcast_proto::ops::{Collective, PeRole};
use flitcast_proto::round::ProtocolError;
use flitcast_proto::schedule::flits_of;
use flitcast_proto::{PeId, Tree};

use crate::job::decisions::{Decisions, LaneChoice};
use crate::job::flit_size::plan_with_best_flit_size;
use crate::job::planned_round::{PlannedRound, Planner};

/// The trees on which the messages of a request may be sent at once.
#[derive(Clone, Debug)]
pub struct ParallelTrees {
    /// The trees in addition to the site's.
    pub extra_trees: Vec<Arc<Tree>>,
    /// Whether these trees replace the site's: a cover has no room for another tree.
    pub alone: bool,
    /// The reason why there are none, where a user could expect some.
    pub why_none: Option<&'static str>,
}

impl ParallelTrees {
    /// Plans a round on these trees, if that is predicted to be quicker than `one`, the plan on the
    /// first tree. The result records the choice, where several trees could be expected.
    pub fn plan_and_predict(
        &self,
        planner: &Planner<'_>,
        mut one: PlannedRound,
    ) -> Result<PlannedRound, ProtocolError> {
        let one_ns = one.ns();
        let on_one = |why| LaneChoice {
            count: 1,
            dealt: None,
            predicted_ns: one_ns,
            one_ns,
            why_one: Some(why),
        };
        if self.extra_trees.is_empty() {
            one.decisions.trees = self.why_none.map(on_one);
            return Ok(one);
        }
        let Some((dealt, split)) = self.best_split(planner)? else {
            return Ok(one);
        };
        // The disks have the same work.
        let prediction = split.prediction.with_files_of(&one.prediction);
        let predicted_ns = prediction.round_ns() + prediction.commit_ns();
        if predicted_ns >= one_ns {
            one.decisions.trees = Some(on_one("several at once would not be quicker"));
            return Ok(one);
        }
        Ok(PlannedRound {
            decisions: Decisions {
                flit_bytes: split.decisions.flit_bytes,
                flit_size: split.decisions.flit_size,
                trees: Some(LaneChoice {
                    count: self.used(),
                    dealt: Some(dealt),
                    predicted_ns,
                    one_ns,
                    why_one: None,
                }),
                ..one.decisions
            },
            lanes: split.lanes,
            prediction,
            schedules: one.schedules,
        })
    }

    /// Returns the number of trees that have parts of messages.
    fn used(&self) -> usize {
        self.extra_trees.len() + usize::from(!self.alone)
    }

    /// Returns the quickest distribution over all trees, if there is one: its lanes, its prediction without files,
    /// and the decisions about flits, for shares of the messages.
    fn best_split(
        &self,
        planner: &Planner<'_>,
    ) -> Result<Option<(SplitPolicy, PlannedRound)>, ProtocolError> {
        let first = planner.tree;
        let trees: Vec<&Arc<Tree>> = std::iter::once(first).chain(&self.extra_trees).collect();
        let idle = trees.len() - self.used();
        let share = |length: &u64| length.div_ceil(self.used() as u64);
        let shares: Vec<u64> = planner.bytes.iter().map(share).collect();
        let wires = Model {
            files: None,
            ..planner.model.clone()
        };
        let sized = plan_with_best_flit_size(&Planner {
            bytes: &shares,
            model: &wires,
            ..*planner
        })?;
        let flit_bytes = sized.decisions.flit_bytes;
        let models = trees
            .iter()
            .map(|tree| seen_on(&wires, first, tree, self.used()));
        let models: Vec<Model> = models.collect();
        let flits = planner.bytes.iter();
        let flits: Vec<u64> = flits.map(|bytes| flits_of(*bytes, flit_bytes)).collect();
        let mut best: Option<(SplitPolicy, PlannedRound)> = None;
        for how in SplitPolicy::ALL {
            let Some(dealt) = dealt(planner.operation(), &trees[idle..], &flits, how) else {
                continue;
            };
            let parts = |(at, bytes): (usize, &u64)| {
                let flits: Vec<u64> = dealt.iter().map(|tree| tree[at]).collect();
                let mut parts = vec![0; idle];
                parts.extend(bytes_of_parts(&flits, false, *bytes, flit_bytes.into()));
                parts
            };
            let parts: Vec<Vec<u64>> = planner.bytes.iter().enumerate().map(parts).collect();
            let mut lanes = Vec::new();
            let mut together: Option<Prediction> = None;
            for (lane, (tree, model)) in trees.iter().zip(&models).enumerate() {
                let bytes: Vec<u64> = parts.iter().map(|parts| parts[lane]).collect();
                let bytes = &bytes;
                let on_lane = Planner {
                    tree,
                    bytes,
                    model,
                    ..*planner
                };
                let planned = on_lane.plan_and_predict(flit_bytes)?;
                lanes.push(planned.schedules);
                together = Some(match together {
                    Some(others) => others.beside(planned.prediction),
                    None => planned.prediction,
                });
            }
            let Some(prediction) = together else { continue };
            let takes = prediction.round_ns();
            if best
                .as_ref()
                .is_none_or(|(_, best)| takes < best.prediction.round_ns())
            {
                let split = PlannedRound {
                    decisions: sized.decisions.clone(),
                    schedules: Vec::new(),
                    lanes,
                    prediction,
                };
                best = Some((how, split));
            }
        }
        Ok(best)
    }
}

/// Returns whether an operation's messages can each be cut differently and sent in parts. They must use
/// only a tree, and either their sources alone need the lengths or there is one message.
pub fn has_parts(operation: Algorithm) -> bool {
    match operation.role() {
        PeRole::Scatter | PeRole::ShoulderTap | PeRole::Certification(_) | PeRole::FlitByFlit => {
            true
        }
        PeRole::Linear { .. } | PeRole::Combining => false,
        PeRole::StaticSchedule => {
            let is_broadcast = operation.collective() == Collective::Broadcast;
            is_broadcast && operation.fits() == TreeRequirement::Trees
        }
    }
}

/// Returns the flits on each tree, by delivery; `None` if this distribution is not possible.
fn dealt(
    operation: Algorithm,
    trees: &[&Arc<Tree>],
    flits: &[u64],
    how: SplitPolicy,
) -> Option<Vec<Vec<u64>>> {
    let count = trees.len() as u64;
    if operation.collective() == Collective::Broadcast {
        // One message for all PEs: flit x is sent down tree x mod k.
        let on_tree = |at: u64| {
            let share = flits
                .iter()
                .map(|flits| flits.saturating_sub(at).div_ceil(count));
            share.collect()
        };
        return (how == SplitPolicy::Striped).then(|| (0..count).map(on_tree).collect());
    }
    let cover = Cover {
        trees: trees.iter().map(|tree| Tree::clone(tree)).collect(),
        nodes: (0..flits.len() as u32).collect(),
    };
    Some(deal(&cover, flits, how))
}

/// Returns the model of one of `lanes` trees of the same PEs. An edge that is not in the first tree was
/// not measured; it is assumed to be like the median of the measured edges. A PE serves all trees with
/// one thread, so on each everything takes `lanes` times as long.
fn seen_on(model: &Model, first: &Tree, tree: &Tree, lanes: usize) -> Model {
    let mut known: Vec<Edge> = first
        .below_root()
        .map(|pe| model.edges[pe.index()])
        .collect();
    known.sort_by(|one, other| one.down.ns_per_byte.total_cmp(&other.down.ns_per_byte));
    let middling = known.get(known.len() / 2).copied().unwrap_or_default();
    let edge = |pe: PeId| match (tree.parent(pe), first.parent(pe)) {
        (Some(parent), Some(same)) if parent == same => model.edges[pe.index()],
        (Some(parent), _) if first.parent(parent) == Some(pe) => {
            let Edge { down, up } = model.edges[parent.index()];
            Edge { down: up, up: down }
        }
        _ => middling,
    };
    let machines = tree.ids().map(|pe| model.hosts.machine_of(pe)).collect();
    Model {
        edges: tree.ids().map(edge).collect(),
        hosts: Hosts::new(model.hosts.machines().to_vec(), machines, tree)
            .map(|_, host| shared_by(host, lanes)),
        ..model.clone()
    }
}

/// Returns the costs of a process on one of `lanes` trees. It wakes up once for all of them, and has
/// one first round.
fn shared_by(host: Host, lanes: usize) -> Host {
    let times = lanes as f64;
    Host {
        control_ns: host.control_ns * times,
        flit_ns: host.flit_ns * times,
        send_ns_per_byte: host.send_ns_per_byte * times,
        receive_ns_per_byte: host.receive_ns_per_byte * times,
        end_ns_per_byte: host.end_ns_per_byte * times,
        message_ns: host.message_ns * times,
        ..host
    }
}
