//! Figures 1 to 4 of Bhatt, Pucci, Ranade, Rosenberg, cell by cell, from the state machines.
//! `tests/golden/` contains the figures as printed in the paper.

use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_plan::sim::{self, Simulated};
use flitcast_plan::timing::Timing;
use flitcast_plan::trace::{Crossing, Item, table};
use flitcast_proto::items::Control;
use flitcast_proto::tree::TreeSpec;
use flitcast_proto::{PeId, Tree};

fn path(pes: u32) -> Arc<Tree> {
    let spec: TreeSpec = format!("path:{pes}").parse().unwrap();
    Arc::new(spec.build().unwrap())
}

#[track_caller]
fn assert_prints(run: &Simulated, figure: &str, steps: u64) {
    assert_eq!(run.time_steps(), steps, "{figure}");
    let path = format!("{}/golden/{figure}.txt", env!("CARGO_MANIFEST_DIR"));
    let printed = std::fs::read_to_string(&path).unwrap();
    let ours = table(&run.crossings, run.arrival_steps.len());
    let is_same = ours == printed;
    assert!(is_same, "{figure}, ours:\n{ours}\nthe paper's:\n{printed}");
}

/// Returns a scatter of `flits` in the given order of destinations.
fn scatter(flits: &[u64], order: &[u32]) -> Simulated {
    let tree = path(6);
    let mut schedules = Algorithm::FARTHEST_FIRST.schedules(&tree, flits, &Timing::LOCK_STEP);
    schedules[0]
        .sends
        .sort_by_key(|m| order.iter().position(|&pe| PeId(pe) == m.pe()));
    sim::run_schedules(&tree, schedules).unwrap()
}

fn gather(operation: Algorithm, flits: &[u64]) -> Simulated {
    sim::run(&path(6), operation, flits).unwrap()
}

#[test]
fn figure_1a_farthest_destination_first() {
    let flits = [0, 0, 0, 0, 4, 3];
    let run = sim::run(&path(6), Algorithm::FARTHEST_FIRST, &flits).unwrap();
    assert_prints(&run, "fig1a", 10);
    assert_eq!(scatter(&flits, &[5, 4]).crossings, run.crossings);
}

#[test]
fn figure_1b_nearest_destination_first() {
    let run = scatter(&[0, 0, 0, 0, 4, 3], &[4, 5]);
    assert_prints(&run, "fig1b", 11);
}

#[test]
fn figure_2_shoulder_tap() {
    let run = gather(Algorithm::SHOULDER_TAP, &[0, 2, 3, 0, 2, 1]);
    assert_prints(&run, "fig2", 11);
}

#[test]
fn figure_3_shoulder_tap_pathological() {
    let run = gather(Algorithm::SHOULDER_TAP, &[0, 9, 0, 1, 0, 1]);
    assert_prints(&run, "fig3", 13);
}

#[test]
fn figure_4_transmission_certification() {
    let run = gather(Algorithm::CERTIFICATION_SERIAL, &[0, 2, 3, 0, 2, 1]);
    assert_prints(&run, "fig4", 21);
    let is_certificate =
        |crossing: &&Crossing| matches!(crossing.item, Item::Control(Control::Certificate(_)));
    let last_certificate = run.crossings.iter().rfind(is_certificate);
    assert_eq!(last_certificate.unwrap().step, 10);
}

/// A PE without a child may send in the step after its call; its column then
/// shows the call and its first flit in one cell.
#[test]
fn an_order_and_an_own_flit_can_share_a_cell() {
    let run = sim::run(&path(2), Algorithm::SHOULDER_TAP, &[0, 2]).unwrap();
    let expected = "Step  P0    P1\n   1        (1) m1,1\n   2  m1,1  m1,2\n   3  m1,2\n";
    assert_eq!(table(&run.crossings, 2), expected);
}
