//! The end of a round, which is the same for all algorithms: deliveries yet to be made here,
//! receipts yet to arrive, and receipts yet to be sent. Receipts go against the data: upwards if
//! messages go down, when a subtree has everything; downwards if they go up, when P0 has
//! everything.

use std::collections::VecDeque;

use super::collective::Direction;
use super::pe_schedule::PeSchedule;
use super::role::PePosition;
use crate::PeId;

#[derive(Debug)]
pub(super) struct Receipts {
    to_deliver: u64,
    due: Vec<PeId>,
    to_send: VecDeque<PeId>,
}

impl Receipts {
    pub(super) fn new(place: &PePosition, schedule: &PeSchedule) -> Receipts {
        let to_deliver = schedule.receives.len() as u64;
        let children = place.children_with_messages(schedule);
        let parent = place.parent().filter(|_| schedule.subtree_messages > 0);
        match schedule.collective.direction() {
            Direction::Down | Direction::Across => Receipts {
                to_deliver,
                due: children.collect(),
                to_send: parent.into_iter().collect(),
            },
            Direction::Up => Receipts {
                to_deliver,
                due: parent.into_iter().collect(),
                to_send: children.collect(),
            },
        }
    }

    pub(super) fn delivered(&mut self) {
        self.to_deliver -= 1;
    }

    pub(super) fn is_due_from(&self, from: PeId) -> bool {
        self.due.contains(&from)
    }

    /// Handles a receipt; returns whether it was due.
    pub(super) fn take(&mut self, from: PeId) -> bool {
        let place = self.due.iter().position(|&pe| pe == from);
        place.map(|place| self.due.swap_remove(place)).is_some()
    }

    /// Returns the PE that gets a receipt next, or `None` while anything is missing.
    pub(super) fn next(&self) -> Option<PeId> {
        let complete = self.to_deliver == 0 && self.due.is_empty();
        self.to_send.front().copied().filter(|_| complete)
    }

    pub(super) fn sent(&mut self) {
        self.to_send.pop_front();
    }

    pub(super) fn is_settled(&self) -> bool {
        self.to_deliver == 0 && self.due.is_empty() && self.to_send.is_empty()
    }
}
