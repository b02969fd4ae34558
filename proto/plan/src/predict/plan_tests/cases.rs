//! Rounds of every algorithm, each with its plan. An algorithm without a case does not compile or fails
//! the test.

use std::sync::Arc;

use flitcast_proto::Tree;
use flitcast_proto::ops::Collective;

use crate::algorithms::plan::plan;
use crate::algorithms::{Algorithm, ListTask, OnNetwork, TreeRequirement};
use crate::baseline::{BaselineModel, Transfer, adaptive_tree, after_token, binomial_tree};
use crate::cost::Ports;
use crate::gossip::{CompleteGossip, Gossip as OfNetwork, GossipAlgorithm};
use crate::on_links::{Sent, of_gossip, of_hops, of_transfers};
use crate::tests::{arena, tree, with_root};
use crate::timing::Timing;

/// The crossings of a plan; the order of some depends on the links.
type Planned = Box<dyn Fn(&Timing) -> Vec<Sent>>;

/// A round and its plan.
pub struct Case {
    pub name: String,
    pub tree: Arc<Tree>,
    pub operation: Algorithm,
    /// Flits by delivery.
    pub flits: Vec<u64>,
    pub planned: Planned,
    /// Whether each neighbour has its own link.
    pub multi: bool,
}

impl Case {
    /// Creates a case of crossings; `lengths` are those of all messages of the operation.
    fn new(
        name: impl Into<String>,
        tree: &Arc<Tree>,
        operation: Algorithm,
        lengths: &[u64],
        planned: Vec<Sent>,
    ) -> Case {
        Case {
            name: format!("{} {}", operation.collective().name(), name.into()),
            tree: tree.clone(),
            operation,
            flits: operation.collective().by_delivery(tree, lengths),
            planned: Box::new(move |_| planned.clone()),
            multi: false,
        }
    }

    fn multi(mut self) -> Case {
        self.name += " multi";
        self.multi = true;
        self
    }
}

/// Equal lengths, and some that are not.
fn lengths(count: usize) -> [Vec<u64>; 2] {
    let uneven = [2, 0, 1, 3, 1, 1, 4].into_iter().cycle();
    [vec![1; count], uneven.take(count).collect()]
}

/// Returns rounds of a scatter or a gather between P0 and all others with the plan of the table.
fn to_or_from_root(operation: Algorithm, specs: &[&str]) -> Vec<Case> {
    let of_tree = |spec: &&str| {
        let tree = tree(spec);
        lengths(tree.len() - 1).map(|lengths| {
            let flits = operation.collective().by_delivery(&tree, &lengths);
            let plan = plan(&tree, operation, &flits);
            let names = [Some(operation.name()), operation.sync()];
            let name = format!("{names:?} {spec} {lengths:?}");
            Case {
                planned: Box::new(move |timing| plan.on_links(timing)),
                ..Case::new(name, &tree, operation, &lengths, Vec::new())
            }
        })
    };
    specs.iter().flat_map(of_tree).collect()
}

/// Returns rounds of a baseline on its own tree.
fn baseline(
    operation: Algorithm,
    baseline: BaselineModel,
    lay: impl Fn(&[u64]) -> Tree,
    transfers: fn(BaselineModel, &Tree, &[u64]) -> Vec<Transfer>,
) -> Vec<Case> {
    let of_size = |pes: usize| {
        let lengths = vec![1; pes - 1];
        let flits = with_root(&lengths);
        let tree = Arc::new(lay(&flits));
        let planned = of_transfers(&transfers(baseline, &tree, &flits));
        let name = format!("{baseline:?} of {pes}");
        Case::new(name, &tree, operation, &lengths, planned)
    };
    [6, 8, 13].map(of_size).into()
}

fn combining(
    operation: Algorithm,
    transfers: fn(BaselineModel, &Tree, &[u64]) -> Vec<Transfer>,
) -> Vec<Case> {
    let binomial = |flits: &[u64]| binomial_tree(flits.len());
    all([
        baseline(operation, BaselineModel::Binomial, binomial, transfers),
        baseline(operation, BaselineModel::Adaptive, adaptive_tree, transfers),
    ])
}

fn all(cases: impl IntoIterator<Item: IntoIterator<Item = Case>>) -> Vec<Case> {
    cases.into_iter().flatten().collect()
}

/// Returns rounds of an algorithm with a static schedule in lock step, by all ports that it can use.
fn listed(operation: Algorithm, specs: &[&str]) -> Vec<Case> {
    // For `at-once` no order is planned.
    let planner = match operation == Algorithm::EXCHANGE_AT_ONCE {
        true => Algorithm::EXCHANGE_SHIFTS,
        false => operation,
    };
    let all_ports = match operation.has_all_ports() {
        true => &[Ports::Single, Ports::PerEdge][..],
        false => &[Ports::Single],
    };
    let mut cases = Vec::new();
    for spec in specs {
        let tree = tree(spec);
        let pes = tree.len();
        let rounds = match operation.collective() {
            Collective::Broadcast => [1, 4, 7].map(|flits| vec![flits]).to_vec(),
            Collective::Gossip => lengths(pes).to_vec(),
            _ => {
                let mut matrices = lengths(pes * pes);
                for matrix in &mut matrices {
                    (0..pes).for_each(|pe| matrix[pe * pes + pe] = 0);
                }
                matrices.to_vec()
            }
        };
        let of_round = |flits| all_ports.iter().map(move |ports| (flits, *ports));
        for (flits, ports) in rounds.iter().flat_map(of_round) {
            let messages = match operation.collective() {
                Collective::Broadcast => flits.repeat(pes - 1),
                _ => flits.clone(),
            };
            let name = format!("{operation:?} {spec} {flits:?}");
            let case = Case::new(name, &tree, operation, &messages, Vec::new());
            let (tree, flits) = (tree.clone(), flits.clone());
            let planned = move |timing: &Timing| {
                let task = ListTask {
                    setup_flits: timing.setup_flits,
                    ..ListTask::new(&tree, tree.root(), &flits, ports)
                };
                let mut hops = planner.list(&task).expect("a plan").hops;
                hops.sort_by_key(|hop| hop.first_step);
                of_hops(&hops, false)
            };
            let case = Case {
                planned: Box::new(planned),
                ..case
            };
            cases.push(if ports == Ports::PerEdge {
                case.multi()
            } else {
                case
            });
        }
    }
    cases
}

/// Returns gossips by an operation of the table that has the plan of this algorithm for networks.
fn of_network(operation: Option<Algorithm>, network: &str, algorithm: &str) -> Vec<Case> {
    let arena = arena(network);
    let pes = arena.pes();
    let algorithm: GossipAlgorithm = algorithm.parse().expect("an algorithm");
    // The schedules of the table cut a packet through.
    let are_whole = operation.is_none();
    let one = || OnNetwork::new(arena.clone(), algorithm.clone()).expect("it suits");
    let operation = operation.unwrap_or_else(|| Algorithm::gossip_on(one()));
    let tree = tree(&format!("star:{pes}"));
    let has_own_links = arena.grid().is_some();
    // Blocks are cut by the dimensions and in halves: 6 flits can be.
    let [alike, unlike] = lengths(pes);
    let alike: Vec<u64> = alike.iter().map(|flits| 6 * flits).collect();
    let of_lengths = |lengths: Vec<u64>| {
        let plan = OfNetwork::new(arena.clone(), &lengths, &algorithm).expect("it suits");
        let name = format!("{network} {algorithm} {lengths:?}");
        let planned = of_gossip(&plan, are_whole);
        let case = Case::new(name, &tree, operation, &lengths, planned);
        if has_own_links { case.multi() } else { case }
    };
    [alike, unlike].map(of_lengths).into()
}

/// Networks with gossips of each kind on them.
const ON_NETWORKS: [(&str, &str); 12] = [
    ("ring:9", "approach1 approach2 circgos:3,3,1 halves"),
    ("ring:8", "approach1"),
    ("ring:27", "approach1 approach2 circgos:9,3,1 circgos:3,3,2"),
    ("array:9", "approach1 approach2 circgos:3,3,1"),
    (
        "torus:3x3",
        "approach1 approach2 torgos:3;; cubgos phases:1,3,1/1,3,1",
    ),
    ("torus:3x3x3", "approach1 cubgos"),
    ("torus:9x9", "torgos:3;3;1"),
    ("mesh:3x3", "phases:1,3,1/1,3,1"),
    ("mesh:4x4", "approach1 approach2"),
    ("complete:8", "approach1 dissemination"),
    ("complete:9", "dissemination dissemination:2"),
    ("complete:8", "circulate neighbour direct"),
];

/// Returns the number of an algorithm's kind, below [`KINDS`].
fn kind(algorithm: &GossipAlgorithm) -> usize {
    match algorithm {
        GossipAlgorithm::Approach1 => 0,
        GossipAlgorithm::Approach2(_) => 1,
        GossipAlgorithm::Circgos(_) => 2,
        GossipAlgorithm::Torgos(_) => 3,
        GossipAlgorithm::Cubgos => 4,
        GossipAlgorithm::Phases(_) => 5,
        GossipAlgorithm::Halves => 6,
        GossipAlgorithm::Among(CompleteGossip::Dissemination { .. }) => 7,
        GossipAlgorithm::Among(CompleteGossip::Circulate) => 8,
        GossipAlgorithm::Among(CompleteGossip::Neighbour) => 9,
        GossipAlgorithm::Among(CompleteGossip::Direct) => 10,
        // The name of approach 1 on a complete network.
        GossipAlgorithm::Among(CompleteGossip::CirculateBothWays) => 0,
    }
}
const KINDS: usize = 11;

/// Returns the rounds of an algorithm with the crossings of their plans.
pub fn cases(operation: Algorithm) -> Vec<Case> {
    let trees = ["path:6", "kary:2:7", "star:6", "random:9:2"];
    match (operation.collective(), operation.name()) {
        (Collective::Scatter, "fdf" | "listed") => to_or_from_root(operation, &trees),
        (Collective::Gather, "shoulder-tap") => {
            to_or_from_root(operation, &["path:2", "path:6", "path:9"])
        }
        (Collective::Gather, "orders") => {
            to_or_from_root(operation, &["star:2", "star:6", "star:9"])
        }
        // The time of the last one in steps is not planned.
        (Collective::Gather, "certification") if operation.has_plan() => {
            to_or_from_root(operation, &trees)
        }
        (Collective::Gather, "certification") => Vec::new(),
        (Collective::Gather, "linear") => {
            let star = |flits: &[u64]| (*tree(&format!("star:{}", flits.len()))).clone();
            let window = |window| {
                let operation = Algorithm::linear_gather(window);
                let of_window = BaselineModel::Window(window as usize);
                baseline(operation, of_window, star, BaselineModel::gather)
            };
            all([1, 4].map(window))
        }
        (Collective::Gather, "combining") => combining(operation, |baseline, tree, flits| {
            after_token(tree, baseline.gather(tree, flits))
        }),
        (Collective::Scatter, "combining") => combining(operation, BaselineModel::scatter),
        (Collective::Broadcast, _) if operation.fits() == TreeRequirement::Cubes => {
            listed(operation, &["path:8", "path:16"])
        }
        (Collective::Broadcast, _) => {
            listed(operation, &[&trees[..], &["path:8", "kary:2:8"]].concat())
        }
        (Collective::Gossip, "flood") => listed(operation, &["path:5", "kary:2:7", "random:8:4"]),
        (Collective::Gossip, "on-network") => {
            let each = |(network, names): (&'static str, &'static str)| {
                names.split(' ').map(move |name| (network, name))
            };
            let each: Vec<_> = ON_NETWORKS.into_iter().flat_map(each).collect();
            let seen = each
                .iter()
                .map(|(_, name)| kind(&name.parse().expect("a name")));
            let seen: Vec<usize> = seen.collect();
            assert!((0..KINDS).all(|kind| seen.contains(&kind)), "{seen:?}");
            all(each
                .into_iter()
                .map(|(network, name)| of_network(None, network, name)))
        }
        (Collective::Gossip, on_complete) => {
            let one = |network| of_network(Some(operation), network, on_complete);
            all(["complete:8", "complete:9"].map(one))
        }
        (Collective::Exchange, _) => listed(operation, &["star:5", "star:8", "kary:2:7"]),
        other => panic!("an algorithm without a case: {other:?}"),
    }
}
