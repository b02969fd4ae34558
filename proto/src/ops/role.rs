//! The interface that each algorithm implements: the part of a PE's state machine that differs.

use std::fmt::Debug;
use std::sync::Arc;

use super::pe_schedule::PeSchedule;
use crate::items::{Control, Message, MessageFault, Route, Transmit};
use crate::{PeId, Time, Tree};

/// The route of a message, or the rule that it breaks.
pub(super) type RouteResult = Result<Route, MessageFault>;

/// The part of a PE's state that depends on the algorithm. [`PeMachine`](super::PeMachine) performs
/// the checks that all algorithms share before it calls the role.
pub(super) trait Role: Debug + Send + Sync {
    /// Handles the trigger of the round: it begins at this PE at a time that is now, or later if all
    /// PEs are triggered.
    fn trigger(&mut self, at: Time);

    /// Handles a control item other than a receipt; returns whether it is allowed now. By default none
    /// is.
    fn control(&mut self, _place: &PePosition, _now: Time, _from: PeId, _item: Control) -> bool {
        false
    }

    /// Decides the route of a message whose head has arrived.
    fn route(&mut self, place: &PePosition, from: PeId, message: &Message) -> RouteResult;

    /// Returns the message of which this neighbour sends the next part now, and the end of the part
    /// in bytes from the message's start.
    fn next_part(&mut self, _from: PeId) -> Option<(Message, u64)> {
        None
    }

    /// Returns whether messages are to arrive from a neighbour before its receipt, if both can come
    /// from it.
    fn has_more_from(&self, _from: PeId) -> bool {
        false
    }

    /// Handles the end of a message, or of a part of it, at the receive port.
    fn received(&mut self, from: PeId, message: &Message);

    /// Returns what the free send port sends next.
    fn next(&mut self, place: &PePosition, now: Time) -> Option<Transmit>;

    /// Reports that the send port has finished what [`Role::next`] returned.
    fn sent(&mut self, _transmit: &Transmit) {}

    /// Returns when [`Role::next`] may return something without a further event.
    fn timeout(&self) -> Option<Time> {
        None
    }

    /// Returns whether a control item or a head from this neighbour is accepted now.
    fn listens_to(&self, place: &PePosition, from: PeId) -> bool;

    /// Returns whether only receipts are left.
    fn is_over(&self, place: &PePosition) -> bool;

    /// Reports that `bytes` bytes from a neighbour have arrived, if PEs send and receive at the
    /// same time.
    fn taken(&mut self, _from: PeId, _bytes: u64) {}

    /// Returns the number of bytes of incomplete flits at which `arriving` is to be called, or
    /// `None` if it need not be.
    fn awaits_bytes(&self) -> Option<u64> {
        None
    }

    /// Reports that `bytes` bytes of incomplete flits have arrived.
    fn arriving(&mut self, _bytes: u64) {}

    /// Reports that `bytes` more bytes of the message in progress were sent or received.
    fn progress(&mut self, _now: Time, _bytes: u64) {}

    /// Returns a control item to send now, between two flits of the message in progress.
    fn interjection(&mut self, _now: Time) -> Option<(PeId, Control)> {
        None
    }

    /// Returns when [`Role::interjection`] will return an item, as far as that can be computed now.
    fn interjection_timeout(&self) -> Option<Time> {
        None
    }

    /// Returns the due time of the PE's own message, past or future, if an event sets one.
    fn was_due(&self) -> Option<Time> {
        None
    }
}

/// A PE's position in its tree.
#[derive(Clone, Debug)]
pub(super) struct PePosition {
    pub(super) tree: Arc<Tree>,
    pub(super) id: PeId,
}

impl PePosition {
    pub(super) fn parent(&self) -> Option<PeId> {
        self.tree.parent(self.id)
    }

    pub(super) fn children(&self) -> &[PeId] {
        self.tree.children(self.id)
    }

    /// Returns the child whose subtree contains the only destination of a message, if there is one.
    pub(super) fn child_toward(&self, message: &Message) -> Option<PeId> {
        self.tree.child_toward(self.id, message.destination.one()?)
    }

    /// Returns the route of a message to the root, which must come from the child on its way.
    pub(super) fn route_up(&self, from: PeId, message: &Message) -> RouteResult {
        let is_from_below = self.tree.child_toward(self.id, message.source) == Some(from);
        if !message.is_for(self.tree.root()) || !is_from_below {
            return Err(MessageFault::NoRoute);
        }
        Ok(match self.parent() {
            Some(to) => Route::relay(to),
            None => Route::deliver(),
        })
    }

    pub(super) fn is_root(&self) -> bool {
        self.id == self.tree.root()
    }

    /// Returns the children whose subtrees have messages.
    pub(super) fn children_with_messages<'a>(
        &'a self,
        schedule: &'a PeSchedule,
    ) -> impl Iterator<Item = PeId> + 'a {
        let held = schedule.child_messages.iter();
        self.children()
            .iter()
            .zip(held)
            .filter(|(_, n)| **n > 0)
            .map(|(&child, _)| child)
    }
}
