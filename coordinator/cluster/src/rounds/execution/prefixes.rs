//! The prefixes of messages that earlier runs have left at their destinations, and that need not be
//! sent again.

use std::collections::{BTreeMap, BTreeSet};

use flitcast_proto::items::Address;
use flitcast_proto::wire::control::{FromPe, Prefix};
use flitcast_proto::wire::flit::Digest;
use flitcast_proto::{MessageId, PeId};

use super::driver::{Driver, StopReason};
use super::inventory::Found;
use crate::rounds::controller::ControllerEvent;

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
            let now = self.now();
            self.controller.check_prefixes(now, *pe, prefixes.clone());
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
