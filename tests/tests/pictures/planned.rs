//! Real processes on links of equal rate execute the plan for unit links: each PE sends the flits
//! of the plan to the planned neighbours in the planned order.

use flitcast_tests::scratch;
use serde_json::Value;

use super::data::{data, spans};
use super::{drawn, page};
use crate::replay::{list, number, planned_of};

pub const FLIT_BYTES: u64 = 4096;

/// The receiver of a send, and the message.
pub type Sent = (u64, u64);

/// Returns the sends of each PE in the plan, step by step.
fn planned(plan: &Value) -> Vec<Vec<Sent>> {
    let mut sent = vec![Vec::new(); number(plan, "pes") as usize];
    match plan["steps"].is_null() {
        true => {
            for crossing in list(plan, "crossings") {
                let [from, to, message] = ["from", "to", "message"].map(|it| number(crossing, it));
                for flit in 0..number(crossing, "flits") {
                    let step = number(crossing, "first_step") + flit * number(crossing, "every");
                    sent[from as usize].push((step, (to, message)));
                }
            }
        }
        false => {
            for (step, packets) in (0..).zip(list(plan, "steps")) {
                for packet in list(packets, "packets") {
                    let ends = [0, list(packet, "path").len() - 1];
                    let [from, to] = ends.map(|end| packet["path"][end].as_u64().expect("a PE"));
                    let pieces = list(packet, "pieces").iter();
                    let pieces = pieces.map(|it| (step, (to, number(it, "message"))));
                    sent[from as usize].extend(pieces);
                }
            }
        }
    }
    let in_order = |mut sent: Vec<(u64, Sent)>| {
        sent.sort_by_key(|(step, _)| *step);
        sent.into_iter().map(|(_, sent)| sent).collect()
    };
    sent.into_iter().map(in_order).collect()
}

/// Returns the sends of each PE in a real round.
pub fn played(page: &str, pes: usize) -> Vec<Vec<Sent>> {
    let mut sent = vec![Vec::new(); pes];
    let mut spans = spans(&data(page), "measured");
    spans.sort_by_key(|span| span.begin_ns);
    for span in spans.iter().filter(|span| !span.received) {
        if let Some(message) = span.message() {
            sent[span.pe as usize].push((span.peer, message));
        }
    }
    sent
}

/// Merges consecutive flits of one message to one neighbour, because a run records them together.
pub fn in_turns(mut sent: Vec<Sent>) -> Vec<Sent> {
    sent.dedup();
    sent
}

/// Sorts the sends to one neighbour in one step, because they are one packet.
fn in_packets(mut sent: Vec<Sent>) -> Vec<Sent> {
    let same = sent.chunk_by_mut(|one, next| one.0 == next.0);
    same.for_each(<[Sent]>::sort_unstable);
    in_turns(sent)
}

/// Keeps the first flit to each child, because a relay that sends each flit to all of its children
/// records each child once.
fn first_flits(sent: Vec<Sent>) -> Vec<Sent> {
    let new = |at: &usize| !sent[..*at].contains(&sent[*at]);
    (0..sent.len()).filter(new).map(|at| sent[at]).collect()
}

/// Checks that a run in bytes sends the flits of the plan.
#[track_caller]
fn is_played_as_planned(
    operation: &str,
    line: &str,
    [in_flits, in_bytes]: &[String; 2],
    seen: fn(Vec<Sent>) -> Vec<Sent>,
) {
    let plan = planned_of(operation, &format!("{line} {in_flits}"));
    let dir = scratch();
    let links = format!("--flit-size {FLIT_BYTES} --link rate=20mbit");
    let command = format!("{operation} {line} {in_bytes} {links}");
    drawn(&dir, &command);
    let planned = planned(&plan);
    assert!(planned.iter().any(|sent| !sent.is_empty()), "{command}");
    let played = played(&page(&dir), planned.len());
    let [played, planned] =
        [played, planned].map(|pes| pes.into_iter().map(seen).collect::<Vec<_>>());
    assert_eq!(played, planned, "{command}");
}

/// Returns `option` with these lengths, in flits and in bytes.
pub fn lengths(option: &str, flits: &[u64]) -> [String; 2] {
    [1, FLIT_BYTES].map(|unit| {
        let lengths = flits.iter().map(|flits| (flits * unit).to_string());
        format!("{option} {}", lengths.collect::<Vec<_>>().join(","))
    })
}

#[test]
fn broadcasts_are_played_as_planned() {
    let size = lengths("--size", &[5]);
    for algorithm in ["rounds", "urgent", "child-by-child"] {
        let line = format!("--tree random:7:4 --algorithm {algorithm}");
        let seen = match algorithm {
            "rounds" => first_flits,
            _ => in_turns,
        };
        is_played_as_planned("broadcast", &line, &size, seen);
    }
    for algorithm in ["path", "kary:2"] {
        let line = format!("--network complete:6 --algorithm {algorithm}");
        is_played_as_planned("broadcast", &line, &size, first_flits);
    }
}

#[test]
fn gossip_is_played_as_planned() {
    for seed in [3, 8] {
        let unlike = lengths("--lengths", &[2, 0, 1, 3, 1, 1]);
        let line = format!("--tree random:6:{seed} --algorithm flood");
        is_played_as_planned("gossip", &line, &unlike, in_turns);
    }
    for algorithm in ["circulate", "dissemination", "direct", "neighbour"] {
        let alike = lengths("--lengths", &[1; 6]);
        let line = format!("--network complete:6 --algorithm {algorithm}");
        is_played_as_planned("gossip", &line, &alike, in_packets);
    }
}

#[test]
fn exchanges_are_played_as_planned() {
    const FLITS: [[u64; 5]; 5] = [
        [0, 1, 2, 0, 1],
        [1, 0, 0, 3, 1],
        [0, 1, 0, 2, 2],
        [2, 0, 1, 0, 0],
        [1, 1, 0, 4, 0],
    ];
    let dir = scratch();
    let matrix = |option: &str, unit: u64| {
        let row = |row: &[u64; 5]| row.map(|flits| (flits * unit).to_string()).join(",") + "\n";
        let file = dir.put(
            &format!("{unit}.csv"),
            FLITS.iter().map(row).collect::<String>(),
        );
        format!("{option} {}", file.display())
    };
    let matrices = [matrix("--matrix", 1), matrix("--lengths", FLIT_BYTES)];
    for line in [
        "--tree random:5:1 --algorithm tree",
        "--tree path:5 --algorithm tree",
        "--network complete:5 --algorithm rounds",
        "--network complete:5 --algorithm shifts",
    ] {
        is_played_as_planned("exchange", line, &matrices, in_turns);
    }
}
