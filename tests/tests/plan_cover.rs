//! Plans over covers, trees that share no arc, replayed flit by flit.

use flitcast_tests::run;

use super::replay::{list, number, planned_of, replay};

/// Scatters of 8 flits to each PE by each deal, the gather of the striped ones, the broadcast of 60
/// flits.
#[test]
fn covers_take_what_the_table_says() {
    for (network, trees, expected) in [
        ("mesh:4x4", 2, [64, 60, 60, 78, 35]),
        ("mesh:4x4 --root 5", 2, [40, 36, 39, 48, 33]),
        ("torus:4x4", 4, [33, 30, 30, 48, 20]),
        ("hypercube:6", 6, [88, 85, 84, 106, 16]),
        ("debruijn:2:4", 2, [64, 60, 60, 72, 33]),
        ("debruijn:2:4 --root 5", 2, [48, 60, 44, 75, 34]),
        ("debruijn:3:3 --root 5", 4, [40, 52, 36, 70, 20]),
    ] {
        let cover = format!("--network {network} --cover");
        let deals = ["whole", "striped", "levelled"];
        let scatters = deals.map(|deal| {
            let plan = planned_of(
                "scatter",
                &format!("{cover} --lengths equal:8 --deal {deal}"),
            );
            assert_eq!(list(&plan, "trees").len(), trees, "{network}");
            replay(&plan)
        });
        let gather = format!("{cover} --lengths equal:8 --deal striped");
        let gather = replay(&planned_of("gather", &gather));
        let broadcast = replay(&planned_of("broadcast", &format!("{cover} --size 60")));
        let [whole, striped, levelled] = scatters;
        let found = [whole, striped, levelled, gather, broadcast];
        assert_eq!(found, expected, "{network}");
        let best = planned_of("scatter", &format!("{cover} --lengths equal:8"));
        assert_eq!(replay(&best), *scatters.iter().min().unwrap(), "{network}");
    }
}

#[test]
fn unequal_lengths_keep_the_rules() {
    for (seed, network) in [
        "ring:7",
        "mesh:3x4 --root 4",
        "torus:3x4 --root 7",
        "torus:2x5",
        "hypercube:3 --root 6",
        "debruijn:2:3 --root 3",
        "complete:6",
        "mesh:1x6",
        "complete:1",
    ]
    .into_iter()
    .enumerate()
    {
        for deal in ["auto", "whole", "striped", "levelled"] {
            let line =
                format!("--network {network} --cover --lengths uniform:0..5:{seed} --deal {deal}");
            let scatter = replay(&planned_of("scatter", &line));
            let plan = planned_of("gather", &line);
            assert!(scatter <= replay(&plan), "{network}");
        }
        for flits in [0, 1, 7] {
            let line = format!("--network {network} --cover --size {flits}");
            assert_eq!(number(&planned_of("broadcast", &line), "kept_flits") > 0, {
                let plan = planned_of("broadcast", &line);
                replay(&plan);
                list(&plan, "crossings").iter().any(|leg| leg["from"] != 0)
            });
        }
    }
}

#[test]
fn what_does_not_go_with_a_cover_is_refused() {
    for (line, told) in [
        (
            "scatter --tree path:3 --lengths equal:1 --cover",
            &["--cover: trees that share no arc are those of a --network"][..],
        ),
        (
            "scatter --network ring:4 --lengths equal:1 --cover --from 1 --simulate",
            &["--from does not go", "--simulate does not go"],
        ),
        (
            "gather --network ring:4 --lengths equal:1 --cover --algorithm certification",
            &["--algorithm does not go"],
        ),
        (
            "scatter --network ring:4 --lengths equal:1 --deal whole",
            &["--cover"],
        ),
        (
            "scatter --network complete:64 --lengths equal:1 --cover",
            &["at most 1000 edges", "2016"],
        ),
        (
            "broadcast --network ring:2000 --size 1 --cover",
            &["2000 PEs are too many"],
        ),
        (
            "broadcast --network ring:1000 --size 1000000 --cover",
            &["one by one are too many"],
        ),
    ] {
        let finished = run(format!("plan {line}").split_whitespace());
        let stderr = &finished.stderr;
        assert_eq!(finished.code, Some(2), "{line}: {stderr}");
        for told in told {
            assert!(stderr.contains(told), "{line}: {stderr}");
        }
    }
}
