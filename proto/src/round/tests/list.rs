//! A PE with a list of crossings, frame by frame.

use super::*;
use crate::items::{Packing, ScheduledHop};

/// A message of three flits, the last of which is short.
const PAYLOAD: &[u8] = b"0123456789";

/// Returns the message of P0 or P2 for all others.
fn message(source: u32) -> Message {
    Message {
        id: PeId(source).into(),
        source: PeId(source),
        destination: Destination::Others,
        bytes: PAYLOAD.len() as u64,
    }
}

/// Returns a crossing of `flits` flits between P1 and a neighbour.
fn hop(of: u32, [from, to]: [u32; 2], offset: u64, flits: u64, first_step: u64) -> ScheduledHop {
    ScheduledHop {
        message: PeId(of).into(),
        offset,
        flits,
        from: PeId(from),
        to: PeId(to),
        first_step,
        every: 1,
        packing: Packing::Flits,
    }
}

/// Returns the round 2 of P1.
fn round(
    collective: Collective,
    receives: &[u32],
    all_ports: bool,
    hops: &[ScheduledHop],
) -> Round {
    let schedule = PeSchedule {
        receives: receives.iter().map(|source| message(*source)).collect(),
        subtree_messages: receives.len() as u64,
        hops: hops.to_vec(),
        all_ports,
        ..of_p1(collective, PeRole::StaticSchedule)
    };
    let mut round = Round::new(RoundId(2), path(), PeId(1), schedule);
    if collective == Collective::Gossip {
        round.handle_trigger(Time(0));
    }
    round
}

/// Two flits come from P0, and the last one from P2.
fn in_parts() -> Round {
    let hops = [hop(0, [0, 1], 0, 2, 1), hop(0, [2, 1], 2, 1, 3)];
    round(Collective::Broadcast, &[0], false, &hops)
}

#[test]
fn a_message_arrives_in_parts_from_several_neighbours() {
    let mut round = in_parts();
    let frames = frames(2, message(0), PAYLOAD);
    let expected = [
        "store 0, drop, wait",
        "store 4, drop, wait",
        "store 8, drop, commit, control to P0, finished",
    ];
    for ((frame, from), expected) in frames.iter().zip([0, 0, 2]).zip(expected) {
        assert!(round.listens_to(PeId(from)) && !round.listens_to(PeId(2 - from)));
        assert_eq!(passed(&mut round, from, frame), expected);
    }
    assert!(round.arrivals()[0].delivered);
}

#[test]
fn flits_are_received_and_held_while_one_is_in_progress() {
    let hops = [hop(0, [0, 1], 0, 3, 1), hop(0, [1, 2], 0, 3, 2)];
    let mut round = round(Collective::Broadcast, &[0], false, &hops);
    let frames = frames(2, message(0), PAYLOAD);
    round.handle_frame(NOW, PeId(0), &frames[0]).unwrap();
    for expected in ["Store", "Hold", "Drop"] {
        let action = format!("{:?}", round.poll(NOW));
        assert!(action.starts_with(expected), "{action}");
        round.handle_done(NOW).unwrap();
    }
    let Action::SendHeld { to, later_from, .. } = round.poll(NOW) else {
        panic!("the first flit goes on");
    };
    assert_eq!((to, later_from), (PeId(2), 4));
    // The connection accepts a part of it.
    round.handle_under_way();
    assert!(round.is_under_way_to(PeId(2)));
    assert_eq!(run(&mut round).unwrap(), "wait");
    assert!(round.listens_to(PeId(0)));
    let second = passed(&mut round, 0, &frames[1]);
    assert_eq!(second, "store 4, hold, drop, wait");
    round.handle_through(NOW, PeId(2)).unwrap();
    assert!(!round.is_under_way_to(PeId(2)));
    assert_eq!(run(&mut round).unwrap(), "held 4 to P2, wait");
    let rest = "store 8, hold, drop, commit, held 8 to P2, control to P0, finished";
    assert_eq!(passed(&mut round, 0, &frames[2]), rest);
    // The second arrived while the first was in progress.
    assert_eq!(round.peak_buffered_flits(), 2);
}

#[test]
fn messages_of_several_neighbours_arrive_flit_by_flit() {
    let hops = [hop(0, [0, 1], 0, 3, 1), hop(2, [2, 1], 0, 3, 1)];
    let mut round = round(Collective::Gossip, &[0, 2], true, &hops);
    let [above, below] = [0, 2].map(|source| frames(2, message(source), PAYLOAD));
    let mut last = String::new();
    for (one, other) in above.iter().zip(&below) {
        for (from, frame) in [(0, one), (2, other)] {
            assert!(round.listens_to(PeId(from)));
            last = passed(&mut round, from, frame);
            assert_eq!(round.listens_only_to(), None);
        }
    }
    assert_eq!(last, "store 8, drop, commit, control to P0, finished");
    assert!(round.arrivals().iter().all(|arrival| arrival.delivered));
}

#[test]
fn frames_that_break_the_protocol_are_refused() {
    let good = frames(2, message(0), PAYLOAD);
    let digest = Some(XxHash3_128::oneshot(PAYLOAD).to_be_bytes());
    let begun = |next: Vec<u8>| vec![good[0].clone(), next];
    let cases = [
        // The third flit is to come from P2.
        (0, good.clone(), "a body flit without a head"),
        (2, good.clone(), "which is not expected now"),
        (0, vec![good[1].clone()], "a body flit without a head"),
        (0, begun(good[0].clone()), "inside another one"),
        (
            0,
            begun(body(None, None, b"56789")),
            "more than it announced",
        ),
        (
            0,
            begun(body(None, digest, b"5678")),
            "contradict its digest",
        ),
        (0, begun(control(2, Control::Token)), "not allowed"),
        (0, frames(3, message(0), PAYLOAD), "a message of round 3"),
    ];
    for (from, frames, expected) in cases {
        let error = refused(&mut in_parts(), PeId(from), &frames);
        assert!(error.contains(expected), "{error}: {expected}");
    }
    // The digest covers the parts of both neighbours.
    let mut round = in_parts();
    for frame in &good[..2] {
        passed(&mut round, 0, frame);
    }
    let wrong = body(None, digest, b"98");
    let error = refused(&mut round, PeId(2), &[wrong]);
    assert!(error.contains("the message of P0 is damaged"), "{error}");
}

#[test]
fn frames_of_an_earlier_round_are_dropped_and_counted() {
    let mut round = in_parts();
    for frame in frames(1, message(0), PAYLOAD) {
        assert_eq!(passed(&mut round, 0, &frame), "drop, wait");
    }
    assert_eq!(round.late_frames(), 3);
}

/// Returns the schedule of P1 in a gossip in which it forwards the messages of P0 and P2.
fn gossip(change: impl FnOnce(&mut Vec<ScheduledHop>)) -> PeSchedule {
    let mut hops = vec![
        hop(0, [0, 1], 0, 2, 1),
        hop(1, [1, 0], 0, 3, 1),
        hop(1, [1, 2], 0, 3, 4),
        hop(0, [0, 1], 2, 1, 3),
        hop(2, [2, 1], 0, 3, 4),
        hop(0, [1, 2], 0, 3, 7),
        hop(2, [1, 0], 0, 3, 10),
    ];
    change(&mut hops);
    PeSchedule {
        sends: vec![message(1)],
        receives: vec![message(0), message(2)],
        hops,
        ..of_p1(Collective::Gossip, PeRole::StaticSchedule)
    }
}

#[test]
fn impossible_crossings_are_described() {
    type Change = fn(&mut Vec<ScheduledHop>);
    let cases: [(Change, &str); 16] = [
        (|hops| hops[0].from = PeId(2), ""),
        (|hops| hops[0].to = PeId(2), "between other PEs"),
        (|hops| hops[0].from = PeId(1), "between other PEs"),
        (|hops| hops[1].to = PeId(3), "that the PE does not have"),
        (|hops| hops[1].flits = 0, "no flits of any message"),
        (|hops| hops[1].every = 0, "no flits of any message"),
        (|hops| hops[1].first_step = 0, "no flits of any message"),
        (|hops| hops[1].offset = u64::MAX, "no flits of any message"),
        (
            |hops| hops[1].message = MessageId(3),
            "no flits of any message",
        ),
        (|hops| hops[3].offset = 3, "repeat flits or leave some out"),
        (|hops| hops[3].offset = 1, "repeat flits or leave some out"),
        (|hops| hops.push(hops[4]), "repeat flits or leave some out"),
        (
            |hops| hops[0].message = MessageId(1),
            "repeat flits or leave some out",
        ),
        (
            |hops| {
                hops.remove(3);
            },
            "not the flits of a message",
        ),
        (|hops| hops[3].flits = 2, "not the flits of a message"),
        (|hops| hops[1].flits = 4, "flits that never arrive"),
    ];
    let check = |schedule: PeSchedule| {
        let connected = [PeId(0), PeId(2)];
        let checked = schedule.check_hops(PeId(1), &path(), &connected);
        checked.err().unwrap_or_default()
    };
    assert_eq!(check(gossip(|_| ())), "");
    for (place, (change, expected)) in cases.into_iter().enumerate() {
        let found = check(gossip(change));
        let is_expected = found.ends_with(expected) && found.is_empty() == expected.is_empty();
        assert!(is_expected, "case {place}: `{found}`, and not `{expected}`");
    }
    let scatter = PeSchedule {
        role: PeRole::Scatter,
        ..gossip(|_| ())
    };
    assert_eq!(check(scatter), "with crossings for a role that has none");
}
