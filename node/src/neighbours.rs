//! A PE's connections: to its parent, to its children in index order, and to peers with which an
//! operation exchanges messages outside the tree.

use std::io;
use std::ops::Range;
use std::task::Poll;

use flitcast_proto::cost::Edge;
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::wire::control::Peer;
use flitcast_proto::{PeId, Time};

use crate::limits::CONNECTION_CHECK;
use crate::link::{Link, LinkError};
use crate::pacer::Pacer;
use crate::shape::{Ports, Shape};

/// All connections of a PE.
#[derive(Debug)]
pub struct Neighbours {
    /// The connection to the parent, then those to children, then those to peers.
    links: Vec<Link>,
    children: Range<usize>,
    next_look: Time,
}

impl Neighbours {
    /// Takes the connections; children and peers in any order.
    pub fn new(parent: Option<Link>, mut children: Vec<Link>, mut peers: Vec<Link>) -> Neighbours {
        children.sort_by_key(Link::peer);
        peers.sort_by_key(Link::peer);
        let first = usize::from(parent.is_some());
        Neighbours {
            children: first..first + children.len(),
            links: parent.into_iter().chain(children).chain(peers).collect(),
            next_look: Time(0),
        }
    }

    /// Returns the error of a failed connection from which the PE does not read. To be called after
    /// each event; the check itself runs once a second.
    pub fn look(&mut self, now: Time) -> Result<(), LinkError> {
        if now.0 < self.next_look.0 {
            return Ok(());
        }
        self.next_look = Time(now.0 + CONNECTION_CHECK.as_nanos() as u64);
        self.all_mut().try_for_each(|link| link.look())
    }

    /// Returns the connection to the parent; P0 has none.
    pub fn parent(&mut self) -> Option<&mut Link> {
        self.links[..self.children.start].first_mut()
    }

    pub fn children_mut(&mut self) -> &mut [Link] {
        &mut self.links[self.children.clone()]
    }

    /// Shapes the connections of `pe`: those over edges, given by their lower ends, and those to peers.
    /// The others do not change. They share the PE's ports, or have their own.
    pub fn shape(
        &mut self,
        pe: PeId,
        edges: &[(PeId, Edge)],
        peers: &[Peer],
        own_links: bool,
    ) -> io::Result<()> {
        let shaped = peers.iter().filter_map(|peer| Some((peer.pe, peer.link?)));
        if edges.is_empty() && shaped.clone().next().is_none() {
            return Ok(());
        }
        let shared = Ports::new()?;
        let ports = || match own_links {
            true => Ports::new(),
            false => Ok(shared.clone()),
        };
        let of = |child: PeId| edges.iter().find(|(below, _)| *below == child);
        if let (Some(link), Some((_, edge))) = (self.parent(), of(pe)) {
            link.shape(Shape::new(edge.up, edge.down, ports()?));
        }
        for link in self.children_mut() {
            if let Some((_, edge)) = of(link.peer()) {
                link.shape(Shape::new(edge.down, edge.up, ports()?));
            }
        }
        for (peer, [to, from]) in shaped {
            if let Some(place) = self.place_of_peer(peer) {
                self.links[place].shape(Shape::new(to, from, ports()?));
            }
        }
        Ok(())
    }

    /// Limits all connections together: to the rate of the PE's link, with pacing in turns, or to the
    /// rate of `limit`, if that is lower.
    pub fn pace(&mut self, schedule: &PeSchedule, limit: Option<&Pacer>) -> io::Result<()> {
        let link = schedule.pace.port_ticks_per_byte;
        let pacer = match limit {
            Some(limit) if !schedule.in_turns || limit.ns_per_byte() >= link => Some(limit.clone()),
            _ if schedule.in_turns => Some(Pacer::new(link)?),
            _ => None,
        };
        for link in self.all_mut() {
            link.pace(pacer.clone());
        }
        Ok(())
    }

    /// Returns all connections, the parent's first.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        self.links.iter_mut()
    }

    /// Polls all connections, from the one after `place` on, until something is ready. `poll` receives
    /// the index of each.
    pub fn poll_round_robin<T>(
        &mut self,
        place: usize,
        mut poll: impl FnMut(usize, &mut Link) -> Poll<T>,
    ) -> Poll<T> {
        let count = self.links.len();
        let behind = count.min(place + 1);
        for place in (behind..count).chain(0..behind) {
            let polled = poll(place, &mut self.links[place]);
            if polled.is_ready() {
                return polled;
            }
        }
        Poll::Pending
    }

    pub fn child(&mut self, pe: PeId) -> Option<&mut Link> {
        let place = self.place_of_child(pe)?;
        self.links.get_mut(place)
    }

    /// Returns the connection to a neighbour.
    ///
    /// # Panics
    ///
    /// Panics if `pe` is not a neighbour: the state machine names only neighbours.
    pub fn get(&mut self, pe: PeId) -> &mut Link {
        let place = self.place(pe);
        &mut self.links[place]
    }

    /// Returns the two connections of a relay.
    ///
    /// # Panics
    ///
    /// Panics if they are not two different neighbours': the state machine relays only between such.
    pub fn pair(&mut self, from: PeId, to: PeId) -> (&mut Link, &mut Link) {
        let places = [from, to].map(|pe| self.place(pe));
        let pair = self.links.get_disjoint_mut(places);
        let [source, sink] = pair.expect("what comes from a neighbour goes to another");
        (source, sink)
    }

    fn place(&self, pe: PeId) -> usize {
        let above = self.links[..self.children.start].first();
        let above = above.filter(|link| link.peer() == pe).map(|_| 0);
        let place = above.or_else(|| self.place_of_child(pe));
        let place = place.or_else(|| self.place_of_peer(pe));
        place.unwrap_or_else(|| panic!("{pe} is no neighbour"))
    }

    fn place_of_child(&self, pe: PeId) -> Option<usize> {
        self.place_in(self.children.clone(), pe)
    }

    fn place_of_peer(&self, pe: PeId) -> Option<usize> {
        self.place_in(self.children.end..self.links.len(), pe)
    }

    fn place_in(&self, range: Range<usize>, pe: PeId) -> Option<usize> {
        let found = self.links[range.clone()].binary_search_by_key(&pe, Link::peer);
        found.ok().map(|place| range.start + place)
    }
}
