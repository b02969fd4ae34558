//! What an operation's own file says of a PE: the part of its state machine that differs.

use std::fmt::Debug;
use std::sync::Arc;

use super::brief::Brief;
use crate::items::{Control, Message, Route, Transmit, Violation};
use crate::{PeId, Time, Tree};

/// The part of a PE's state that depends on the operation. [`Pe`](super::Pe) asks it, and has
/// checked before what every operation asks for.
pub(super) trait Role: Debug + Send + Sync {
    /// P0 begins the round.
    fn trigger(&mut self, now: Time);

    /// Where the PE stands, in messages on what has no place there: "in a scatter".
    fn phase(&self) -> &'static str;

    /// A control item came in that is no receipt. Where nobody sends any, none has a place.
    fn control(
        &mut self,
        _place: &Place,
        _now: Time,
        from: PeId,
        item: Control,
    ) -> Result<(), Violation> {
        let phase = self.phase();
        Err(Violation::UnexpectedControl { from, item, phase })
    }

    /// The head of a message came in: what becomes of the message.
    fn route(&mut self, place: &Place, from: PeId, message: &Message) -> Result<Route, Violation>;

    /// The message of which this neighbour is to send the next part now, and how far, in bytes
    /// from its start.
    fn next_part(&mut self, _from: PeId) -> Option<(Message, u64)> {
        None
    }

    /// Whether messages are yet to come from a neighbour ahead of its receipt, where both may
    /// come from one.
    fn has_more_from(&self, _from: PeId) -> bool {
        false
    }

    /// The last flit of a message, or of a part of it, has left the receive port.
    fn received(&mut self, from: PeId, message: &Message);

    /// What the send port, which is free, does next.
    fn next(&mut self, place: &Place, now: Time) -> Option<Transmit>;

    /// The send port has finished with what [`Role::next`] gave it.
    fn sent(&mut self, _transmit: &Transmit) {}

    /// When [`Role::next`] may have something, if the passing of time alone brings it.
    fn timeout(&self) -> Option<Time> {
        None
    }

    /// Whether a control item or a head of this neighbour would be taken now.
    fn listens_to(&self, place: &Place, from: PeId) -> bool;

    /// Whether nothing is left to do but receipts.
    fn is_over(&self, place: &Place) -> bool;

    /// So many bytes of what a neighbour sends have come, where PEs send and receive at once.
    fn taken(&mut self, _from: PeId, _bytes: u64) {}

    /// How many bytes of flits that are not whole have to be here until it wants to know of it;
    /// `None`, if it does not.
    fn awaits_bytes(&self) -> Option<u64> {
        None
    }

    /// So many are.
    fn arriving(&mut self, _bytes: u64) {}

    /// So many more bytes of the message under way have passed.
    fn progress(&mut self, _now: Time, _bytes: u64) {}

    /// A control item that goes now, between two flits of the message under way.
    fn interjection(&mut self, _now: Time) -> Option<(PeId, Control)> {
        None
    }

    /// When [`Role::interjection`] will have something, as far as is known.
    fn interjection_timeout(&self) -> Option<Time> {
        None
    }

    /// When the PE's own message is or was due, where something says it.
    fn was_due(&self) -> Option<Time> {
        None
    }
}

/// Where a PE stands in its tree.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) tree: Arc<Tree>,
    pub(super) id: PeId,
}

impl Place {
    pub(super) fn parent(&self) -> Option<PeId> {
        self.tree.parent(self.id)
    }

    pub(super) fn children(&self) -> &[PeId] {
        self.tree.children(self.id)
    }

    /// The child below which a message ends that has one destination, if it ends below.
    pub(super) fn child_toward(&self, message: &Message) -> Option<PeId> {
        self.tree.child_toward(self.id, message.destination.one()?)
    }

    pub(super) fn is_root(&self) -> bool {
        self.id == self.tree.root()
    }

    /// The children whose subtrees hold messages.
    pub(super) fn children_with_messages<'a>(
        &'a self,
        brief: &'a Brief,
    ) -> impl Iterator<Item = PeId> + 'a {
        let held = brief.child_messages.iter();
        self.children()
            .iter()
            .zip(held)
            .filter(|(_, n)| **n > 0)
            .map(|(&child, _)| child)
    }
}
