//! Entries that another run has left in the output. An entry that equals its message is skipped;
//! any other entry is an error. A run that finds such entries ends before its first round and is
//! repeated with their versions, with which the sources compare their messages.

use std::collections::BTreeSet;

use flitcast_proto::{DeliveryId, DeliveryName, MessageId};

use super::resumable_job::ResumableJob;
use crate::rounds::outcome::Failure;

impl ResumableJob {
    /// Marks entries that a run has found in the output as delivered, until a source differs from
    /// them. Returns whether the run must be repeated without them.
    pub fn skip_held(&mut self, failure: &Failure) -> bool {
        for (delivery, version) in &failure.holds {
            self.progress.hold(*delivery, version);
            self.skipped.insert(*delivery);
        }
        !failure.holds.is_empty()
    }

    /// Names the entries that differ from their sources, if that is the cause of the failure.
    pub fn explain_held(&mut self, failure: &mut Failure) {
        let changed: BTreeSet<MessageId> = failure.changed.iter().copied().collect();
        let (operation, tree) = (self.whole.way.operation, self.whole.site.tree.clone());
        let differs = |it: &DeliveryId| {
            let message = operation.collective().delivered(&tree, *it);
            message.is_some_and(|(message, _)| changed.contains(&message.id))
        };
        let (differing, same): (BTreeSet<DeliveryId>, BTreeSet<DeliveryId>) =
            self.skipped.iter().copied().partition(differs);
        self.skipped = same;
        if differing.is_empty() {
            return;
        }
        let places = differing.iter().filter_map(|it| {
            let (_, at) = operation.collective().delivered(&tree, *it)?;
            Some(self.whole.place_of(*it, at))
        });
        let places: Vec<String> = places.collect();
        failure.cause = format!(
            "--output: these exist already, and differ from what is sent; \
             move them away, or replace them with --force:\n    {}",
            places.join("\n    ")
        );
        failure.at = None;
        failure.refused = true;
        failure.failed_pes.clear();
        failure.changed.clear();
        for message in changed {
            self.progress.forget(message);
        }
    }

    /// Returns the messages that were skipped because they are in the output.
    pub fn skipped(&self) -> Vec<DeliveryName> {
        let skipped: Vec<DeliveryId> = self.skipped.iter().copied().collect();
        self.names(&skipped)
    }
}
