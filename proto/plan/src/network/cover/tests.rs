use super::*;
use crate::tests::network;

fn covered(spec: &str, root: u32) -> Cover {
    let (spec, network) = network(spec);
    let cover = cover(&network, Some(&spec), root).unwrap();
    let parents = cover.trees.iter().map(|tree| {
        let mut parents = vec![root; network.len()];
        for pe in tree.pes() {
            if let Some(parent) = tree.parent(pe) {
                parents[cover.nodes[pe.index()] as usize] = cover.nodes[parent.index()];
            }
        }
        parents
    });
    let parents = parents.collect();
    assert!(is_cover(&network, root, &parents), "{spec} from {root}");
    // The number of trees is that of Edmonds' theorem; a de Bruijn network has two.
    let ways = ways_to_all(&network, root)
        .into_iter()
        .filter(|ways| *ways > 0);
    let most = ways.min().unwrap_or(1);
    assert_eq!(cover.trees.len(), most, "{spec} from {root}");
    cover
}

#[test]
fn every_rule_covers_from_every_root() {
    let grids = "ring:5 torus:3x4 torus:3x1x5 torus:2x3 torus:3x3x3 mesh:4x3 mesh:2x2x3 mesh:1x5";
    let others =
        "hypercube:1 hypercube:4 debruijn:2:2 debruijn:2:4 debruijn:2:5 debruijn:3:2 complete:5";
    for spec in grids.split(' ').chain(others.split(' ')) {
        let nodes = covered(spec, 0).nodes.len() as u32;
        for root in 1..nodes {
            covered(spec, root);
        }
    }
}

#[test]
fn a_lone_node_and_an_edge_have_a_tree() {
    for spec in "mesh:1 complete:1 hypercube:0 ring:2 complete:2".split(' ') {
        assert_eq!(covered(spec, 0).trees.len(), 1, "{spec}");
    }
}

#[test]
fn what_cannot_be_searched_is_refused() {
    let (spec, network) = network("complete:100");
    let fault = cover(&network, Some(&spec), 0).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "a cover of a network without a rule of its own is computed for at most 1000 edges, and \
         this one has 4950"
    );
}

/// Two trees of 15 edges each cannot be apart in a mesh of 24: those of a cover share edges, as the
/// paper's second technique permits, each in opposite directions, so that their traffic never meets.
#[test]
fn trees_of_a_cover_share_edges_in_opposite_directions() {
    let Cover { trees, .. } = covered("mesh:4x4", 0);
    let [one, other] = &trees[..] else {
        panic!("two ways lead to a corner");
    };
    let [one, other] = [one, other].map(|tree| {
        let edges = tree.below_root().map(|pe| (tree.parent(pe).unwrap(), pe));
        edges.collect::<Vec<_>>()
    });
    let back = other.iter().map(|(parent, pe)| (*pe, *parent));
    let shared = back.filter(|edge| one.contains(edge)).count();
    assert!(shared >= 6, "{shared}");
    assert!(one.iter().all(|edge| !other.contains(edge)));
}

#[test]
fn a_port_that_leads_nowhere_else_has_no_tree() {
    let (_, network) = network("mesh:1x3");
    let fault = tree_for_each_port(&network, 1).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "without node 1, node 0 does not reach all others, so there is no tree for each port of \
         the root"
    );
    assert_eq!(tree_for_each_port(&network, 0).unwrap().trees.len(), 1);
}
