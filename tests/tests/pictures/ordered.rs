//! Real processes on links of equal rate send messages in the given order, hop by hop as planned for
//! unit links, and predictions rank orders as their plans do.

use flitcast_tests::{refused_each, scratch};
use serde_json::Value;

use super::planned::{FLIT_BYTES, Sent, in_turns, lengths, played};
use super::{drawn, page};
use crate::replay::{list, number, planned_of};

/// P1 and P4 below P0, P2 and P3 below P1, P5 below P4.
const TREE: &str = "--tree parents:0,1,1,0,4";

/// Returns the sends of each PE in the plan of a scatter or of a gather. Messages stay in the order in
/// which they leave P0 or reach it.
fn sends(plan: &Value) -> Vec<Vec<Sent>> {
    let parents = list(plan, "parents");
    let is_scatter = plan["operation"] == "scatter";
    let mut messages: Vec<&Value> = list(plan, "messages").iter().collect();
    let at_p0 = match is_scatter {
        true => "first_step",
        false => "arrival_step",
    };
    messages.sort_by_key(|message| number(message, at_p0));
    let mut sent = vec![Vec::new(); parents.len()];
    for message in messages {
        let mut below = number(message, "pe");
        let of = below;
        while let Some(above) = parents[below as usize].as_u64() {
            let [from, to] = match is_scatter {
                true => [above, below],
                false => [below, above],
            };
            sent[from as usize].push((to, of));
            below = above;
        }
    }
    sent
}

/// Runs an operation in several orders, slowest last. Each is played as planned, and the predictions
/// and the plans rank them alike.
#[track_caller]
fn are_played_as_planned(operation: &str, flits: &[u64], orders: &[&str]) {
    let [in_flits, in_bytes] = lengths("--lengths", flits);
    let mut ranks = Vec::new();
    for order in orders {
        let plan = planned_of(operation, &format!("{TREE} {in_flits} {order}"));
        let dir = scratch();
        let links = format!("--flit-size {FLIT_BYTES} --link rate=2mbit");
        let command = format!("{operation} {TREE} {in_bytes} {order} {links}");
        let report = drawn(&dir, &command);
        report.assert_all_arrived();
        let page = page(&dir);
        let planned = sends(&plan);
        let played = played(&page, planned.len());
        let played: Vec<Vec<Sent>> = played.into_iter().map(in_turns).collect();
        assert_eq!(played, planned, "{command}");
        let predicted_us = report.float("/round/predicted_us");
        ranks.push((number(&plan, "time_steps"), predicted_us));
    }
    let is_ranked = |one: &(u64, f64), next: &(u64, f64)| one.0 < next.0 && one.1 < next.1;
    assert!(ranks.is_sorted_by(is_ranked), "{orders:?} {ranks:?}");
}

#[test]
fn a_scatter_has_the_given_order_and_fdf_is_predicted_to_be_quicker() {
    let orders = ["--order fdf", "--order given:1,2,3,4,5"];
    are_played_as_planned("scatter", &[3, 1, 2, 1, 1], &orders);
    let orders = ["--order given:5,4,3,1", "--order given:1,4,5,3"];
    are_played_as_planned("scatter", &[1, 0, 1, 2, 1], &orders);
}

/// P4 has nothing to send and waits for P5, and P1 can send at once.
#[test]
fn a_gather_takes_the_streams_in_the_given_order() {
    let orders = ["--order given:1,3,2,5", "--order given:5,1,2,3"];
    are_played_as_planned("gather", &[2, 1, 2, 0, 1], &orders);
}

#[test]
fn an_order_is_for_all_messages_and_a_gathers_is_a_walk() {
    let of_five = format!("{TREE} --lengths 1KiB,0,1KiB,1KiB,1KiB");
    for operation in ["scatter", "gather"] {
        refused_each(&format!("{operation} {of_five} --order"), "
            given:5,2,9,5,3 | the message of P2 is null | P9 is not a PE with a message | P5 is named twice | P1, P4 are missing
        ");
    }
    refused_each(
        &format!("gather {of_five} --order"),
        "
        given:3,1,4,5 | --order: P1 comes after P3, which is below it
        given:1,4,3,5 | P3 stands between P4 and P5
    ",
    );
    refused_each("gather", "
        --tree path:3 --size 1KiB --order given:2,1 | P1 comes after P2
        --network complete:3 --size 1KiB --algorithm linear --order given:2,1 | is for a gather by shoulder-tap or certification | not by linear
    ");
    refused_each(
        "plan gather --tree parents:0,1,1 --lengths 1,1,1 --order",
        "
        given:2,1,3 | P1 comes after P2
        given:1 | P2, P3 are missing
    ",
    );
}
