//! The assignments of all PEs, and their reports on the inputs and outputs of their messages.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use flitcast_proto::ops::Layout;
use flitcast_proto::wire::control::{Assignment, FromPe, Job, Lane, Payload, Peer, ToPe, Version};
use flitcast_proto::wire::flit::Digest;
use flitcast_proto::wire::negotiate;
use flitcast_proto::{DeliveryId, MessageId, PeId, Tree};

use super::driver::{Driver, StopReason, or_joined_from};
use super::inventory::{Found, Inventory};
use crate::observe::phase::Phase;
use crate::rounds::controller::{ControllerEvent, FailureCause, has_part_in, out_of_turn};
use crate::rounds::outcome::DeliverySummary;
use crate::text::printable::in_one_line;

impl Driver<'_> {
    /// Sends every PE its assignment; returns what the PEs have found.
    pub async fn assign(&mut self) -> Result<Found, StopReason> {
        self.enter(Phase::Connect);
        let request = self.request;
        let decisions = request.decisions();
        let left_out = &request.messages.left_out;
        for pe in request.site.tree.pes() {
            let Some(register) = self.cluster.register(pe) else {
                continue;
            };
            let version = negotiate(register.min_version, register.max_version)
                .map_err(|error| FailureCause::protocol(pe, format!("{pe}: {error}")))?;
            let assignment = Assignment {
                version,
                tree: request.site.tree.clone(),
                parent_listen: self.parent_listen(&request.site.tree, pe, 0)?,
                lanes: self.lanes_of(pe)?,
                peers: self.peers(pe)?,
                collective: decisions.way.operation.collective(),
                flit_bytes: decisions.flit_bytes,
                payload: self.payload_for(pe),
                links: request.site.links_of(pe),
                record_spans: request.pictures.wanted(),
                left_out: left_out.clone(),
                job: Job {
                    id: request.messages.job_id,
                    recorded: request.messages.recorded,
                    later_output: request.messages.later_output.clone(),
                },
                own_links: request.site.own_links,
                versions: self.versions_for(pe),
                dry_run: request.is_dry_run(),
                max_bits_per_second: request.site.limit.map_or(0, |limit| limit.0),
            };
            self.send_request(pe, ToPe::Assignment(assignment));
            // One at a time, because assignments may be long.
            self.send_commands().await;
        }
        let collective = request.way.operation.collective();
        let mut inventory = Inventory::new(&request.site.tree, collective, left_out);
        while let Some(answer) = self.next_answer().await? {
            if let ControllerEvent::Answered(pe, FromPe::Ready(ready)) = answer {
                let taken = inventory.take(pe, ready);
                taken.map_err(|ready| out_of_turn(pe, &FromPe::Ready(*ready)))?;
            }
        }
        let mut found = inventory.found();
        self.skip_present(&mut found).await?;
        self.known = DeliverySummary {
            bytes: found.unsent.lengths.clone(),
            found: found.delivered.clone(),
            seen: found.seen.clone(),
            ..DeliverySummary::default()
        };
        match found.standing.is_empty() {
            true => Ok(found),
            false => Err(self.in_the_way(&found).into()),
        }
    }

    /// Returns the error for existing entries at destinations: the list of those that differ from
    /// the messages, or else of those to be compared with them.
    fn in_the_way(&self, found: &Found) -> FailureCause {
        let (operation, tree) = (self.request.way.operation, &self.request.site.tree);
        let version = |of: &DeliveryId| {
            let (message, _) = operation.collective().delivered(tree, *of)?;
            let (bytes, digest) = *found.held.get(of)?;
            (bytes == found.bytes[of.index()]).then_some(Version {
                message: message.id,
                bytes,
                state: 0,
                digest: Some(digest),
            })
        };
        // One digest for each message: the known one, or that of all copies.
        let mut digests: BTreeMap<MessageId, BTreeSet<Option<Digest>>> = BTreeMap::new();
        let standing = found.standing.iter().filter_map(|(of, _)| version(of));
        let known = self.request.messages.versions.iter().copied();
        for version in known.filter(|known| known.digest.is_some()).chain(standing) {
            let all = digests.entry(version.message).or_default();
            all.insert(version.digest);
        }
        let is_one = |version: &Version| digests[&version.message].len() == 1;
        let (mut held, mut others) = (Vec::new(), Vec::new());
        for (of, at) in &found.standing {
            match version(of).filter(is_one) {
                Some(version) => held.push((*of, version)),
                None => others.push(self.request.place_of(*of, *at)),
            }
        }
        match others.is_empty() {
            true => FailureCause::Holds(held),
            false => FailureCause::OutputStands(others),
        }
    }

    /// Returns the payload, with the names of the entries that a PE may read and write: those of all
    /// PEs if it has a message for each, or one from each, else its own.
    fn payload_for(&self, pe: PeId) -> Payload {
        let mut payload = self.request.messages.payload.clone();
        let site = &self.request.site;
        if let Payload::Files(files) = &mut payload {
            let layout = self.request.way.operation.collective().layout();
            let reads_all = match layout {
                Layout::ByDestination => pe == site.tree.root(),
                layout => layout == Layout::Pieces,
            };
            let writes_all = match layout {
                Layout::BySource => pe == site.tree.root(),
                layout => [Layout::Pieces, Layout::Shards].contains(&layout),
            };
            files.names = site.placement.names();
            files.chooses_entries = !site.placement.is_elsewhere()
                && [Layout::BySource, Layout::Shards].contains(&layout);
            for (names, needs_all) in [
                (&mut files.names, reads_all),
                (&mut files.output_names, writes_all),
            ] {
                let named = names.iter_mut().zip(site.tree.ids());
                let unused = named.filter(|(_, of)| !needs_all && *of != pe);
                unused.for_each(|(name, _)| name.clear());
            }
            if pe != site.tree.root() {
                files.shards.clear();
            }
        }
        payload
    }

    /// Returns the known versions of the messages that a PE sends or receives.
    fn versions_for(&self, pe: PeId) -> Vec<Version> {
        let (operation, tree) = (self.request.way.operation, &self.request.site.tree);
        let known = self.request.messages.versions.iter().copied();
        known
            .filter(|version| has_part_in(operation, tree, pe, version.message))
            .collect()
    }

    /// Returns the address at which a PE connects to its parent in a tree: the placement's address,
    /// on one of its rails, with the parent's port.
    fn parent_listen(
        &self,
        tree: &Tree,
        pe: PeId,
        rail: usize,
    ) -> Result<Option<String>, FailureCause> {
        let Some(parent) = tree.parent(pe) else {
            return Ok(None);
        };
        let address = self.request.site.placement.address_for(parent, pe, rail);
        self.listens_at(parent, address)
    }

    /// Returns a PE's assignment in the additional trees, which use the rails in turn.
    fn lanes_of(&self, pe: PeId) -> Result<Vec<Lane>, FailureCause> {
        let site = &self.request.site;
        let rails = site.placement.rails();
        let lane = |(at, tree): (usize, &Arc<Tree>)| {
            Ok(Lane {
                parent_listen: self.parent_listen(tree, pe, at % rails)?,
                links: site.links_in(tree, pe),
                tree: tree.clone(),
            })
        };
        (1..).zip(&self.lanes.extra_trees).map(lane).collect()
    }

    /// Returns a PE's listening address: this IP address with the registered port.
    fn listens_at(&self, pe: PeId, address: IpAddr) -> Result<Option<String>, FailureCause> {
        let Some(register) = self.cluster.register(pe) else {
            return Ok(None);
        };
        let listen: SocketAddr = register.listen.parse().map_err(|_| {
            let listen = in_one_line(&register.listen);
            let listen: String = listen.chars().take(100).collect();
            let text =
                format!("{pe} reported the listen address `{listen}`, which is not HOST:PORT");
            FailureCause::protocol(pe, text)
        })?;
        let address = or_joined_from(self.cluster, address, pe);
        Ok(Some(SocketAddr::new(address, listen.port()).to_string()))
    }

    /// Returns the PEs to which a PE connects outside the tree: it connects to those with lower
    /// numbers, which have addresses.
    fn peers(&self, pe: PeId) -> Result<Vec<Peer>, FailureCause> {
        let site = &self.request.site;
        let peers = self.request.peers(pe);
        let peer = |other: PeId| {
            let address = site.placement.address_for(other, pe, 0);
            let listen = match other < pe {
                true => self.listens_at(other, address)?,
                false => None,
            };
            Ok(Peer {
                pe: other,
                listen,
                link: site.link_between(pe, other),
            })
        };
        peers.into_iter().map(peer).collect()
    }
}
