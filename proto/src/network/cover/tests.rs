use super::*;

fn covered(spec: &str, root: u32) -> Cover {
    let spec: NetworkSpec = spec.parse().unwrap();
    let network = spec.build().unwrap();
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
    assert_eq!(
        cover.trees.len(),
        ways.min().unwrap_or(1),
        "{spec} from {root}"
    );
    cover
}

#[test]
fn every_rule_covers_from_every_root() {
    for (spec, nodes) in [
        ("ring:5", 5),
        ("torus:3x4", 12),
        ("torus:3x1x5", 15),
        ("torus:2x3", 6),
        ("torus:3x3x3", 27),
        ("mesh:4x3", 12),
        ("mesh:2x2x3", 12),
        ("mesh:1x5", 5),
        ("hypercube:1", 2),
        ("hypercube:4", 16),
        ("debruijn:2:2", 4),
        ("debruijn:2:4", 16),
        ("debruijn:2:5", 32),
        ("debruijn:3:2", 9),
        ("complete:5", 5),
    ] {
        for root in 0..nodes {
            covered(spec, root);
        }
    }
}

#[test]
fn a_lone_node_and_an_edge_have_a_tree() {
    for spec in [
        "mesh:1",
        "complete:1",
        "hypercube:0",
        "ring:2",
        "complete:2",
    ] {
        assert_eq!(covered(spec, 0).trees.len(), 1, "{spec}");
    }
}

#[test]
fn what_cannot_be_searched_is_refused() {
    let spec: NetworkSpec = "complete:100".parse().unwrap();
    let fault = cover(&spec.build().unwrap(), Some(&spec), 0).unwrap_err();
    let (edges, most) = (4950, 1000);
    assert_eq!(fault, CoverError::TooLarge { edges, most });
}
