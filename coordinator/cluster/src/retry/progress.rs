//! The state of a job between two runs, and the next run that follows from it: the excluded PEs,
//! the tree, the messages, and whether there is a next run. This module reads no file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_proto::tree::Repair;
use flitcast_proto::wire::control::Version;
use flitcast_proto::wire::flit::Digest;
use flitcast_proto::{DeliveryId, MessageId, PeId, Tree};

use crate::rounds::outcome::DeliverySummary;
use crate::rounds::versions::SeenVersions;

/// The state of a job between two runs.
#[derive(Clone, Debug)]
pub struct DeliveryProgress {
    /// The whole tree, dead PEs included.
    tree: Arc<Tree>,
    /// The operation, which numbers the deliveries.
    operation: Algorithm,
    /// The known lengths by delivery, in bytes; 0 for an unknown length.
    pub(super) bytes: Vec<u64>,
    /// The excluded PEs, each with a reason.
    pub(super) dead: BTreeMap<PeId, String>,
    /// The complete deliveries.
    pub(super) delivered: BTreeSet<DeliveryId>,
    /// The known version of each message that consists of files.
    versions: BTreeMap<MessageId, Version>,
}

#[derive(Clone, Debug)]
pub struct NextRun {
    /// The repaired tree, and the PEs with a new parent.
    pub repair: Repair,
    pub operation: Algorithm,
    /// The complete deliveries, whose messages are null in this run, in increasing order.
    pub left_out: Vec<DeliveryId>,
    /// The missing deliveries, also those of dead PEs, in increasing order.
    pub missing: Vec<DeliveryId>,
    /// The missing deliveries whose source and destination are both alive.
    pub sendable: Vec<DeliveryId>,
}

impl DeliveryProgress {
    /// Returns the state at the beginning. `bytes` has the lengths by delivery, 0 for an unknown
    /// length.
    pub fn new(tree: Arc<Tree>, operation: Algorithm, bytes: Vec<u64>) -> DeliveryProgress {
        DeliveryProgress {
            tree,
            operation,
            bytes,
            dead: BTreeMap::new(),
            delivered: BTreeSet::new(),
            versions: BTreeMap::new(),
        }
    }

    /// Stores lengths by delivery, except zeros: delivered messages are null in later runs.
    pub fn learn_bytes(&mut self, bytes: &[u64]) {
        let known = self.bytes.iter_mut().zip(bytes);
        for (known, bytes) in known.filter(|(_, bytes)| **bytes > 0) {
            *known = *bytes;
        }
    }

    /// Stores the result of a failed run, and the PEs that caused the failure, each with a reason.
    pub fn learn(
        &mut self,
        aftermath: &DeliverySummary,
        failed_pes: impl IntoIterator<Item = (PeId, String)>,
    ) {
        self.learn_bytes(&aftermath.bytes);
        let delivered = aftermath.delivered.iter().chain(&aftermath.found);
        self.learn_versions(delivered.copied(), &aftermath.seen);
        for (pe, why) in failed_pes {
            self.learn_dead(pe, why);
        }
    }

    pub fn learn_delivered(&mut self, deliveries: impl IntoIterator<Item = DeliveryId>) {
        self.delivered.extend(deliveries);
    }

    /// Stores the versions that a run has seen, and their complete deliveries. The first known
    /// digest of a message is the version of the job; a delivery with another digest is still
    /// missing.
    pub fn learn_versions(
        &mut self,
        delivered: impl IntoIterator<Item = DeliveryId>,
        seen: &SeenVersions,
    ) {
        for measured in &seen.measured {
            let known = self.versions.get(&measured.message);
            let digest = known.and_then(|known| known.digest);
            let version = Version {
                digest,
                ..*measured
            };
            self.versions.insert(measured.message, version);
        }
        for delivery in delivered {
            if self.learn_digest(delivery, seen.digests.get(&delivery)) {
                self.delivered.insert(delivery);
            }
        }
    }

    /// Stores the digest of a delivery. Returns whether it is the version of the job.
    pub fn learn_digest(&mut self, delivery: DeliveryId, digest: Option<&Digest>) -> bool {
        let message = self.operation.collective().delivered(&self.tree, delivery);
        let version = message.and_then(|(message, _)| self.versions.get_mut(&message.id));
        match (version, digest) {
            (Some(version), Some(digest)) => *version.digest.get_or_insert(*digest) == *digest,
            _ => true,
        }
    }

    /// Stores the versions of a record.
    pub fn recall_versions(&mut self, versions: &[Version]) {
        let by_message = versions.iter().map(|version| (version.message, *version));
        self.versions.extend(by_message);
    }

    /// Stores a delivery that is complete if its source turns out to have this version.
    pub fn hold(&mut self, delivery: DeliveryId, version: &Version) {
        let known = self.versions.get(&version.message);
        // A version with a digest has been compared with the source.
        if known.is_none_or(|known| known.digest.is_none()) {
            self.versions.insert(version.message, *version);
        }
        self.delivered.insert(delivery);
    }

    /// Removes the version and the deliveries of a message, so that another version can be sent.
    pub fn forget(&mut self, message: MessageId) {
        self.versions.remove(&message);
        let (operation, tree) = (self.operation, self.tree.clone());
        self.delivered.retain(|delivery| {
            let of = operation.collective().delivered(&tree, *delivery);
            of.is_none_or(|(of, _)| of.id != message)
        });
    }

    /// Returns the known versions, by message.
    pub fn versions(&self) -> Vec<Version> {
        self.versions.values().copied().collect()
    }

    /// Excludes a PE from the following runs. The root cannot be excluded.
    pub fn learn_dead(&mut self, pe: PeId, why: String) {
        if pe != self.tree.root() {
            self.dead.insert(pe, why);
        }
    }

    /// Returns the missing deliveries, also those of dead PEs, in increasing order.
    pub fn missing(&self) -> Vec<DeliveryId> {
        let all = self.operation.collective().all_deliveries(&self.tree);
        let nonnull = all.filter(|it| self.bytes[it.index()] > 0);
        nonnull.filter(|it| !self.delivered.contains(it)).collect()
    }

    /// Returns the tree without the dead PEs. `can_reach(orphan, ancestor)` returns whether the
    /// second may become the parent of the first.
    pub fn repair(&self, can_reach: impl Fn(PeId, PeId) -> bool) -> Repair {
        let dead: Vec<PeId> = self.dead.keys().copied().collect();
        self.tree.without(&dead, can_reach)
    }

    pub fn next(&self, operation: Algorithm, can_reach: impl Fn(PeId, PeId) -> bool) -> NextRun {
        let repair = self.repair(can_reach);
        let tree = &repair.tree;
        let missing = self.missing();
        let is_there = |it: &DeliveryId| operation.collective().can_deliver(tree, *it);
        let sendable = missing.iter().copied().filter(is_there).collect();
        NextRun {
            // The repaired tree of a path need not be a path.
            operation: operation.on(tree),
            left_out: self.delivered.iter().copied().collect(),
            missing,
            sendable,
            repair,
        }
    }

    /// Checks that another run follows a failure that these PEs caused, if `left` of the requested
    /// retries are left.
    ///
    /// # Errors
    ///
    /// Returns the reason why no run follows; `None` if no retry was requested.
    pub fn check_can_continue(
        &self,
        failed_pes: &[PeId],
        [left, requested]: [u32; 2],
        can_reach: impl Fn(PeId, PeId) -> bool,
    ) -> Result<(), Option<String>> {
        if requested == 0 {
            return Err(None);
        }
        let refused = |why: &str| Err(Some(why.to_owned()));
        let root = self.tree.root();
        if failed_pes.contains(&root) {
            let root = format!("{root} is the root: nothing can be repaired without it");
            return refused(&root);
        }
        if failed_pes.is_empty() {
            return refused("it is no PE's failure: leaving one out would not help");
        }
        let tree = self.repair(can_reach).tree;
        let can_be_sent = |it: &DeliveryId| self.operation.collective().can_deliver(&tree, *it);
        if !self.missing().iter().any(can_be_sent) {
            return refused("there is nothing left to send");
        }
        if left == 0 {
            return refused(&format!(
                "it has been retried as often as --retry {requested} says"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::test_tree::tree as tree_of;

    fn progress(tree: &str, bytes: u64) -> DeliveryProgress {
        let tree = tree_of(tree);
        let mut lengths = vec![bytes; tree.len()];
        lengths[0] = 0;
        DeliveryProgress::new(tree, Algorithm::FARTHEST_FIRST, lengths)
    }

    fn deliveries<const N: usize>(ids: [u32; N]) -> [DeliveryId; N] {
        ids.map(DeliveryId)
    }

    fn ids<const N: usize>(ids: [u32; N]) -> [PeId; N] {
        ids.map(PeId)
    }

    const ANYWHERE: fn(PeId, PeId) -> bool = |_, _| true;

    #[test]
    fn dead_pes_and_delivered_messages_are_left_out() {
        let mut progress = progress("path:5", 7);
        progress.learn_dead(PeId(2), "killed".to_owned());
        progress.learn_dead(PeId::ROOT, "never".to_owned());
        progress.learn_delivered(deliveries([4, 1]));
        let next = progress.next(Algorithm::FARTHEST_FIRST, ANYWHERE);
        assert_eq!(next.operation, Algorithm::FARTHEST_FIRST);
        assert_eq!(next.left_out, deliveries([1, 4]));
        assert_eq!(next.missing, deliveries([2, 3]));
        assert_eq!(next.sendable, deliveries([3]));
        assert_eq!(next.repair.tree.parent(PeId(3)), Some(PeId(1)));
        let stranded = progress.next(Algorithm::FARTHEST_FIRST, |_, _| false);
        assert_eq!(stranded.repair.stranded, ids([3, 4]));
        assert!(stranded.sendable.is_empty());
    }

    #[test]
    fn deliveries_with_a_dead_end_stay_missing() {
        let tree = tree_of("star:4");
        let exchange = Algorithm::EXCHANGE_TREE;
        let bytes = exchange.collective().by_delivery(&tree, &[1; 16]);
        let mut progress = DeliveryProgress::new(tree, exchange, bytes);
        progress.learn_dead(PeId(2), "killed".to_owned());
        let at = |source: u32, at: u32| DeliveryId(source * 4 + at);
        let there = [at(0, 1), at(0, 3), at(1, 0), at(1, 2), at(3, 0)];
        progress.learn_delivered(there);
        let next = progress.next(exchange, ANYWHERE);
        assert_eq!(next.left_out, there);
        assert_eq!(next.sendable, [at(1, 3), at(3, 1)]);
        let dead = [at(0, 2), at(2, 0), at(2, 1), at(2, 3), at(3, 2)];
        let mut missing = [&next.sendable[..], &dead].concat();
        missing.sort_unstable();
        assert_eq!(next.missing, missing);
        let can_continue = progress.check_can_continue(&ids([2]), [1, 2], ANYWHERE);
        assert_eq!(can_continue, Ok(()));
        progress.learn_delivered(next.sendable);
        let nothing = Err(Some("there is nothing left to send".to_owned()));
        let can_continue = progress.check_can_continue(&ids([2]), [1, 2], ANYWHERE);
        assert_eq!(can_continue, nothing);
    }

    #[test]
    fn algorithms_for_paths_are_replaced_on_other_trees() {
        let mut path = progress("path:4", 7);
        path.learn_dead(PeId(2), "killed".to_owned());
        let on_a_path = path.next(Algorithm::SHOULDER_TAP, ANYWHERE);
        assert_eq!(on_a_path.operation, Algorithm::SHOULDER_TAP);
        let mut tree = progress("path:4", 7);
        tree.learn_dead(PeId(3), "killed".to_owned());
        let to_root = |_, ancestor| ancestor == PeId::ROOT;
        let shorter = tree.next(Algorithm::SHOULDER_TAP, to_root);
        assert_eq!(shorter.operation, Algorithm::SHOULDER_TAP);
        let mut split = progress("path:5", 7);
        for pe in [1, 3] {
            split.learn_dead(PeId(pe), "killed".to_owned());
        }
        let star = split.next(Algorithm::SHOULDER_TAP, to_root);
        assert_eq!(star.operation, Algorithm::CERTIFICATION_PIPELINED);
    }

    #[test]
    fn a_length_is_not_forgotten_when_its_message_is_null_for_once() {
        let mut progress = progress("path:3", 0);
        assert!(progress.missing().is_empty());
        progress.learn_bytes(&[0, 5, 9]);
        progress.learn_bytes(&[0, 0, 8]);
        assert_eq!(progress.bytes, [0, 5, 8]);
        assert_eq!(progress.missing(), deliveries([1, 2]));
    }

    #[test]
    fn another_run_follows_only_if_leaving_a_pe_out_helps() {
        let mut lost = progress("path:3", 7);
        lost.learn_dead(PeId(1), "killed".to_owned());
        let check = |progress: &DeliveryProgress, failed_pes: &[PeId], runs| {
            let checked = progress.check_can_continue(failed_pes, runs, ANYWHERE);
            checked.map_err(|why| why.unwrap_or_default())
        };
        let why_not = |why: &str| Err(why.to_owned());
        assert_eq!(check(&lost, &ids([1]), [1, 2]), Ok(()));
        assert_eq!(check(&lost, &ids([1]), [0, 0]), why_not(""));
        let often = why_not("it has been retried as often as --retry 2 says");
        assert_eq!(check(&lost, &ids([1]), [0, 2]), often);
        let root = check(&lost, &ids([1, 0]), [1, 2]);
        let no_root = "P0 is the root: nothing can be repaired without it";
        assert_eq!(root, why_not(no_root));
        let no_pe = "it is no PE's failure: leaving one out would not help";
        assert_eq!(check(&lost, &[], [1, 2]), why_not(no_pe));
        lost.learn_delivered(deliveries([2]));
        let nothing = why_not("there is nothing left to send");
        assert_eq!(check(&lost, &ids([1]), [1, 2]), nothing);
    }
}
