//! Networks by name and their spanning trees, compared with slow and simple computations.

use flitcast_proto::seeded::SplitMix64;
use flitcast_proto::{PeId, Tree};
use proptest::prelude::*;

use super::*;

fn spec(text: &str) -> NetworkSpec {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn network(text: &str) -> Network {
    spec(text).build().unwrap()
}

fn steps(text: &str, root: u32) -> u64 {
    let network = network(text);
    let spanning = broadcast(&network, root).unwrap();
    assert_spans(&network, root, &spanning);
    let steps = spanning.tree.token_broadcast().steps();
    assert!(steps >= broadcast_lower_bound(&network, root).unwrap());
    let by_breadth = bfs(&network, root).unwrap();
    assert!(steps <= by_breadth.tree.token_broadcast().steps());
    steps
}

/// Checks that the tree contains every node once, the root first and the others in order, and only
/// edges of the network.
fn assert_spans(network: &Network, root: u32, spanning: &Spanning) {
    let Spanning { tree, nodes } = spanning;
    assert_eq!(nodes[0], root);
    assert!(nodes[1..].is_sorted());
    let mut sorted = nodes.clone();
    sorted.sort();
    assert!(sorted.into_iter().eq(0..network.len() as u32));
    for pe in tree.pes() {
        if let Some(parent) = tree.parent(pe) {
            let neighbours = network.neighbours(nodes[pe.index()]);
            assert!(neighbours.contains(&nodes[parent.index()]), "{pe}");
        }
    }
}

/// Returns a random tree on up to `max` nodes with some further edges.
fn connected(max: usize) -> impl Strategy<Value = (Network, u32)> {
    (1..=max, 0usize..3 * max, any::<u64>()).prop_map(|(nodes, more, seed)| {
        let mut rng = SplitMix64::new(seed);
        let tree = (1..nodes as u64).map(|node| (node as u32, rng.below(node) as u32));
        let mut edges: Vec<(u32, u32)> = tree.collect();
        for _ in 0..more {
            let ends = [(); 2].map(|()| rng.below(nodes as u64) as u32);
            edges.extend((ends[0] != ends[1]).then_some((ends[0], ends[1])));
        }
        let root = rng.below(nodes as u64) as u32;
        (Network::from_edges(nodes, edges).unwrap(), root)
    })
}

/// Computes distances by relaxing every edge until nothing changes.
fn distances(network: &Network, root: u32) -> Vec<u32> {
    let mut distances = vec![u32::MAX; network.len()];
    distances[root as usize] = 0;
    loop {
        let before = distances.clone();
        for node in 0..network.len() as u32 {
            for &other in network.neighbours(node) {
                let by_it = distances[other as usize].saturating_add(1);
                distances[node as usize] = distances[node as usize].min(by_it);
            }
        }
        if before == distances {
            return distances;
        }
    }
}

/// Computes the minimum over all assignments of a neighbour as each node's parent.
fn least_steps(network: &Network, root: u32) -> u64 {
    let nodes = network.len() as u32;
    let mut choice = vec![0usize; nodes as usize];
    let mut least = u64::MAX;
    let pe = |node: u32| match node == root {
        true => PeId(0),
        false => PeId(node + u32::from(node < root)),
    };
    loop {
        let mut parents = vec![None; nodes as usize];
        for node in (0..nodes).filter(|&node| node != root) {
            let parent = network.neighbours(node)[choice[node as usize]];
            parents[pe(node).index()] = Some(pe(parent));
        }
        if let Ok(tree) = Tree::from_parents(parents) {
            least = least.min(tree.token_broadcast().steps());
        }
        let mut places = (0..nodes).filter(|&node| node != root);
        // The next choice, like the digits of a counter.
        let turned = places.any(|node| {
            let place = &mut choice[node as usize];
            *place = (*place + 1) % network.neighbours(node).len();
            *place > 0
        });
        if !turned {
            return least;
        }
    }
}

proptest! {
    #[test]
    fn bfs_takes_the_shortest_way_by_the_lowest_neighbour((network, root) in connected(40)) {
        let spanning = bfs(&network, root).unwrap();
        assert_spans(&network, root, &spanning);
        let distances = distances(&network, root);
        for pe in spanning.tree.pes() {
            let node = spanning.nodes[pe.index()];
            prop_assert_eq!(spanning.tree.depth(pe), distances[node as usize]);
            if let Some(parent) = spanning.tree.parent(pe) {
                let nearer = |&&n: &&u32| distances[n as usize] < distances[node as usize];
                let lowest = network.neighbours(node).iter().find(nearer);
                prop_assert_eq!(lowest, Some(&spanning.nodes[parent.index()]));
            }
        }
    }

    #[test]
    fn broadcast_spans_and_is_no_worse_than_bfs((network, root) in connected(80)) {
        let spanning = broadcast(&network, root).unwrap();
        assert_spans(&network, root, &spanning);
        let steps = spanning.tree.token_broadcast().steps();
        prop_assert!(1u128 << steps >= network.len() as u128);
        prop_assert!(steps >= u64::from(*distances(&network, root).iter().max().unwrap()));
        prop_assert!(steps >= broadcast_lower_bound(&network, root).unwrap());
        prop_assert!(steps <= bfs(&network, root).unwrap().tree.token_broadcast().steps());
        prop_assert_eq!(broadcast(&network, root).unwrap(), spanning);
    }

    #[test]
    fn broadcast_is_minimum_on_small_networks((network, root) in connected(7)) {
        let spanning = broadcast(&network, root).unwrap();
        prop_assert_eq!(spanning.tree.token_broadcast().steps(), least_steps(&network, root));
    }

    #[test]
    fn any_text_is_a_network_or_refused(text in "(mesh|torus|ring|debruijn|complete|edges|x)?[:x0-9]{0,12}") {
        if let Ok(spec) = text.parse::<NetworkSpec>() {
            prop_assert_eq!(spec.to_string().parse::<NetworkSpec>(), Ok(spec));
        }
    }
}

#[test]
fn known_minimum_broadcast_times() {
    for (nodes, least) in [(1, 0), (2, 1), (3, 2), (8, 3), (9, 4), (13, 4), (300, 9)] {
        assert_eq!(steps(&format!("complete:{nodes}"), nodes / 2), least);
    }
    for dimensions in 0..=10 {
        let text = format!("hypercube:{dimensions}");
        assert_eq!(steps(&text, 0), dimensions);
        assert_eq!(steps(&text, (1 << dimensions) - 1), dimensions);
    }
    for nodes in 3..20u64 {
        assert_eq!(steps(&format!("ring:{nodes}"), 2), nodes.div_ceil(2));
        assert_eq!(steps(&format!("mesh:{nodes}"), 0), nodes - 1);
    }
    // From a corner, the number of steps is the distance of the opposite corner.
    for (a, b) in [(2, 2), (3, 5), (4, 4), (7, 6), (20, 30), (100, 100)] {
        let text = format!("mesh:{a}x{b}");
        for corner in [0, b - 1, a * b - 1] {
            let took = steps(&text, corner as u32);
            assert_eq!(took, a + b - 2, "{text} from {corner}");
        }
    }
    // From an inner node, it is one more if two farthest nodes are equally far.
    assert_eq!(steps("mesh:4x4", 5), 4);
    assert_eq!(steps("mesh:4x5", 2), 6);
    for (side, least) in [(4, 4), (5, 5), (8, 8), (9, 9), (20, 20)] {
        assert_eq!(steps(&format!("torus:{side}x{side}"), 3), least);
    }
    for (text, root, least) in [("debruijn:2:4", 9, 4), ("debruijn:2:5", 0, 6)] {
        assert_eq!(steps(text, root), least); // The lower bound.
    }
}

#[test]
fn large_networks_take_a_bounded_effort() {
    assert_eq!(steps("ring:100000", 7), 50_000);
    assert_eq!(steps("mesh:100000", 0), 99_999);
    assert_eq!(steps("complete:2000", 0), 11);
    assert!(steps("debruijn:2:12", 0) <= 17);
    // The hub should call few of the rim itself; by distance alone, it would have to call all.
    let rim = 5000;
    let spokes = (1..=rim).map(|node| (0, node));
    let wheel = spokes.chain((1..rim).map(|node| (node, node + 1)));
    let wheel = Network::from_edges(rim as usize + 1, wheel).unwrap();
    let spanning = broadcast(&wheel, 0).unwrap();
    assert_spans(&wheel, 0, &spanning);
    assert!(spanning.tree.token_broadcast().steps() < 150);
}

/// Checks the numbers of nodes and edges, and the neighbours of one node.
#[track_caller]
fn shape(text: &str, nodes: usize, edges: usize, of: u32, neighbours: &[u32]) {
    let network = network(text);
    assert_eq!((network.len(), network.edges()), (nodes, edges), "{text}");
    assert_eq!(network.neighbours(of), neighbours, "{text}");
    assert_eq!(spec(text).to_string(), text);
}

#[test]
fn named_networks() {
    shape("mesh:1", 1, 0, 0, &[]);
    shape("mesh:5", 5, 4, 2, &[1, 3]);
    shape("mesh:4x3", 12, 17, 4, &[1, 3, 5, 7]);
    shape("mesh:4x4x2", 32, 64, 0, &[1, 2, 8]);
    shape("torus:4x4", 16, 32, 0, &[1, 3, 4, 12]);
    assert_eq!(spec("array:5"), spec("mesh:5"));
    // No loops and double edges occur if a side is short.
    shape("torus:1x2x3", 6, 9, 0, &[1, 2, 3]);
    shape("ring:1", 1, 0, 0, &[]);
    shape("ring:2", 2, 1, 0, &[1]);
    shape("ring:8", 8, 8, 0, &[1, 7]);
    shape("hypercube:0", 1, 0, 0, &[]);
    shape("hypercube:4", 16, 32, 5, &[1, 4, 7, 13]);
    // 000 and 111 lose their loops; 010 and 101 are connected twice.
    shape("debruijn:2:3", 8, 13, 2, &[1, 4, 5]);
    shape("debruijn:3:1", 3, 3, 0, &[1, 2]);
    shape("complete:8", 8, 28, 3, &[0, 1, 2, 4, 5, 6, 7]);
    let of_edges = [(4, 1), (1, 4), (1, 4), (1, 0)];
    let network = Network::from_edges(6, of_edges).unwrap();
    assert_eq!((network.len(), network.edges()), (6, 2));
    assert_eq!(network.neighbours(1), [0, 4]);
    assert_eq!(network.neighbours(5), []);
    for of_maximum_size in "hypercube:20 torus:1024x1024 debruijn:2:20 complete:5793".split(' ') {
        spec(of_maximum_size);
    }
    let in_file = spec("edges:some/file").build().unwrap_err();
    assert!(in_file.to_string().contains("some/file"));
}

#[test]
fn edges_that_make_no_network() {
    let message = |nodes, edge| Network::from_edges(nodes, [edge]).unwrap_err().to_string();
    let beyond = "edge 1 3: there is no node 3 (the last one is 2)";
    assert_eq!(message(3, (1, 3)), beyond);
    assert!(message(3, (1, 1)).contains("connects node 1 to itself"));
    assert!(message(0, (0, 1)).contains("no node"));
    let endless = std::iter::repeat((0, 1));
    let error = Network::from_edges(2, endless).unwrap_err().to_string();
    assert!(error.contains("more than the 16777216"), "{error}");
}

#[test]
fn unreachable_nodes_are_named() {
    let message = |nodes, edges: &[(u32, u32)], root| {
        let network = Network::from_edges(nodes, edges.iter().copied()).unwrap();
        let error = broadcast(&network, root).unwrap_err();
        assert_eq!(bfs(&network, root), Err(error.clone()));
        error.to_string()
    };
    let cut = "the network is not connected: ";
    let of_many = "nodes 1, 2, 3, 4, 5, 6, 7, 8 and 991 more cannot be reached from node 0";
    for (nodes, edges, root, expected) in [
        (
            4,
            &[(0, 1), (2, 3)][..],
            1,
            "nodes 2, 3 cannot be reached from node 1",
        ),
        (2, &[], 1, "node 0 cannot be reached from node 1"),
        (1000, &[], 0, of_many),
    ] {
        assert_eq!(message(nodes, edges, root), format!("{cut}{expected}"));
    }
    let no_root = "root 2: there is no such node (the last one is 1)";
    assert_eq!(message(2, &[(0, 1)], 2), no_root);
}
