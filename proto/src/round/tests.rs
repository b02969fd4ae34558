mod list;
mod relay;

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use super::*;
use crate::cost::Model;
use crate::items::{Control, Destination};
use crate::ops::{Algorithm, Broadcast};
use crate::schedule::pace::{ChildPace, Pace, Pacing, Passage, Timing};
use crate::wire::LENGTH_BYTES;

/// Payload bytes of a full flit.
const FLIT_BYTES: usize = 4;

const NOW: Time = Time(1);

/// Returns the path P0, P1, P2.
fn path() -> Arc<Tree> {
    let parents = [None, Some(0), Some(1)].map(|parent| parent.map(PeId));
    Arc::new(Tree::from_parents(parents.to_vec()).unwrap())
}

/// Returns the schedule of P1 on the path, without messages.
fn of_p1(operation: Algorithm) -> PeSchedule {
    PeSchedule {
        operation,
        flit_bytes: FLIT_BYTES as u32,
        pace: Pace {
            pacing: Pacing::Eager,
            lock_step: false,
            control: 0,
            up: Passage::LOCK_STEP,
            below: vec![ChildPace { reach: 0, back: 0 }],
            port_ticks_per_byte: 0.0,
            ahead_bytes: 0,
        },
        sends: Vec::new(),
        packet_bytes: Vec::new(),
        receives: Vec::new(),
        subtree_messages: 0,
        child_messages: vec![0],
        child_ranks: Vec::new(),
        hops: Vec::new(),
        all_ports: false,
        in_any_order: false,
    }
}

/// Returns the bodies of the frames of a message in round `round`.
fn frames(round: u64, message: Message, payload: &[u8]) -> Vec<Vec<u8>> {
    let digest = xxh3_128(payload).to_be_bytes();
    let pieces = payload.chunks(FLIT_BYTES).enumerate();
    let last = pieces.len() - 1;
    let frame = |(place, piece): (usize, &[u8])| {
        let head = (place == 0).then_some((RoundId(round), message));
        body(head, (place == last).then_some(digest), piece)
    };
    pieces.map(frame).collect()
}

/// Returns the body of a flit's frame.
fn body(head: Option<(RoundId, Message)>, digest: Option<Digest>, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    flit::put_prefix(head, digest.as_ref(), payload.len(), &mut frame);
    frame.extend_from_slice(payload);
    frame.split_off(LENGTH_BYTES)
}

/// Returns the body of a control item's frame.
fn control(round: u64, item: Control) -> Vec<u8> {
    let round = RoundId(round);
    let mut frame = Vec::new();
    EdgeFrame::Control { round, item }.put(&mut frame);
    frame.split_off(LENGTH_BYTES)
}

/// Polls and does all actions until the round waits or is over; returns them in short.
fn run(round: &mut Round) -> Result<String, ProtocolError> {
    let mut done = Vec::new();
    loop {
        let action = round.poll(NOW);
        done.push(match &action {
            Action::SendControl { to, .. } => format!("control to {to}"),
            Action::SendFlit { to, piece, .. } => format!("send {} to {to}", piece.offset),
            Action::SendAgain { to, piece } => format!("again {} to {to}", piece.offset),
            Action::SendHeld { to, piece, .. } => format!("held {} to {to}", piece.offset),
            Action::Forward { to, piece, .. } => format!("forward {} to {to}", piece.offset),
            Action::Store { offset, .. } => format!("store {offset}"),
            Action::Hold { .. } => "hold".to_owned(),
            Action::Drop { .. } => "drop".to_owned(),
            Action::Commit { .. } => "commit".to_owned(),
            Action::Turn { .. } => "turn".to_owned(),
            // It only checks for incoming frames.
            Action::Wait { until: Some(NOW) } => continue,
            Action::Wait { .. } => "wait".to_owned(),
            Action::Finished => "finished".to_owned(),
        });
        if matches!(action, Action::Wait { .. } | Action::Finished) {
            return Ok(done.join(", "));
        }
        round.handle_done(NOW)?;
        if let Action::Commit { message } = action {
            round.handle_delivered(NOW, message);
        }
    }
}

/// Passes frames of a neighbour on and does what follows; returns the first error.
fn refused(round: &mut Round, from: PeId, frames: &[Vec<u8>]) -> String {
    for frame in frames {
        let handled = round.handle_frame(NOW, from, frame);
        if let Err(error) = handled.and_then(|()| run(round).map(drop)) {
            return error.to_string();
        }
    }
    panic!("nothing was refused");
}

/// A relay with a static schedule frees a flit when the last receiver has it: it holds one flit of
/// a message of any length if all flits are forwarded as they arrive.
#[test]
fn what_has_gone_on_is_held_no_more() {
    for (parents, to) in [
        ([None, Some(0), Some(1), Some(1)], 2),
        ([None, Some(0), Some(1), None], 1),
    ] {
        let parents = parents.map(|parent| parent.map(PeId));
        let tree = Arc::new(Tree::with_absent(PeId::ROOT, parents.to_vec()).unwrap());
        let flits = 300;
        let bytes: Vec<u64> = tree
            .ids()
            .map(|pe| flits * u64::from(pe != PeId::ROOT && tree.contains(pe)))
            .collect();
        let timing = Timing::of(&Model::unit(tree.len()), 1, Pacing::Eager);
        let operation = Algorithm::Broadcast(Broadcast::Urgent);
        let mut briefs = PeSchedule::all(&tree, operation, &bytes, &timing);
        let mut round = Round::new(RoundId(1), tree.clone(), PeId(1), briefs.swap_remove(1));
        let message = Message {
            id: MessageId(0),
            source: PeId::ROOT,
            destination: Destination::Others,
            bytes: flits,
        };
        let (mut came, mut gone) = (0, 0);
        let mut now = 0;
        while gone < to * flits {
            now += 1;
            match round.poll(Time(now)) {
                // It only checks for incoming frames.
                Action::Wait { until: Some(_) } if gone < to * came => continue,
                Action::Wait { .. } => {
                    assert!(
                        gone == to * came && came < flits,
                        "{came} came, {gone} went on"
                    );
                    assert!(round.listens_to(PeId::ROOT));
                    let flit = Sized::Flits(Piece {
                        message,
                        offset: came,
                        bytes: 1,
                    });
                    round
                        .handle_sized([Time(now); 2], PeId::ROOT, flit)
                        .unwrap();
                    came += 1;
                    continue;
                }
                Action::SendHeld {
                    piece, later_from, ..
                } => {
                    gone += 1;
                    // A flit that all receivers have is not needed any more.
                    let is_last = gone == to * flits;
                    let needed = if is_last { u64::MAX } else { gone / to };
                    assert_eq!(later_from, needed, "at {}", piece.offset);
                }
                Action::Commit { message } => round.handle_delivered(Time(now), message),
                _ => {}
            }
            round.handle_done(Time(now)).unwrap();
        }
        assert!(
            round.peak_buffered_flits() <= 2,
            "{}",
            round.peak_buffered_flits()
        );
    }
}
