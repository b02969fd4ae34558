//! `flitcast plan --simulate` of all operations: the state machines of the program execute the plan
//! in lock step, and the result must agree; plans that no state machine executes are rejected.

use flitcast_proto::seeded::SplitMix64;
use flitcast_tests::printed;

/// Returns the result of a simulation: the line of the summary, without its name.
#[track_caller]
fn simulated(line: &str) -> String {
    let out = printed(&format!("plan {line} --summary --simulate"));
    let mut lines = out.lines();
    let result = lines.find_map(|line| line.strip_prefix("  simulated    "));
    result.unwrap_or_else(|| panic!("{line}: {out}")).to_owned()
}

const AS_PLANNED: &str = "step by step, every item as planned";

#[track_caller]
fn as_planned(line: &str) {
    assert_eq!(simulated(line), AS_PLANNED, "{line}");
}

/// With `rounds`, a PE with few children does not wait for the one with the most, so some sends may
/// be earlier.
#[test]
fn broadcasts_are_played_as_planned_on_random_trees() {
    let mut random = SplitMix64::new(5);
    let mut earlier = 0;
    for seed in 0..15 {
        let (pes, flits) = (1 + random.below(14), random.below(9));
        let from = random.below(pes);
        let line = format!("broadcast --tree random:{pes}:{seed} --size {flits} --from {from}");
        as_planned(&format!("{line} --algorithm urgent"));
        as_planned(&format!("{line} --algorithm child-by-child"));
        let result = simulated(&format!("{line} --algorithm rounds"));
        let is_earlier = result.starts_with("step by step, no item later than planned, ");
        assert!(result == AS_PLANNED || is_earlier, "{line}: {result}");
        earlier += u64::from(is_earlier);
        let all = format!("broadcast --network complete:{pes} --size {flits} --from {from}");
        as_planned(&format!("{all} --algorithm path"));
        as_planned(&format!("{all} --algorithm kary:2"));
        as_planned(&format!("{all} --algorithm circulant"));
    }
    assert!((2..13).contains(&earlier), "{earlier}");
    for (dimensions, flits) in (0..5).flat_map(|it| [0, 1, 9, 25, 42].map(|flits| (it, flits))) {
        let pes = 1 << dimensions;
        let from = random.below(pes);
        let line = format!("broadcast --network complete:{pes} --size {flits} --from {from}");
        as_planned(&format!("{line} --algorithm hypercube"));
    }
}

/// Unit tests have every algorithm, on random trees and on networks.
#[test]
fn other_operations_are_played_as_planned() {
    for line in [
        "scatter --tree random:9:3 --lengths uniform:0..4:3 --from 2",
        "gossip --tree random:9:3 --lengths uniform:0..4:3",
        "exchange --tree kary:2:7 --lengths each:2",
        "exchange --network complete:7 --lengths each:2 --algorithm rounds",
        "exchange --network complete:7 --lengths each:2 --algorithm shifts",
        "exchange --network complete:7 --lengths each:2 --algorithm bruck",
    ] {
        as_planned(line);
    }
}

/// Packets of the wormhole model use single ports there, so the steps differ.
#[test]
fn gossip_on_networks_has_the_planned_senders() {
    for (line, steps) in [
        ("ring:9 --lengths equal:2 --algorithm approach1", 16),
        ("ring:8 --lengths equal:4 --algorithm halves", 28),
        ("complete:9 --lengths equal:3 --algorithm dissemination", 24),
        ("complete:6 --lengths equal:1 --algorithm neighbour", 5),
    ] {
        let result = simulated(&format!("gossip --network {line}"));
        let expected = "who gets which flit from whom is as planned; by one port it takes";
        assert_eq!(result, format!("{expected} {steps} steps"), "{line}");
    }
}

/// The JSON output is the plan and nothing else.
#[test]
fn a_simulation_changes_nothing_of_what_programs_get() {
    for line in [
        "broadcast --tree kary:3:10 --size 4",
        "gossip --tree kary:2:7 --lengths equal:2",
        "gossip --network ring:9 --lengths equal:2",
        "exchange --network complete:5 --lengths each:2",
    ] {
        let output = |more: &str| printed(&format!("plan {line} --format json{more}"));
        assert_eq!(output(""), output(" --simulate"), "{line}");
    }
}
