//! What a PE is told before the rounds, in the words of its state machine and its report.

use flitcast_proto::PeId;
use flitcast_proto::pe::{Brief, Message, Operation};
use flitcast_proto::wire::control::{Arrival, Assignment, Prepare};

/// What the state machine is told.
pub fn brief(pe: PeId, assignment: &Assignment, prepare: &Prepare) -> Brief {
    let operation = assignment.operation;
    let message = |of: PeId, bytes| Message {
        source: if operation.is_scatter() {
            PeId::ROOT
        } else {
            of
        },
        destination: if operation.is_scatter() {
            of
        } else {
            PeId::ROOT
        },
        bytes,
    };
    let sends = match (operation.is_scatter(), pe == PeId::ROOT) {
        (true, true) => {
            let order = prepare.order.iter();
            order
                .map(|&to| message(to, prepare.lengths[to.index() - 1]))
                .collect()
        }
        (false, false) if prepare.own_bytes > 0 => vec![message(pe, prepare.own_bytes)],
        _ => Vec::new(),
    };
    Brief {
        operation,
        flit_bytes: assignment.flit_bytes,
        pace: prepare.pace.clone(),
        sends,
        subtree_messages: prepare.subtree_messages,
        child_messages: prepare.child_messages.clone(),
    }
}

/// Whether the order names each nonnull message at most once, and nothing else.
pub fn is_order(prepare: &Prepare) -> bool {
    let mut named = vec![false; prepare.lengths.len() + 1];
    prepare.order.iter().all(|pe| {
        let place = named.get_mut(pe.index()).filter(|_| *pe != PeId::ROOT);
        let new = place.is_some_and(|named| !std::mem::replace(named, true));
        new && prepare.lengths[pe.index() - 1] > 0
    })
}

/// Whether the messages that the assignment leaves out are null.
pub fn is_left_out(prepare: &Prepare, assignment: &Assignment) -> bool {
    let mut lengths = (1..).map(PeId).zip(&prepare.lengths);
    lengths.all(|(pe, &bytes)| bytes == 0 || !assignment.leaves_out(pe))
}

/// The messages that will come to this PE.
pub fn expected(pe: PeId, operation: Operation, prepare: &Prepare) -> Vec<Arrival> {
    let arrival = |(source, destination), bytes_total| Arrival {
        source,
        destination,
        bytes_received: 0,
        bytes_total,
        delivered: false,
        at_ns: 0,
        delivered_ns: 0,
    };
    let all = match (operation.is_scatter(), pe == PeId::ROOT) {
        (true, false) => vec![arrival((PeId::ROOT, pe), prepare.own_bytes)],
        (false, true) => {
            let sources = (1..).map(PeId).zip(&prepare.lengths);
            sources
                .map(|(source, &bytes)| arrival((source, PeId::ROOT), bytes))
                .collect()
        }
        _ => Vec::new(),
    };
    all.into_iter()
        .filter(|arrival| arrival.bytes_total > 0)
        .collect()
}
