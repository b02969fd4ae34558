//! Plans that are lists of crossings: of a broadcast, a gossip, an exchange, and of a scatter from any
//! PE or by many ports.

use std::collections::BTreeMap;
use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::plan::{ControlPlan, MessagePlan, hops_of};
use flitcast_plan::algorithms::timetable::Timetable;
use flitcast_plan::algorithms::{ListTask, MOST_BLOCKS, OfferKind, blocks};
use flitcast_plan::cost;
use flitcast_proto::items::{Address, ScheduledHop};
use flitcast_proto::ops::Collective;
use flitcast_proto::{DeliveryId, PeId, Tree};

use super::input::not_planned;
use flitcast_cluster::algorithms::listed::quickest;
use flitcast_cluster::options::ports::Ports;
use flitcast_cluster::options::values::is_for_trees;
use flitcast_cluster::site::topology::Topology;

/// A plan that is a list of crossings, with its names.
#[derive(Debug, Default)]
pub struct StaticPlan {
    pub operation: &'static str,
    pub algorithm: String,
    /// The ports of a PE; "shared" in a complete network.
    pub ports: &'static str,
    /// The name of the tree or network as typed.
    pub name: String,
    /// The connected PEs; `None` in a complete network.
    pub edges: Option<Vec<[PeId; 2]>>,
    /// The network's node of each PE, if a tree spans a network.
    pub nodes: Option<Vec<u32>>,
    pub trees: Vec<Tree>,
    pub pes: usize,
    pub messages: Vec<PlannedMessage>,
    pub crossings: Crossings,
    /// The control items by step, each with the index of its tree.
    pub control: Vec<(usize, ControlPlan)>,
    /// The step of the last arrival.
    pub time_steps: u64,
    pub bound_steps: u64,
    /// The largest number of flits that a PE keeps for others at the end of a step.
    pub kept_flits: u64,
    /// The state machines that run it in lock step.
    pub played: Played,
}

#[derive(Debug)]
pub struct PlannedMessage {
    pub id: u64,
    pub source: PeId,
    pub destinations: Vec<PeId>,
    pub flits: u64,
}

impl PlannedMessage {
    pub fn to_others(id: u64, source: PeId, pes: usize, flits: u64) -> PlannedMessage {
        let all = (0..pes as u32).map(PeId);
        PlannedMessage {
            id,
            source,
            destinations: all.filter(|pe| *pe != source).collect(),
            flits,
        }
    }

    pub fn to_one(id: u64, [source, destination]: [PeId; 2], flits: u64) -> PlannedMessage {
        PlannedMessage {
            id,
            source,
            destinations: vec![destination],
            flits,
        }
    }
}

#[derive(Debug)]
pub enum Crossings {
    Listed(Vec<ScheduledHop>),
    /// Messages from the root of a tree that do not stop on the way. For a million PEs a list of their
    /// crossings would be too long.
    Ways(Arc<Tree>, Vec<MessagePlan>),
}

impl Default for Crossings {
    fn default() -> Crossings {
        Crossings::Listed(Vec::new())
    }
}

impl Crossings {
    /// Returns for each message the first and the last step in which any of it crosses an edge.
    pub fn steps(&self) -> BTreeMap<u64, [u64; 2]> {
        let mut steps: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
        let mut take = |message: u64, [first, last]: [u64; 2]| {
            let known = steps.entry(message).or_insert([first, last]);
            *known = [known[0].min(first), known[1].max(last)];
        };
        match self {
            Crossings::Listed(hops) => hops
                .iter()
                .for_each(|hop| take(hop.message.0, [hop.first_step, last_step(hop)])),
            Crossings::Ways(_, plans) => plans
                .iter()
                .for_each(|it| take(it.pe.0.into(), [it.first_step, it.arrival_step])),
        }
        steps
    }

    /// Returns all crossings in order.
    pub fn hops(&self) -> Box<dyn Iterator<Item = ScheduledHop> + '_> {
        match self {
            Crossings::Listed(hops) => Box::new(hops.iter().copied()),
            Crossings::Ways(tree, messages) => {
                Box::new(messages.iter().flat_map(|message| hops_of(tree, message)))
            }
        }
    }
}

fn edges_of(tree: &Tree) -> Vec<[PeId; 2]> {
    let edge = |pe| Some([tree.parent(pe)?, pe]);
    tree.pes().filter_map(edge).collect()
}

impl StaticPlan {
    /// Creates the parts of a plan that its crossings define.
    pub fn of(timetable: Timetable) -> StaticPlan {
        let (time_steps, kept_flits) = (timetable.time_steps, timetable.kept_flits());
        let mut hops = timetable.hops;
        hops.sort_by_key(|hop| (hop.first_step, hop.from, hop.to));
        StaticPlan {
            time_steps,
            kept_flits,
            crossings: Crossings::Listed(hops),
            ..StaticPlan::default()
        }
    }

    /// Creates the plan of an algorithm, with its messages, its bound and the state machines.
    pub fn listed(algorithm: Algorithm, task: &ListTask<'_>, timetable: Timetable) -> StaticPlan {
        let collective = algorithm.collective();
        let tree = task.tree.rerooted(task.source);
        let length = |message: &Address| task.flits[message.id.index()];
        let messages = collective.messages(&tree).map(|message| PlannedMessage {
            id: message.id.0,
            source: message.source,
            destinations: message.ends(&tree).collect(),
            flits: length(&message),
        });
        let nonnull = messages.filter(|one| one.flits > 0 || collective == Collective::Broadcast);
        StaticPlan {
            operation: collective.name(),
            algorithm: algorithm.name().to_owned(),
            pes: tree.len(),
            messages: nonnull.collect(),
            bound_steps: algorithm.least_steps_of_list(task),
            played: Played::of_list(algorithm, task),
            ..StaticPlan::of(timetable)
        }
    }

    /// Creates the plan of the quickest of some algorithms, which were requested by name.
    pub fn quickest(
        all: Vec<Algorithm>,
        name: &str,
        task: &ListTask<'_>,
    ) -> anyhow::Result<StaticPlan> {
        let planned = match all[..] {
            [only] => only.list(task).map(|plan| (only, plan)),
            _ => quickest(all.into_iter(), task),
        };
        let (algorithm, plan) = planned.map_err(|why| not_planned(name, why))?;
        Ok(StaticPlan::listed(algorithm, task, plan))
    }

    /// Returns the plan as one in a complete network.
    pub fn among_all(self, network: Option<String>) -> StaticPlan {
        StaticPlan {
            ports: "shared",
            name: network.unwrap_or_default(),
            ..self
        }
    }

    /// Returns the plan as one over the edges of a tree.
    pub fn over(self, topology: &Topology, ports: Ports) -> StaticPlan {
        StaticPlan {
            ports: ports.name(),
            name: topology.name.clone(),
            edges: Some(edges_of(&topology.tree)),
            nodes: topology.nodes.clone(),
            pes: topology.tree.len(),
            ..self
        }
    }

    /// Returns the source of all messages, if they have the same one.
    pub fn source(&self) -> Option<PeId> {
        let mut sources = self.messages.iter().map(|message| message.source);
        let first = sources.next()?;
        sources.all(|source| source == first).then_some(first)
    }
}

/// Returns the step in which the last flit of a leg crosses.
pub fn last_step(hop: &ScheduledHop) -> u64 {
    hop.first_step + (hop.flits - 1) * hop.every
}

/// The state machines that run a plan in lock step, if there are any.
#[derive(Debug)]
pub enum Played {
    /// The state machines of an operation on a tree.
    ByAll {
        /// Rooted where the operation begins.
        tree: Arc<Tree>,
        /// The operation.
        operation: Algorithm,
        /// The flits of each message, by delivery.
        flits: Vec<u64>,
    },
    /// None, for this reason.
    ByNobody(String),
}

impl Played {
    /// Returns the state machines of a static schedule, if they send flit by flit.
    pub fn of_list(operation: Algorithm, task: &ListTask<'_>) -> Played {
        let collective = operation.collective();
        let block = match collective {
            _ if task.ports == cost::Ports::PerEdge => 1,
            Collective::Gossip => blocks::of_gossip(task.tree, task.flits),
            Collective::Exchange if is_for_trees(operation) => {
                blocks::of_exchange(task.tree, &task.rows())
            }
            _ => 1,
        };
        let all: u64 = task.flits.iter().sum();
        Played::by_ports(task.ports, || match collective {
            _ if operation.offer().kind == OfferKind::Planned => Played::default(),
            Collective::Broadcast if operation.is_static() && all > MOST_BLOCKS => {
                Played::ByNobody(format!(
                    "of more than {MOST_BLOCKS} flits several go together by {}, so the state machines do \
                     not play what is planned flit by flit: take a smaller --size",
                    operation.name()
                ))
            }
            _ if block > 1 => Played::ByNobody(format!(
                "a round of so many crossings has blocks of {block} flits, so the state machines do not \
                 run what is planned flit by flit: take shorter messages"
            )),
            _ => {
                let tree = task.tree.rerooted(task.source);
                let ids = (0..collective.deliveries(&tree) as u32).map(DeliveryId);
                let flits = ids.map(|id| match collective.delivered(&tree, id) {
                    Some((message, _)) => task.flits[message.id.index()],
                    None => 0,
                });
                Played::ByAll {
                    flits: flits.collect(),
                    tree: Arc::new(tree),
                    operation,
                }
            }
        })
    }

    /// Returns the state machines of a plan for single ports, or none for many ports.
    pub fn by_ports(ports: cost::Ports, single: impl FnOnce() -> Played) -> Played {
        match ports {
            cost::Ports::Single => single(),
            cost::Ports::PerEdge => Played::ByNobody(
                "in lock step a PE has one port to send and one to receive, so nothing plays a \
                 plan of --ports multi: leave out one of the two"
                    .to_owned(),
            ),
        }
    }
}

impl Default for Played {
    fn default() -> Played {
        Played::ByNobody("nothing plays this plan in lock step: leave it out".to_owned())
    }
}
