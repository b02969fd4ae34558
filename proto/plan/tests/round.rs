//! The round of a PE with a schedule that a planner has computed.

use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_plan::cost::Model;
use flitcast_plan::timing::Timing;
use flitcast_proto::items::{Destination, Message};
use flitcast_proto::round::{Action, Piece, Round, Sized};
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::{MessageId, PeId, RoundId, Time, Tree};

/// A relay with a static schedule frees a flit when the last receiver has it: it holds one flit of
/// a message of any length if all flits are forwarded as they arrive.
#[test]
fn forwarded_flits_are_not_held() {
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
        let mut schedules = Algorithm::BROADCAST_URGENT.schedules(&tree, &bytes, &timing);
        let mut round = Round::new(RoundId(1), tree.clone(), PeId(1), schedules.swap_remove(1));
        let message = Message {
            id: MessageId(0),
            source: PeId::ROOT,
            destination: Destination::Others,
            bytes: flits,
        };
        let (mut received, mut sent) = (0, 0);
        let mut now = 0;
        while sent < to * flits {
            now += 1;
            match round.poll(Time(now)) {
                // It only checks for incoming frames.
                Action::Wait { until: Some(_) } if sent < to * received => continue,
                Action::Wait { .. } => {
                    assert!(
                        sent == to * received && received < flits,
                        "{received} received, {sent} sent"
                    );
                    assert!(round.listens_to(PeId::ROOT));
                    let flit = Sized::Flits(Piece {
                        message,
                        offset: received,
                        bytes: 1,
                    });
                    round
                        .handle_sized([Time(now); 2], PeId::ROOT, flit)
                        .unwrap();
                    received += 1;
                    continue;
                }
                Action::SendHeld {
                    piece, later_from, ..
                } => {
                    sent += 1;
                    // A flit that all receivers have is not needed any more.
                    let is_last = sent == to * flits;
                    let needed = if is_last { u64::MAX } else { sent / to };
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
