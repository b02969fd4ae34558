//! The state machines that can run a plan in lock step.

use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::{ListTask, MOST_BLOCKS, OfferKind, blocks};
use flitcast_plan::cost::Ports;
use flitcast_proto::ops::Collective;
use flitcast_proto::{DeliveryId, Tree};

use flitcast_cluster::options::values::is_for_trees;

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
            _ if task.ports == Ports::PerEdge => 1,
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
                    operation.algorithm()
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
    pub fn by_ports(ports: Ports, single: impl FnOnce() -> Played) -> Played {
        match ports {
            Ports::Single => single(),
            Ports::PerEdge => Played::ByNobody(
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
