//! Both kinds of rounds, frame by frame.

mod list;
mod relay;

use std::sync::Arc;

use twox_hash::XxHash3_128;

use super::*;
use crate::Compression;
use crate::items::{Control, Destination};
use crate::ops::{Collective, PeRole};
use crate::schedule::pace::{ChildPace, Pace, Pacing, Passage};
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
fn of_p1(collective: Collective, role: PeRole) -> PeSchedule {
    PeSchedule {
        collective,
        role,
        parts: 1,
        flit_bytes: FLIT_BYTES as u32,
        pace: Pace {
            pacing: Pacing::Eager,
            lock_step: false,
            control: 0,
            up: Passage::LOCK_STEP,
            below: vec![ChildPace {
                reach: 0,
                up: Passage::LOCK_STEP,
            }],
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
        in_turns: false,
        in_any_order: false,
        polls_before_sleep: false,
        compression: Compression::Never,
        has_tail: false,
    }
}

/// Returns the bodies of the frames of a message in round `round`.
fn frames(round: u64, message: Message, payload: &[u8]) -> Vec<Vec<u8>> {
    let digest = XxHash3_128::oneshot(payload).to_be_bytes();
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

/// Passes a frame of a neighbour on and does what follows; returns it in short.
fn passed(round: &mut Round, from: u32, frame: &[u8]) -> String {
    round.handle_frame(NOW, PeId(from), frame).unwrap();
    run(round).unwrap()
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
