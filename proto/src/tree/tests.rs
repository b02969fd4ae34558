//! Computations on trees, compared with slow and simple ones.

use proptest::prelude::*;

use super::*;

pub(super) fn spec(text: &str) -> Tree {
    text.parse::<TreeSpec>().unwrap().build().unwrap()
}

pub(super) fn ids<const N: usize>(indices: [u32; N]) -> [PeId; N] {
    indices.map(PeId)
}

fn faults<const N: usize>(parents: [i64; N]) -> Vec<TreeError> {
    let parents = parents.map(|p| u32::try_from(p).ok().map(PeId));
    Tree::from_parents(parents.to_vec()).unwrap_err().0
}

/// Returns random trees, renamed so that the numbers do not grow with depth.
fn any_tree() -> impl Strategy<Value = Tree> {
    (1usize..60, any::<u64>()).prop_map(|(pes, seed)| {
        let tree = TreeSpec::Random { pes, seed }.build().unwrap();
        let mut rng = crate::seeded::SplitMix64::new(!seed);
        let mut name: Vec<u32> = (0..pes as u32).collect();
        for i in (2..pes).rev() {
            name.swap(i, 1 + rng.below(i as u64) as usize);
        }
        let mut parents = vec![None; pes];
        for pe in tree.pes() {
            let parent = tree.parent(pe).map(|p| PeId(name[p.index()]));
            parents[name[pe.index()] as usize] = parent;
        }
        Tree::from_parents(parents).unwrap()
    })
}

proptest! {
    #[test]
    fn parents_children_and_depths_agree(tree in any_tree()) {
        let mut children = 0;
        for pe in tree.pes() {
            prop_assert_eq!(tree.depth(pe) as usize, tree.up_from(pe).count() - 1);
            prop_assert!(tree.children(pe).is_sorted());
            for &child in tree.children(pe) {
                prop_assert_eq!(tree.parent(child), Some(pe));
                children += 1;
            }
        }
        prop_assert_eq!(children, tree.len() - 1);
    }

    #[test]
    fn top_down_is_level_by_level_over_all(tree in any_tree()) {
        let depths: Vec<u32> = tree.top_down().iter().map(|&pe| tree.depth(pe)).collect();
        prop_assert!(depths.is_sorted());
        let mut sorted = tree.top_down().to_vec();
        sorted.sort();
        prop_assert!(sorted.into_iter().eq(tree.pes()));
    }

    #[test]
    fn child_toward_is_the_ancestor_just_below(tree in any_tree()) {
        for from in tree.pes() {
            for to in tree.pes() {
                let way: Vec<PeId> = tree.up_from(to).collect();
                let expected = match way.iter().position(|&pe| pe == from) {
                    Some(place) if place > 0 => Some(way[place - 1]),
                    _ => None,
                };
                prop_assert_eq!(tree.child_toward(from, to), expected);
            }
        }
    }

    #[test]
    fn subtree_sums_add_what_lies_below(tree in any_tree()) {
        let weight = |pe: PeId| u64::from(pe.0) * 3 + 1;
        let sums = tree.subtree_sums(weight);
        for pe in tree.pes() {
            let below = tree.pes().filter(|&q| tree.way_to(q).contains(&pe));
            prop_assert_eq!(sums[pe.index()], below.map(weight).sum::<u64>());
        }
    }

    #[test]
    fn the_token_reaches_all_in_b_steps(tree in any_tree()) {
        let token = tree.token_broadcast();
        let mut last = 0;
        for pe in tree.pes() {
            let step = token.received_step(pe);
            let mut order = token.order(pe).to_vec();
            prop_assert!(order.is_sorted_by_key(|&c| (std::cmp::Reverse(token.b(c)), c)));
            for (k, &child) in order.iter().enumerate() {
                prop_assert_eq!(token.received_step(child), step + k as u64 + 1);
            }
            order.sort();
            prop_assert_eq!(&order[..], tree.children(pe));
            last = last.max(step);
        }
        prop_assert_eq!(last, token.steps());
        // No broadcast more than doubles the informed PEs per step, and none is slower than one PE
        // per step.
        prop_assert!(token.steps() < tree.len() as u64);
        prop_assert!(1u64 << token.steps() >= tree.len() as u64);
    }

    #[test]
    fn any_list_of_parents_is_a_tree_or_named_faults(
        parents in prop::collection::vec(prop::option::weighted(0.9, 0u32..12), 0..10)
    ) {
        let parents: Vec<_> = parents.into_iter().map(|p| p.map(PeId)).collect();
        let reaches_root = |start: usize| {
            let mut pe = start;
            for _ in 0..=parents.len() {
                match parents[pe] {
                    None => return pe == 0,
                    Some(parent) if parent.index() >= parents.len() => return false,
                    Some(parent) => pe = parent.index(),
                }
            }
            false
        };
        let good = !parents.is_empty() && (0..parents.len()).all(reaches_root);
        match Tree::from_parents(parents.clone()) {
            Ok(_) => prop_assert!(good),
            Err(faults) => {
                prop_assert!(!good && !faults.0.is_empty());
                prop_assert_eq!(faults.to_string().lines().count(), faults.0.len());
            }
        }
    }

    #[test]
    fn a_spec_reads_back(pes in 1usize..=MAX_PES, arity in 1usize..9, seed: u64) {
        let list = vec![PeId(0), PeId(seed as u32)];
        for spec in [
            TreeSpec::Path(pes),
            TreeSpec::Star(pes),
            TreeSpec::Kary { arity, pes },
            TreeSpec::Binomial(pes),
            TreeSpec::Random { pes, seed },
            TreeSpec::Parents(list),
            TreeSpec::File("a:b/c.toml".into()),
        ] {
            prop_assert_eq!(spec.to_string().parse(), Ok(spec));
        }
    }
}

#[test]
fn shapes_are_what_they_are_called() {
    let parents = |text: &str| -> Vec<u32> {
        let tree = spec(text);
        let parents = tree.pes().filter_map(|pe| tree.parent(pe));
        parents.map(|parent| parent.0).collect()
    };
    assert_eq!(parents("path:5"), [0, 1, 2, 3]);
    assert_eq!(parents("star:4"), [0, 0, 0]);
    assert_eq!(parents("kary:2:7"), [0, 0, 1, 1, 2, 2]);
    assert_eq!(parents("kary:1:4"), [0, 1, 2]);
    assert_eq!(parents("binomial:8"), [0, 0, 2, 0, 4, 4, 6]);
    assert_eq!(parents("binomial:6"), [0, 0, 2, 0, 4]);
    assert_eq!(parents("parents:P0, 0,p1"), [0, 0, 1]);
    assert_eq!(parents("path:1"), []);
    // Pinned: a seed always gives the same tree.
    assert_eq!(parents("random:10:1"), [0, 1, 2, 1, 2, 4, 6, 4, 2]);
    // A path is a path whatever its labels.
    for text in ["path:9", "path:1", "parents:3,0,2"] {
        assert!(spec(text).is_path(), "{text}");
    }
    for text in ["star:3", "random:50:3"] {
        assert!(!spec(text).is_path(), "{text}");
    }
}

#[test]
fn broadcasts_with_a_closed_form() {
    let steps = |text: String| spec(&text).token_broadcast().steps();
    for pes in [1u64, 2, 7, 100] {
        assert_eq!(steps(format!("star:{pes}")), pes - 1);
        assert_eq!(steps(format!("path:{pes}")), pes - 1);
    }
    for k in 0..=10 {
        assert_eq!(steps(format!("binomial:{}", 1 << k)), k);
    }
    // P1 is a leaf, P2 has two PEs below it: P2 goes first, and PEs with equal b go by index.
    let tree = spec("parents:0,0,2,2,0");
    let token = tree.token_broadcast();
    assert_eq!(token.order(PeId(0)), ids([2, 1, 5]));
    assert_eq!(token.order(PeId(2)), ids([3, 4]));
    assert_eq!((token.b(PeId(0)), token.b(PeId(2))), (3, 2));
    assert_eq!(token.received_step(PeId(4)), 3);
}

#[test]
fn a_million_pes_deep_and_wide() {
    for text in ["path:1000000", "star:1000000", "random:1000000:5"] {
        let tree = spec(text);
        assert_eq!(tree.subtree_sums(|_| 1)[0], 1_000_000);
        assert!(tree.token_broadcast().steps() > 0);
        assert!(tree.child_toward(PeId(0), PeId(999_999)).is_some());
    }
}

#[test]
fn every_fault_is_found_at_once() {
    // P1 has an unknown parent, P2 is its own, P3 has none, P4 -> P5 -> P6 -> P4, and P7 and P8 are
    // below.
    let found = faults([-1, 99, 2, -1, 5, 6, 4, 8, 5, 1]);
    let (pe, parent, last) = (PeId(1), PeId(99), PeId(9));
    let pes = ids([4, 5, 6]).to_vec();
    let below = ids([7, 8]).to_vec();
    let expected = [
        TreeError::UnknownParent { pe, parent, last },
        TreeError::SelfParent(PeId(2)),
        TreeError::SeveralRoots(PeId(3)),
        TreeError::Cycle { pes, below },
    ];
    assert_eq!(found, expected);
    assert_eq!(
        TreeErrors(found).to_string(),
        "P1: parent P99 does not exist (the last PE is P9)\n\
         P2 is its own parent\n\
         several roots: P3 has no parent, and only P0 may have none\n\
         cycle: P4 -> P5 -> P6 -> P4 (each names the next as its parent); P7, P8 hang below it"
    );
}

#[test]
fn the_root_must_be_p0_and_alone() {
    let one = PeId(1);
    let both = [TreeError::RootHasParent(one), TreeError::SeveralRoots(one)];
    assert_eq!(faults([1, 0]), [TreeError::NoRoot(one)]);
    assert_eq!(faults([1, -1]), both);
    assert_eq!(faults([]), [TreeError::NoPes]);
    let many = Tree::from_parents(vec![None; MAX_PES + 1]);
    assert_eq!(many, Err(TreeError::TooManyPes(MAX_PES + 1).into()));
}

#[test]
fn a_long_cycle_stays_one_readable_line() {
    let mut parents: Vec<_> = (0..1000u32).map(|i| Some(PeId(i - i.min(1)))).collect();
    parents[0] = None;
    parents[1] = Some(PeId(500));
    let message = Tree::from_parents(parents).unwrap_err().to_string();
    assert!(message.contains("(492 more) -> P1 "), "{message}");
    let below = "P508 and 491 more hang below it";
    assert!(message.contains(below), "{message}");
}

#[test]
fn the_error_of_a_bad_spec_gives_the_valid_form() {
    let message = |text: &str| text.parse::<TreeSpec>().unwrap_err().to_string();
    for given in ["0", "x", "", "+3", "-1", "1048577"] {
        let why = format!("path:N: N must be a whole number from 1 to 1048576, not `{given}`");
        assert_eq!(message(&format!("path:{given}")), why);
    }
    assert!(message("kary:0:5").contains("K must be a whole number from 1"));
    assert!(message("star:99999999999999999999").contains("N must be"));
    assert!(message("random:5:-1").contains("SEED must be a whole number from 0 to 1844674407"));
    for text in ["path", "path:3:4", "kary:3", "random:5", "file:", "file"] {
        assert!(message(text).contains("does not have the form"), "{text}");
    }
    assert!(message("binomal:8").contains("(did you mean `binomial`?); the shapes are path:N, "));
    assert!(message("Star:8").contains("did you mean `star`?"));
    assert!(!message("hypercube:8").contains("did you mean"));
    assert!(message("my/tree.toml").contains("write file:my/tree.toml"));
    assert!(message("parents:").contains("use path:1"));
    assert!(message("parents:0,,1").contains("the parent of P2 must be an index"));
    assert!(message("parents:0,4294967296").contains("the parent of P2 must be an index"));
    let file: TreeSpec = "file:t.toml".parse().unwrap();
    assert!(file.build().unwrap_err().to_string().contains("t.toml"));
}
