//! The tree without its absent PEs, for planners that require all PEs to be present.

use std::borrow::Cow;

use flitcast_proto::items::{Packing, ScheduledHop};
use flitcast_proto::{MessageId, PeId, Tree};

use crate::timing::Timing;

/// The present PEs, renumbered, and their tree.
#[derive(Debug)]
pub(super) struct Present<'a> {
    pub(super) tree: Cow<'a, Tree>,
    pub(super) pes: Vec<PeId>,
}

impl Present<'_> {
    /// Renumbers the present PEs of a tree.
    pub(super) fn of(tree: &Tree) -> Present<'_> {
        let pes: Vec<PeId> = tree.pes().collect();
        if pes.len() == tree.len() {
            let tree = Cow::Borrowed(tree);
            return Present { tree, pes };
        }
        let number = |pe: PeId| pes.binary_search(&pe).ok().map(|place| PeId(place as u32));
        let parents = pes.iter().map(|pe| tree.parent(*pe).and_then(number));
        let root = number(tree.root()).unwrap_or(PeId::ROOT);
        match Tree::with_absent(root, parents.collect()) {
            Ok(tree) => Present {
                tree: Cow::Owned(tree),
                pes,
            },
            // Absent PEs have no children.
            Err(_) => unreachable!("a tree without those that it lacks is a tree"),
        }
    }

    pub(super) fn who(&self, number: PeId) -> PeId {
        self.pes[number.index()]
    }

    /// Returns the crossings of a plan for the present PEs with the PEs' own numbers, and `message` of each
    /// message. Without a set-up time, packets are flits.
    pub(super) fn renumbered(
        &self,
        mut hops: Vec<ScheduledHop>,
        timing: &Timing,
        message: impl Fn(MessageId) -> MessageId,
    ) -> Vec<ScheduledHop> {
        for hop in &mut hops {
            if timing.setup_flits == 0 {
                hop.packing = Packing::Flits;
            }
            hop.message = message(hop.message);
            (hop.from, hop.to) = (self.who(hop.from), self.who(hop.to));
        }
        hops
    }
}
