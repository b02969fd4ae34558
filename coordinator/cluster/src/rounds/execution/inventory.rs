//! The combined reports of the PEs on the inputs and outputs of their messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use flitcast_proto::cost::MadeOf;
use flitcast_proto::items::Address;
use flitcast_proto::ops::Collective;
use flitcast_proto::wire::control::{EntryListing, Ready, Version};
use flitcast_proto::wire::flit::Digest;
use flitcast_proto::{DeliveryId, MessageId, PeId, Tree};

use crate::rounds::outcome::Unsent;
use crate::rounds::versions::SeenVersions;

/// The combined reports of all PEs.
#[derive(Debug, Default)]
pub struct Found {
    /// Lengths by delivery, of deliveries that are to be made.
    pub bytes: Vec<u64>,
    /// Files of each message, by id.
    pub made_of: Vec<MadeOf>,
    /// The file system of each PE, by PE index.
    pub file_systems: Vec<u64>,
    /// The free bytes of each of them, by PE index, as far as messages must fit in them.
    pub free_bytes: Vec<Option<u64>>,
    /// Deliveries that exist with a receipt of the job.
    pub delivered: Vec<DeliveryId>,
    /// Deliveries whose place is taken by another entry, with the PE that reported it.
    pub standing: Vec<(DeliveryId, PeId)>,
    /// The length and the digest of each entry of `standing` that can be a message.
    pub held: BTreeMap<DeliveryId, (u64, Digest)>,
    /// The deliveries of which an earlier run has left a prefix, and the length of each in bytes.
    pub prefixes: BTreeMap<DeliveryId, u64>,
    /// The versions of messages made of files, from measurements and from receipts.
    pub seen: SeenVersions,
    /// In an update: digests of the listings of messages, and the listings of the entries that deliveries
    /// replace.
    pub listings: BTreeMap<MessageId, Digest>,
    pub present: BTreeMap<DeliveryId, EntryListing>,
    /// The messages and files that are not sent because the output has them, and attributes that are not.
    pub unsent: Unsent,
}

#[derive(Debug)]
pub struct Inventory {
    tree: Arc<Tree>,
    collective: Collective,
    /// Excluded deliveries, in increasing order.
    left_out: Vec<DeliveryId>,
    found: Found,
}

impl Inventory {
    /// Creates an empty inventory; `left_out` are the excluded deliveries in increasing order.
    pub fn new(tree: &Arc<Tree>, collective: Collective, left_out: &[DeliveryId]) -> Inventory {
        let ids = collective.messages(tree);
        let ids = ids.map(|message| message.id.index() + 1);
        Inventory {
            tree: tree.clone(),
            collective,
            left_out: left_out.to_vec(),
            found: Found {
                bytes: vec![0; collective.deliveries(tree)],
                made_of: vec![MadeOf::default(); ids.max().unwrap_or(0)],
                file_systems: vec![0; tree.len()],
                free_bytes: vec![None; tree.len()],
                ..Found::default()
            },
        }
    }

    fn leaves_out(&self, delivery: DeliveryId) -> bool {
        !self.collective.can_deliver(&self.tree, delivery)
            || self.left_out.binary_search(&delivery).is_ok()
    }

    /// Returns the deliveries of a message that are not excluded.
    fn expected(&self, message: Address) -> Vec<DeliveryId> {
        let delivery = |at| self.collective.delivery(&self.tree, message.id, at);
        let all = message.ends(&self.tree).map(delivery);
        all.filter(|delivery| !self.leaves_out(*delivery)).collect()
    }

    /// Adds the report of a PE.
    ///
    /// # Errors
    ///
    /// Returns the report if it is invalid.
    pub fn take(&mut self, pe: PeId, ready: Ready) -> Result<(), Box<Ready>> {
        let prefixes = ready.prefixes.iter().map(|(of, _)| of);
        let standing = ready.standing.iter().chain(prefixes);
        let present = ready.update.present.iter().map(|it| &it.delivery);
        let mut reported = ready.delivered.iter().chain(standing).chain(present);
        if !reported.all(|it| self.collective.delivered(&self.tree, *it).is_some()) {
            return Err(Box::new(ready));
        }
        let lengths = &ready.message_bytes;
        let sent = self.collective.messages(&self.tree);
        let sent: Vec<Address> = sent.filter(|message| message.source == pe).collect();
        let states = &ready.states;
        let are_as_many = |list: usize, of: usize| list == 0 || list == of;
        if !are_as_many(lengths.len(), sent.len())
            || !are_as_many(states.len(), lengths.len())
            || !are_as_many(ready.update.sent.len(), lengths.len())
            || !are_as_many(ready.delivered_digests.len(), ready.delivered.len())
            || !are_as_many(ready.standing_bytes.len(), ready.standing.len())
            || ready.standing_digests.len() != ready.standing_bytes.len()
        {
            return Err(Box::new(ready));
        }
        let deliveries: Vec<Vec<DeliveryId>> =
            sent.iter().map(|message| self.expected(*message)).collect();
        let is_null =
            |(deliveries, bytes): (&Vec<DeliveryId>, &u64)| deliveries.is_empty() && *bytes > 0;
        if deliveries.iter().zip(lengths).any(is_null) {
            return Err(Box::new(ready));
        }
        let found = &mut self.found;
        found.unsent.unkept += *ready.unkept;
        found.file_systems[pe.index()] = ready.file_system;
        found.free_bytes[pe.index()] = ready.free_bytes;
        for (i, bytes) in lengths.iter().enumerate() {
            for delivery in &deliveries[i] {
                found.bytes[delivery.index()] = *bytes;
            }
            if let Some(&state) = states.get(i).filter(|_| *bytes > 0) {
                found.seen.measured.push(Version {
                    message: sent[i].id,
                    bytes: *bytes,
                    state,
                    digest: None,
                });
            }
            let made_of = ready.made_of.get(i).copied().unwrap_or_default();
            // Every entry has at least one byte; PEs are not trusted on this.
            found.made_of[sent[i].id.index()] = MadeOf {
                entries: made_of.entries.min(*bytes),
                cold_bytes: made_of.cold_bytes.min(*bytes),
                ..made_of
            };
        }
        let listings = sent.iter().map(|message| message.id).zip(ready.update.sent);
        found.listings.extend(listings);
        let present = ready.update.present.into_iter().map(|it| (it.delivery, it));
        found.present.extend(present);
        let with_digests = ready.delivered.iter().copied().zip(ready.delivered_digests);
        found.seen.digests.extend(with_digests);
        found.delivered.extend(ready.delivered);
        let versions = ready.standing_bytes.into_iter().zip(ready.standing_digests);
        let held = ready.standing.iter().copied().zip(versions);
        found.held.extend(held.filter(|(_, (bytes, _))| *bytes > 0));
        found.prefixes.extend(ready.prefixes);
        let standing = ready.standing.into_iter();
        found.standing.extend(standing.map(|of| (of, pe)));
        Ok(())
    }

    pub fn found(self) -> Found {
        let mut found = self.found;
        found.delivered.sort_unstable();
        found.delivered.dedup();
        for delivery in &found.delivered {
            found.bytes[delivery.index()] = 0;
        }
        // Entries may exist where no message arrives.
        found.standing.retain(|(of, _)| found.bytes[of.index()] > 0);
        found.standing.sort_unstable();
        found
    }
}

#[cfg(test)]
mod tests {
    use flitcast_plan::Algorithm;

    use super::*;
    use crate::job::test_tree::tree;

    fn inventory(operation: Algorithm, left_out: &[u32]) -> Inventory {
        let left_out: Vec<DeliveryId> = left_out.iter().copied().map(DeliveryId).collect();
        Inventory::new(&tree("star:4"), operation.collective(), &left_out)
    }

    fn ready(message_bytes: &[u64]) -> Ready {
        Ready {
            message_bytes: message_bytes.to_vec(),
            ..Ready::default()
        }
    }

    /// P3's message is excluded at P1, and P3 already has P2's message.
    #[test]
    fn each_pe_may_have_messages_and_places_for_them() {
        let left_out = [3 * 4 + 1];
        let mut gossip = inventory(Algorithm::GOSSIP_FLOOD, &left_out);
        for pe in 0..4 {
            gossip.take(PeId(pe), ready(&[u64::from(pe) + 5])).unwrap();
        }
        let report = Ready {
            delivered: vec![DeliveryId(2 * 4 + 3)],
            standing: vec![DeliveryId(2 * 4 + 3), DeliveryId(4 + 3)],
            ..ready(&[])
        };
        gossip.take(PeId(3), report).unwrap();
        let found = gossip.found();
        let bytes = [0, 5, 5, 5, 6, 0, 6, 6, 7, 7, 0, 0, 8, 0, 8, 0];
        assert_eq!(found.bytes, bytes);
        assert_eq!(found.delivered, [DeliveryId(2 * 4 + 3)]);
        assert_eq!(found.standing, [(DeliveryId(4 + 3), PeId(3))]);
        assert_eq!(found.made_of.len(), 4);

        let mut exchange = inventory(Algorithm::EXCHANGE_TREE, &left_out);
        exchange.take(PeId(2), ready(&[5, 6, 7])).unwrap();
        exchange.take(PeId(3), ready(&[8, 0, 9])).unwrap();
        let bytes = [0, 0, 0, 0, 0, 0, 0, 0, 5, 6, 0, 7, 8, 0, 9, 0];
        assert_eq!(exchange.found().bytes, bytes);
    }

    #[test]
    fn invalid_reports_are_returned() {
        let cannot = |operation, left_out: &[u32], pe, report: Ready| {
            let mut inventory = inventory(operation, left_out);
            let taken = inventory.take(PeId(pe), report.clone());
            assert_eq!(taken, Err(Box::new(report)));
            assert!(inventory.found().bytes.iter().all(|bytes| *bytes == 0));
        };
        let (scatter, gather) = (Algorithm::FARTHEST_FIRST, Algorithm::COMBINING_GATHER);
        cannot(scatter, &[], 0, ready(&[5, 6]));
        cannot(scatter, &[], 0, ready(&[5, 6, 7, 8]));
        cannot(scatter, &[], 1, ready(&[5]));
        cannot(gather, &[], 0, ready(&[5]));
        cannot(gather, &[], 1, ready(&[5, 6]));
        // These were delivered before.
        cannot(scatter, &[2], 0, ready(&[5, 6, 7]));
        cannot(gather, &[1, 2], 2, ready(&[6]));
        for none in [2 * 4 + 2, 16] {
            for operation in [Algorithm::GOSSIP_FLOOD, Algorithm::EXCHANGE_TREE] {
                let mut report = ready(&[]);
                report.standing = vec![DeliveryId(none)];
                cannot(operation, &[], 2, report);
            }
        }
        for of in [0, 4] {
            let mut report = ready(&[]);
            report.delivered = vec![DeliveryId(of)];
            cannot(scatter, &[], 1, report);
        }
    }

    #[test]
    fn delivered_messages_are_neither_sent_nor_in_the_way() {
        let mut scatter = inventory(Algorithm::FARTHEST_FIRST, &[]);
        let made_of = MadeOf {
            entries: 9,
            cold_bytes: 9,
            ..MadeOf::default()
        };
        let root = Ready {
            standing: vec![DeliveryId(3), DeliveryId(2)],
            made_of: vec![made_of; 2],
            ..ready(&[5, 6, 7])
        };
        scatter.take(PeId(0), root).unwrap();
        for pe in [2, 1] {
            let report = Ready {
                delivered: vec![DeliveryId(2)],
                file_system: u64::from(pe),
                ..ready(&[])
            };
            scatter.take(PeId(pe), report).unwrap();
        }
        let found = scatter.found();
        assert_eq!(found.bytes, [0, 5, 0, 7]);
        assert_eq!(found.delivered, [DeliveryId(2)]);
        assert_eq!(found.standing, [(DeliveryId(3), PeId(0))]);
        assert_eq!(found.file_systems, [0, 1, 2, 0]);
        let entries: Vec<u64> = found.made_of.iter().map(|of| of.entries).collect();
        assert_eq!(entries, [0, 5, 6, 0], "no entry is without a byte");
    }
}
