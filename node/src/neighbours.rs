//! A PE's connections: to its parent, to its children in index order, and to those with whom an
//! operation has it exchange messages beside the tree.

use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use flitcast_proto::cost::Edge;
use flitcast_proto::ops::Brief;
use flitcast_proto::wire::control::Peer;
use flitcast_proto::{PeId, Time};

use crate::counters::Counters;
use crate::link::{Link, LinkError};
use crate::pacer::Pacer;
use crate::pulse::Pulse;
use crate::shape::{Ports, Shape};

/// All connections of a PE.
#[derive(Debug)]
pub struct Neighbours {
    parent: Option<Link>,
    children: Vec<Link>,
    peers: Vec<Link>,
    next_look: Time,
}

/// Between two looks at all connections.
const LOOK: Duration = Duration::from_secs(1);

impl Neighbours {
    /// Takes the connections; children and peers in any order.
    pub fn new(parent: Option<Link>, mut children: Vec<Link>, mut peers: Vec<Link>) -> Neighbours {
        children.sort_by_key(Link::peer);
        peers.sort_by_key(Link::peer);
        Neighbours {
            parent,
            children,
            peers,
            next_look: Time(0),
        }
    }

    /// From now on, a neighbour whose host does not answer for the silence limit is one
    /// whose connection fails.
    pub fn keep_alive(&mut self, silence: Duration) -> io::Result<()> {
        self.all_mut().try_for_each(|link| link.keep_alive(silence))
    }

    /// Whether a connection has failed that nobody reads from: to be asked whenever
    /// something has moved, and looked after once a second.
    pub fn look(&mut self, now: Time) -> Result<(), LinkError> {
        if now.0 < self.next_look.0 {
            return Ok(());
        }
        self.next_look = Time(now.0 + LOOK.as_nanos() as u64);
        self.all_mut().try_for_each(|link| link.look())
    }

    /// The connection to the parent; P0 has none.
    pub fn parent(&mut self) -> Option<&mut Link> {
        self.parent.as_mut()
    }

    /// The connections to the children.
    pub fn children_mut(&mut self) -> &mut [Link] {
        &mut self.children
    }

    /// Gives the connections of `pe` the shapes that are said of their edges, by the
    /// edges' lower ends, and of its peers. The others stay what they are. They share the PE's
    /// ports, or have their own.
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
        if let (Some(link), Some((_, edge))) = (&mut self.parent, of(pe)) {
            link.shape(Shape::new(edge.up, edge.down, ports()?));
        }
        for link in &mut self.children {
            if let Some((_, edge)) = of(link.peer()) {
                link.shape(Shape::new(edge.down, edge.up, ports()?));
            }
        }
        for (peer, [to, from]) in shaped {
            if let Some(place) = place(&self.peers, peer) {
                self.peers[place].shape(Shape::new(to, from, ports()?));
            }
        }
        Ok(())
    }

    /// In turns, from now on all connections together take what the PE's link takes away.
    pub fn pace(&mut self, brief: &Brief) -> io::Result<()> {
        let pacer = match brief.is_in_turns() {
            true => Some(Pacer::new(brief.pace.port_ticks_per_byte)?),
            false => None,
        };
        for link in self.all_mut() {
            link.pace(pacer.clone());
        }
        Ok(())
    }

    /// From now on, `pulse` tells what the connections do.
    pub fn watch(&mut self, pulse: &Arc<Pulse>) {
        for link in self.all_mut() {
            link.watch(pulse.clone());
        }
    }

    /// From now on, what crosses the connections is counted there.
    pub fn count(&mut self, counters: &Counters) {
        for link in self.all_mut() {
            link.count(counters);
        }
    }

    /// From now on, flits may be so long: their size is chosen when the edges are known.
    pub fn take_flits_of(&mut self, flit_bytes: u32) {
        for link in self.all_mut() {
            link.take_flits_of(flit_bytes);
        }
    }

    /// All connections, the parent's first.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        let in_tree = self.parent.iter_mut().chain(&mut self.children);
        in_tree.chain(&mut self.peers)
    }

    /// Asks all connections, that behind this place first, until something is ready. It is told their
    /// places.
    pub fn ask_around<T>(
        &mut self,
        place: usize,
        mut ask: impl FnMut(usize, &mut Link) -> Poll<T>,
    ) -> Poll<T> {
        let behind = place + 1;
        for places in [behind..usize::MAX, 0..behind] {
            let links = self.all_mut().enumerate();
            for (place, link) in links.skip(places.start).take(places.len()) {
                let asked = ask(place, link);
                if asked.is_ready() {
                    return asked;
                }
            }
        }
        Poll::Pending
    }

    /// The connection to a child.
    pub fn child(&mut self, pe: PeId) -> Option<&mut Link> {
        let place = place(&self.children, pe)?;
        self.children.get_mut(place)
    }

    /// The connection to a neighbour.
    ///
    /// # Panics
    ///
    /// If `pe` is none: the state machine names only neighbours.
    pub fn get(&mut self, pe: PeId) -> &mut Link {
        if self.parent.as_ref().is_some_and(|link| link.peer() == pe) {
            return self.parent.as_mut().expect("just looked at");
        }
        let child = place(&self.children, pe).map(|place| &mut self.children[place]);
        let peer = place(&self.peers, pe).map(|place| &mut self.peers[place]);
        child.or(peer).unwrap_or_else(|| no_neighbour(pe))
    }

    /// The two connections of a relay.
    ///
    /// # Panics
    ///
    /// If they are not two neighbours': the state machine relays to no other, and to nobody what
    /// came from there.
    pub fn pair(&mut self, from: PeId, to: PeId) -> (&mut Link, &mut Link) {
        let Neighbours {
            parent, children, ..
        } = self;
        let place = |children: &[Link], pe| place(children, pe).unwrap_or_else(|| no_neighbour(pe));
        match parent.as_ref().map(Link::peer) {
            Some(above) if above == from => {
                let place = place(children, to);
                let parent = parent.as_mut().expect("just looked at");
                (parent, &mut children[place])
            }
            Some(above) if above == to => {
                let place = place(children, from);
                let parent = parent.as_mut().expect("just looked at");
                (&mut children[place], parent)
            }
            _ => {
                let places = [from, to].map(|pe| place(children, pe));
                let pair = children.get_disjoint_mut(places);
                let [source, sink] = pair.expect("what comes from a neighbour goes to another");
                (source, sink)
            }
        }
    }
}

fn place(links: &[Link], pe: PeId) -> Option<usize> {
    links.binary_search_by_key(&pe, Link::peer).ok()
}

fn no_neighbour(pe: PeId) -> ! {
    panic!("{pe} is no neighbour")
}
