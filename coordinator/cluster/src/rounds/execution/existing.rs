//! The prefixes of messages that earlier runs have left at their destinations, and in an update the files that
//! destinations have already: these need not be sent again.

use std::collections::{BTreeMap, BTreeSet};

use flitcast_proto::items::Address;
use flitcast_proto::wire::control::{FromPe, MessageFiles, Prefix, SkippedFiles, ToPe};
use flitcast_proto::wire::flit::Digest;
use flitcast_proto::{DeliveryId, MessageId, PeId};

use super::driver::{Driver, StopReason};
use super::inventory::Found;
use crate::rounds::controller::{ControllerEvent, out_of_turn};

impl Driver<'_> {
    /// Returns the prefixes that the source of a message and all its destinations have in common, by
    /// their digests. A dry run, which changes nothing, takes them for equal. There are none if
    /// several rounds follow: each sends everything.
    pub async fn common_prefixes(&mut self, found: &Found) -> Result<Vec<Prefix>, StopReason> {
        if found.prefixes.is_empty() || self.request.rounds > 1 {
            return Ok(Vec::new());
        }
        let candidates = self.candidates(found);
        if self.request.is_dry_run() {
            return Ok(candidates.into_iter().map(|(prefix, _)| prefix).collect());
        }
        let mut requested: BTreeMap<PeId, Vec<Prefix>> = BTreeMap::new();
        for (prefix, ends) in &candidates {
            for pe in ends {
                requested.entry(*pe).or_default().push(*prefix);
            }
        }
        for (pe, prefixes) in &requested {
            let prefixes = prefixes.clone();
            self.send_request(*pe, ToPe::CheckPrefixes { prefixes });
        }
        let mut digests: BTreeMap<MessageId, BTreeSet<Digest>> = BTreeMap::new();
        while let Some(answer) = self.next_answer().await? {
            if let ControllerEvent::Answered(pe, FromPe::PrefixesChecked { digests: checked }) =
                answer
            {
                for (prefix, digest) in requested[&pe].iter().zip(checked) {
                    digests.entry(prefix.message).or_default().insert(digest);
                }
            }
        }
        let is_common = |prefix: &Prefix| {
            let digests = &digests[&prefix.message];
            digests.len() == 1 && !digests.contains(&Digest::default())
        };
        let prefixes = candidates.into_iter().map(|(prefix, _)| prefix);
        Ok(prefixes.filter(is_common).collect())
    }

    /// Returns the least of the prefixes that the destinations of each message have, and the PEs that
    /// have it. A byte of the message is left, at least: an empty message would not be delivered.
    fn candidates(&self, found: &Found) -> Vec<(Prefix, Vec<PeId>)> {
        let collective = self.request.way.operation.collective();
        let tree = &self.request.site.tree;
        let of = |message: Address| {
            let delivery = |at| collective.delivery(tree, message.id, at);
            let is_expected = |at: &PeId| found.bytes[delivery(*at).index()] > 0;
            let mut ends: Vec<PeId> = message.ends(tree).filter(is_expected).collect();
            let prefix = |at: &PeId| found.prefixes.get(&delivery(*at)).copied();
            let kept = ends.iter().map(prefix);
            let rest = found.bytes[delivery(*ends.first()?).index()] - 1;
            let bytes = kept.min()??.min(rest);
            ends.push(message.source);
            let message = message.id;
            (bytes > 0).then_some((Prefix { message, bytes }, ends))
        };
        collective.messages(tree).filter_map(of).collect()
    }

    /// Returns the lengths by delivery without the prefixes.
    pub fn without_prefixes(&self, found: &Found, prefixes: &[Prefix]) -> Vec<u64> {
        let (operation, tree) = (self.request.way.operation, &self.request.site.tree);
        let mut bytes = found.bytes.clone();
        for prefix in prefixes {
            let Some(message) = operation.address(tree, prefix.message) else {
                continue;
            };
            for at in message.ends(tree) {
                let delivery = operation.collective().delivery(tree, prefix.message, at);
                let rest = &mut bytes[delivery.index()];
                *rest = rest.saturating_sub(prefix.bytes);
            }
        }
        bytes
    }
}

/// Maximum number of hashes of files in one message to a source: half of what a frame can have.
const MOST_FILES: usize = 2 << 20;

impl Driver<'_> {
    /// In an update, leaves out the messages that equal what is at their destinations, and of the others
    /// the files that all destinations of the message have.
    pub async fn skip_present(&mut self, found: &mut Found) -> Result<(), StopReason> {
        let collective = self.request.way.operation.collective();
        let tree = self.request.site.tree.clone();
        found.unsent.lengths.clone_from(&found.bytes);
        if found.listings.is_empty() {
            return Ok(());
        }
        let mut requested = BTreeMap::new();
        for message in collective.messages(&tree) {
            let ends = message.ends(&tree);
            let deliveries = ends.map(|at| collective.delivery(&tree, message.id, at));
            let missing: Vec<DeliveryId> = deliveries.filter(|it| found.is_missing(*it)).collect();
            let missing = found.without_equal(message, missing);
            let files = found.common_files(&missing);
            let (all, of) = requested.entry(message.source).or_insert((0, Vec::new()));
            if !files.is_empty() && *all + files.len() <= MOST_FILES {
                *all += files.len();
                let id = message.id;
                of.push((missing, MessageFiles { message: id, files }));
            }
        }
        requested.retain(|_, (_, of)| !of.is_empty());
        for (pe, (_, of)) in &requested {
            let present = of.iter().map(|(_, files)| files.clone()).collect();
            self.send_request(*pe, ToPe::SkipFiles { present });
        }
        while let Some(answer) = self.next_answer().await? {
            let ControllerEvent::Answered(pe, FromPe::FilesSkipped { skipped }) = answer else {
                continue;
            };
            for ((missing, _), files) in requested[&pe].1.iter().zip(&skipped) {
                if files.message_bytes == 0 {
                    return Err(out_of_turn(pe, &FromPe::FilesSkipped { skipped }).into());
                }
                found.skip(missing, files);
            }
        }
        Ok(())
    }
}

impl Found {
    fn is_missing(&self, delivery: DeliveryId) -> bool {
        self.bytes[delivery.index()] > 0
    }

    /// Returns these deliveries of a message without those that equal what is at their destinations, which
    /// are complete.
    fn without_equal(&mut self, message: Address, missing: Vec<DeliveryId>) -> Vec<DeliveryId> {
        let Some(listing) = self.listings.get(&message.id) else {
            return missing;
        };
        let is_equal = |it: &DeliveryId| {
            let present = self.present.get(it);
            present.is_some_and(|present| present.digest == *listing)
        };
        let (equal, rest): (Vec<DeliveryId>, _) = missing.into_iter().partition(is_equal);
        for delivery in &equal {
            self.bytes[delivery.index()] = 0;
        }
        self.unsent.messages.extend(&equal);
        self.delivered.extend(equal);
        self.delivered.sort_unstable();
        rest
    }

    /// Returns the hashes of the files that the destinations of all these deliveries have.
    fn common_files(&mut self, deliveries: &[DeliveryId]) -> Vec<u64> {
        let all: Option<Vec<Vec<u64>>> = deliveries
            .iter()
            .map(|it| Some(self.present.remove(it)?.files))
            .collect();
        let Some((mut common, others)) = all.and_then(|mut all| Some((all.pop()?, all))) else {
            return Vec::new();
        };
        for mut files in others {
            files.sort_unstable();
            common.retain(|file| files.binary_search(file).is_ok());
        }
        common
    }

    /// Stores the files that are left out of a message.
    fn skip(&mut self, deliveries: &[DeliveryId], skipped: &SkippedFiles) {
        for delivery in deliveries {
            self.bytes[delivery.index()] = skipped.message_bytes;
            self.unsent.files.files += skipped.files;
            self.unsent.files.file_bytes += skipped.file_bytes;
        }
    }
}
