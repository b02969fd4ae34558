//! A relay of a scatter, frame by frame.

use super::*;

/// The message for P1, in two flits, and the one for P2, in two flits.
const OWN: &[u8] = b"hello";
const PASSING: &[u8] = b"farther";

fn to(pe: u32, bytes: usize) -> Message {
    Message::between(PeId(0), PeId(pe), bytes as u64)
}

fn own() -> Vec<Vec<u8>> {
    frames(2, to(1, OWN.len()), OWN)
}

fn passing() -> Vec<Vec<u8>> {
    frames(2, to(2, PASSING.len()), PASSING)
}

/// Returns the round 2 of P1.
fn round() -> Round {
    let schedule = PeSchedule {
        receives: vec![to(1, OWN.len())],
        subtree_messages: 2,
        child_messages: vec![1],
        ..of_p1(Collective::Scatter, PeRole::Scatter)
    };
    Round::new(RoundId(2), path(), PeId(1), schedule)
}

#[test]
fn a_message_is_forwarded_flit_by_flit_and_another_one_delivered() {
    let mut round = round();
    assert_eq!(run(&mut round).unwrap(), "wait");
    let [first, second] = &passing()[..] else {
        panic!("two flits");
    };
    round.handle_frame(NOW, PeId(0), first).unwrap();
    assert!(!round.listens_to(PeId(0)), "a frame is in hand");
    assert_eq!(run(&mut round).unwrap(), "forward 0 to P2, drop, wait");
    assert!(round.listens_to(PeId(0)));
    assert!(!round.listens_to(PeId(2)), "it waits for the message");
    assert_eq!(round.listens_only_to(), Some(PeId(0)));
    let expected = "forward 4 to P2, drop, turn, wait";
    assert_eq!(passed(&mut round, 0, second), expected);
    assert!(round.listens_to(PeId(2)), "the receipt may come");
    let expected = ["store 0, drop, wait", "store 4, drop, commit, turn, wait"];
    for (frame, expected) in own().iter().zip(expected) {
        assert_eq!(passed(&mut round, 0, frame), expected);
    }
    assert!(!round.listens_to(PeId(0)), "everything is here");
    let receipt = control(2, Control::Receipt);
    let expected = "drop, control to P0, finished";
    assert_eq!(passed(&mut round, 2, &receipt), expected);
    let [arrival] = &round.arrivals()[..] else {
        panic!("one message ends here");
    };
    assert!(arrival.delivered);
    assert_eq!(arrival.bytes_received, OWN.len() as u64);
}

#[test]
fn frames_that_break_the_protocol_are_refused() {
    let (own, passing) = (own(), passing());
    let head = |round, bytes: usize| {
        let message = Some((RoundId(round), to(1, bytes)));
        body(message, None, &OWN[..FLIT_BYTES])
    };
    let digest = Some(XxHash3_128::oneshot(OWN).to_be_bytes());
    let all = [own.clone(), passing.clone(), passing.clone()].concat();
    let twice = [passing.clone(), passing.clone()].concat();
    let begun = |next: Vec<u8>| vec![own[0].clone(), next];
    let cases = [
        // A message comes once, and only one at a time.
        (twice, "sent the message of P2 again"),
        (all, "which is not expected now"),
        (begun(passing[0].clone()), "inside another one"),
        (vec![passing[1].clone()], "a body flit without a head"),
        // Nothing but a flit comes inside a message.
        (begun(control(2, Control::Receipt)), "no flit"),
        (vec![control(2, Control::Token)], "not allowed in a scatter"),
        (vec![control(3, Control::Token)], "in round 2"),
        (vec![head(3, OWN.len())], "a message of round 3"),
        // Lengths and digests.
        (vec![head(2, OWN.len() + 1)], "in round 2"),
        (begun(body(None, digest, b"oo")), "more than it announced"),
        (begun(body(None, None, b"o")), "contradict its digest"),
        (begun(body(None, digest, b"x")), "its digest is"),
        (vec![b"no frame".to_vec()], "from P0"),
    ];
    for (frames, expected) in cases {
        let error = refused(&mut round(), PeId(0), &frames);
        assert!(error.contains(expected), "{error}: {expected}");
    }
    let from_below = refused(&mut round(), PeId(2), &own);
    assert!(from_below.contains("P2"), "{from_below}");
}

#[test]
fn frames_of_an_earlier_round_are_dropped_and_counted() {
    let mut round = round();
    let late = [
        vec![control(1, Control::Token)],
        frames(1, to(2, PASSING.len()), PASSING),
    ];
    let expected = ["drop, wait", "drop, wait", "drop, turn, wait"];
    for (frame, expected) in late.concat().iter().zip(expected) {
        assert_eq!(passed(&mut round, 0, frame), expected);
    }
    assert_eq!(round.late_frames(), 3);
    let expected = "forward 0 to P2, drop, wait";
    assert_eq!(passed(&mut round, 0, &passing()[0]), expected);
}
