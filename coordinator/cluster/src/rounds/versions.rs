//! The versions of messages made of files that a run has seen: as their sources were measured, and
//! as their destinations have them. A run, with all its retries, has one version of each message.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use flitcast_plan::Algorithm;
use flitcast_proto::items::{Address, Destination};
use flitcast_proto::wire::control::{Report, Version};
use flitcast_proto::wire::flit::Digest;
use flitcast_proto::{DeliveryId, MessageId, PeId, Tree};

use crate::text::phrases::names;

/// The versions that sources and destinations have reported in a run.
#[derive(Clone, Debug, Default)]
pub struct SeenVersions {
    /// Messages as their sources were measured, without digests.
    pub measured: Vec<Version>,
    /// The digests of what was delivered, in this run or before.
    pub digests: BTreeMap<DeliveryId, Digest>,
}

impl SeenVersions {
    /// Stores the digests in reports.
    pub fn learn(&mut self, operation: Algorithm, tree: &Tree, reports: &[Report]) {
        for arrival in reports.iter().flat_map(|report| &report.arrivals) {
            let (message, at) = (arrival.message, arrival.destination);
            let delivery = operation.collective().delivery(tree, message, at);
            let digest = arrival.digest.filter(|_| arrival.delivered);
            self.digests.extend(digest.map(|digest| (delivery, digest)));
        }
    }

    /// Returns the first message of which there are several versions at its destinations, including
    /// those that had it before, with the digest in `known`, and a description with the PEs that have each
    /// version. `input` is the place of its source.
    pub fn conflict(
        &self,
        operation: Algorithm,
        tree: &Tree,
        known: &[Version],
        input: &str,
    ) -> Option<(MessageId, String)> {
        let mut all: BTreeMap<MessageId, BTreeMap<Digest, Vec<PeId>>> = BTreeMap::new();
        for version in known {
            let digest = version.digest.map(|digest| (digest, Vec::new()));
            all.entry(version.message).or_default().extend(digest);
        }
        for (delivery, digest) in &self.digests {
            if let Some((message, at)) = operation.collective().delivered(tree, *delivery) {
                let holders = all.entry(message.id).or_default();
                holders.entry(*digest).or_default().push(at);
            }
        }
        let mut all = all.into_iter();
        let (message, holders) = all.find(|(_, holders)| holders.len() > 1)?;
        let name = match operation.address(tree, message) {
            Some(Address {
                source,
                destination: Destination::One(pe),
                ..
            }) => format!("{source}'s message for {pe}"),
            Some(message) => format!("{}'s message", message.source),
            None => "a message".to_owned(),
        };
        let mut text = format!("{input}: {name} has several versions:");
        for (digest, holders) in holders {
            let digest = u128::from_be_bytes(digest);
            let holders = match holders.is_empty() {
                true => "delivered before".to_owned(),
                false => format!("at {}", names(&holders)),
            };
            // Writing to a `String` cannot fail.
            let _ = write!(text, " {digest:032x} {holders},");
        }
        text.pop();
        text.push_str("; send one version to all with `flitcast resume RECORD --force`");
        Some((message, text))
    }
}

#[cfg(test)]
mod tests {
    use flitcast_proto::RoundId;
    use flitcast_proto::wire::control::Arrival;

    use super::*;
    use crate::job::test_tree::{self, tree};

    /// Returns the reports on the message of P0 that these PEs received, each with this digest.
    fn reports(got: &[(u32, u8)]) -> Vec<Report> {
        let report = |&(pe, digest): &(u32, u8)| {
            let arrival = Arrival {
                message: MessageId(0),
                digest: (digest > 0).then_some([digest; 16]),
                ..test_tree::arrival(PeId(pe))
            };
            Report::blank(RoundId(1), vec![arrival])
        };
        got.iter().map(report).collect()
    }

    #[test]
    fn destinations_that_have_other_bytes_are_found() {
        let tree = tree("star:4");
        let known = |digest: u8| Version {
            message: MessageId(0),
            bytes: 1,
            state: 0,
            digest: Some([digest; 16]),
        };
        for operation in [Algorithm::BROADCAST_CHILD_BY_CHILD, Algorithm::GOSSIP_FLOOD] {
            let conflict = |got: &[(u32, u8)], known: &[Version]| {
                let mut seen = SeenVersions::default();
                seen.learn(operation, &tree, &reports(got));
                seen.conflict(operation, &tree, known, "w/model")
            };
            assert_eq!(conflict(&[(1, 5), (2, 5), (3, 0)], &[]), None);
            assert_eq!(conflict(&[(1, 5), (2, 5)], &[known(5)]), None);
            let found = conflict(&[(1, 5), (2, 6), (3, 5)], &[]);
            let (_, text) = found.expect("P2 has another one");
            let (five, six) = ("05".repeat(16), "06".repeat(16));
            let versions = format!(" {five} at P1, P3, {six} at P2; ");
            assert!(text.starts_with("w/model: "), "{text}");
            assert!(text.contains(&versions), "{text}");
            let before = conflict(&[(1, 5)], &[known(7)]);
            let (_, text) = before.expect("it was another one");
            assert!(text.contains("07 delivered before"), "{text}");
        }
    }
}
