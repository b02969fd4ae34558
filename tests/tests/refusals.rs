//! Messages of a neighbour that a PE's state machine rejects.

use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_plan::timing::Timing;
use flitcast_proto::items::{Message, MessageFault, Route};
use flitcast_proto::ops::PeMachine;
use flitcast_proto::{PeId, Time, Tree};

/// One PE at the start of a round on the path P0, P1, P2, P3.
fn on_a_path(operation: Algorithm, pe: PeId) -> PeMachine {
    let parents = [None, Some(PeId(0)), Some(PeId(1)), Some(PeId(2))];
    let tree = Arc::new(Tree::from_parents(parents.into()).unwrap());
    let schedules = operation.schedules(&tree, &[0, 5, 5, 5], &Timing::LOCK_STEP);
    PeMachine::new(tree, pe, schedules[pe.index()].clone())
}

fn gathered(source: u32) -> Message {
    Message::between(PeId(source), PeId::ROOT, 5)
}

/// P0 would count it as a missing message, and consider the round complete.
#[test]
fn the_destination_takes_a_message_once() {
    for operation in [Algorithm::COMBINING_GATHER, Algorithm::SHOULDER_TAP] {
        let mut root = on_a_path(operation, PeId::ROOT);
        root.handle_trigger(Time(0));
        while root.poll_transmit(Time(0)).is_some() {
            root.handle_sent();
        }
        let (from, message) = (PeId(1), gathered(2));
        assert_eq!(root.handle_head(from, message), Ok(Route::deliver()));
        root.handle_received(from);
        root.handle_delivered();
        let again = Err(MessageFault::Repeated.by(from, message));
        assert_eq!(root.handle_head(from, message), again);
        assert!(!root.is_finished());
    }
}
