//! Every PE is told its place, and tells what it has found where its messages lie and where they
//! are to arrive.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use flitcast_node::payload::delivered_at;
use flitcast_proto::wire::control::{Assignment, FromPe, Lane, Peer};
use flitcast_proto::wire::negotiate;
use flitcast_proto::{DeliveryId, PeId, Tree};

use super::driver::{Driver, Halt, or_joined_from};
use super::inventory::{Found, Inventory};
use crate::job::flit_size::USUAL_FLIT_BYTES;
use crate::observe::phase::Phase;
use crate::rounds::conductor::{Trouble, Update, out_of_turn};

impl Driver<'_> {
    /// Tells every PE its place and what to do; what they have found.
    pub async fn assign(&mut self) -> Result<Found, Halt> {
        self.enter(Phase::Connect);
        let request = self.request;
        let left_out = &request.messages.left_out;
        for pe in request.site.tree.pes() {
            let Some(register) = self.cluster.register(pe) else {
                continue;
            };
            let version = negotiate(register.min_version, register.max_version)
                .map_err(|error| Trouble::Incompatible(pe, error))?;
            let assignment = Assignment {
                version,
                tree: request.site.tree.clone(),
                parent_listen: self.parent_listen(&request.site.tree, pe, 0)?,
                lanes: self.lanes_of(pe)?,
                peers: self.peers(pe)?,
                operation: request.way.operation,
                flit_bytes: request.way.flit_bytes.unwrap_or(USUAL_FLIT_BYTES),
                payload: request.messages.payload.clone(),
                links: request.site.links_of(pe),
                record_spans: request.pictures.wanted(),
                left_out: left_out.clone(),
                undertaking: request.messages.undertaking,
                recorded: request.messages.recorded,
                later_output: request.messages.later_output.clone(),
                own_links: request.site.own_links,
            };
            self.conductor.assign(self.now(), pe, assignment);
            // One at a time: it may be long.
            self.say_words().await;
        }
        let operation = request.way.operation;
        let mut inventory = Inventory::new(&request.site.tree, operation, left_out);
        while let Some(answer) = self.next_answer().await? {
            if let Update::Ready(pe, ready) = answer {
                let taken = inventory.take(pe, ready);
                taken.map_err(|ready| out_of_turn(pe, &FromPe::Ready(ready)))?;
            }
        }
        let found = inventory.found();
        self.bytes = found.bytes.clone();
        self.found = found.delivered.clone();
        match found.standing.is_empty() {
            true => Ok(found),
            false => Err(self.output_stands(&found.standing).into()),
        }
    }

    /// Each entry that stands where a message was to arrive, and at whom.
    fn output_stands(&self, standing: &[(DeliveryId, PeId)]) -> Trouble {
        let (operation, tree) = (self.request.way.operation, &self.request.site.tree);
        let place = |&(of, at): &(DeliveryId, PeId)| {
            // Who tells of what does not end there means the output of the gather that follows.
            let ends_there = operation
                .delivered(tree, of)
                .is_some_and(|(_, end)| end == at);
            let output = match ends_there {
                true => self.request.messages.payload.output(),
                false => self.request.messages.later_output.as_deref(),
            };
            let path = delivered_at(
                output.unwrap_or(Path::new("")),
                operation.delivery_name(tree, of),
                self.request.messages.payload.is_apart(),
            );
            let host = self.request.site.placement.places[at.index()].name.as_ref();
            let host = host.map_or(String::new(), |host| format!(" on {host}"));
            format!("{} at {at}{host}", path.display())
        };
        Trouble::OutputStands(standing.iter().map(place).collect())
    }

    /// Where a PE reaches its parent in a tree: at the address that the placement gives, on one of
    /// its rails, and the port that the parent has got.
    fn parent_listen(&self, tree: &Tree, pe: PeId, rail: usize) -> Result<Option<String>, Trouble> {
        let Some(parent) = tree.parent(pe) else {
            return Ok(None);
        };
        let address = self.request.site.placement.address_for(parent, pe, rail);
        self.listens_at(parent, address)
    }

    /// A PE's place in the further trees: one for each further rail, where there are such.
    fn lanes_of(&self, pe: PeId) -> Result<Vec<Lane>, Trouble> {
        let site = &self.request.site;
        let rails = site.placement.rails();
        let lane = |(at, tree): (usize, &Arc<Tree>)| {
            Ok(Lane {
                parent_listen: self.parent_listen(tree, pe, at % rails)?,
                links: site.links_in(tree, pe),
                tree: tree.clone(),
            })
        };
        (1..).zip(&self.lanes.further).map(lane).collect()
    }

    /// Where somebody is reached at this address, and the port that it has got.
    fn listens_at(&self, pe: PeId, address: IpAddr) -> Result<Option<String>, Trouble> {
        let Some(register) = self.cluster.register(pe) else {
            return Ok(None);
        };
        let listen: SocketAddr = register
            .listen
            .parse()
            .map_err(|_| Trouble::NoPort(pe, register.listen.chars().take(100).collect()))?;
        let address = or_joined_from(self.cluster, address, pe);
        Ok(Some(SocketAddr::new(address, listen.port()).to_string()))
    }

    /// With whom a PE is connected beside the tree: it calls those of lower numbers.
    fn peers(&self, pe: PeId) -> Result<Vec<Peer>, Trouble> {
        let site = &self.request.site;
        let peers = self.request.way.operation.peers(&site.tree, pe);
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
