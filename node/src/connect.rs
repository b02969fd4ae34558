//! A PE's way to its neighbours: it calls its parent, and its children call it. Of two others who
//! are to be connected, the coordinator says who calls.

use std::io;
use std::sync::Arc;

use flitcast_proto::PeId;
use flitcast_proto::wire::control::Assignment;
use flitcast_proto::wire::edge::{EdgeFrame, Hello};
use flitcast_proto::wire::{MAX_VERSION, MIN_VERSION, WireError, negotiate};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{timeout, timeout_at};

use crate::config::NodeConfig;
use crate::door::{Caller, Door};
use crate::error::NodeError;
use crate::limits;
use crate::link::Link;
use crate::neighbours::Neighbours;
use crate::security::{Name, Transport};
use crate::system::descriptors;

/// Connects to the parent and to other peers, and waits for all children, and for those peers who
/// call.
pub async fn connect(
    config: &NodeConfig,
    listener: &TcpListener,
    assignment: &Assignment,
) -> Result<Neighbours, NodeError> {
    let tree = &assignment.tree;
    let to_parent = async {
        match (tree.parent(config.pe), &assignment.parent_listen) {
            (Some(parent), Some(addr)) => connect_to(config, parent, addr, assignment.flit_bytes)
                .await
                .map(Some),
            _ => Ok(None),
        }
    };
    let to_peers = async {
        let mut links = Vec::new();
        for peer in &assignment.peers {
            if let Some(addr) = &peer.listen {
                links.push(connect_to(config, peer.pe, addr, assignment.flit_bytes).await?);
            }
        }
        Ok(links)
    };
    let children = tree.children(config.pe);
    let callers = assignment.peers.iter().filter(|peer| peer.listen.is_none());
    let awaited = children.iter().copied().chain(callers.map(|peer| peer.pe));
    let accepted = answer_callers(config, listener, awaited.collect(), assignment.flit_bytes);
    let (parent, mut peers, accepted) = tokio::try_join!(to_parent, to_peers, accepted)?;
    let is_child = |link: &Link| children.binary_search(&link.peer()).is_ok();
    let (children, callers): (Vec<Link>, Vec<Link>) = accepted.into_iter().partition(is_child);
    peers.extend(callers);
    let mut neighbours = Neighbours::new(parent, children, peers);
    let kept = neighbours.keep_alive(config.timeouts.silence);
    kept.map_err(|source| NodeError::Io {
        what: "keeping connections alive",
        source,
    })?;
    // From here on: who somebody is, is said at any speed.
    let shaped = neighbours.shape(config.pe, &assignment.links, &assignment.peers);
    shaped.map_err(|source| NodeError::Io {
        what: "an alarm",
        source,
    })?;
    Ok(neighbours)
}

fn hello(config: &NodeConfig, min_version: u32, max_version: u32) -> EdgeFrame {
    EdgeFrame::Hello(Hello {
        cluster: config.cluster,
        pe: config.pe,
        min_version,
        max_version,
        secret: config.secret,
    })
}

/// Calls a neighbour, and again if it is cut off.
async fn connect_to(
    config: &NodeConfig,
    neighbour: PeId,
    addr: &str,
    flit_bytes: u32,
) -> Result<Link, NodeError> {
    let mut calls = 1;
    loop {
        match call(config, neighbour, addr, flit_bytes).await {
            Err(error) if calls < limits::CALLS && error.is_cut_off() => {
                tracing::debug!(%error, "calling again");
                calls += 1;
            }
            called => return called,
        }
    }
}

async fn call(
    config: &NodeConfig,
    neighbour: PeId,
    addr: &str,
    flit_bytes: u32,
) -> Result<Link, NodeError> {
    let failed = |source| NodeError::Neighbour {
        neighbour,
        addr: addr.to_owned(),
        source,
    };
    let attempt = config.timeouts.within(config.timeouts.connect);
    let stream = timeout(attempt, TcpStream::connect(addr)).await;
    let stream = stream
        .map_err(|_| failed(io::ErrorKind::TimedOut.into()))?
        .map_err(failed)?;
    let shake = async {
        let stream = config.security.call(stream, Name::Pe(neighbour)).await;
        let mut link = Link::new(neighbour, stream.map_err(failed)?, flit_bytes).map_err(failed)?;
        link.send_control(&hello(config, MIN_VERSION, MAX_VERSION))
            .await?;
        match link.next_control().await? {
            EdgeFrame::Hello(theirs)
                if theirs.pe == neighbour
                    && theirs.cluster == config.cluster
                    && theirs.secret == config.secret =>
            {
                negotiate(theirs.min_version, theirs.max_version).map_err(|e| link.wire(e))?;
                Ok(link)
            }
            _ => {
                let what = "no hello of the neighbour".to_owned();
                Err(link.wire(WireError::Malformed(what)).into())
            }
        }
    };
    timeout(limits::NEIGHBOURS, shake)
        .await
        .map_err(|_| failed(io::ErrorKind::TimedOut.into()))?
}

/// Takes the connections of those who are to call. Whoever else does is turned away without a
/// word, and holds nobody up.
async fn answer_callers(
    config: &NodeConfig,
    listener: &TcpListener,
    mut missing: Vec<PeId>,
    flit_bytes: u32,
) -> Result<Vec<Link>, NodeError> {
    let mut links = Vec::with_capacity(missing.len());
    let neighbours = missing.len() as u64 + 1;
    let needs = limits::DESCRIPTORS + limits::DESCRIPTORS_PER_NEIGHBOUR * neighbours;
    let places = descriptors::places(needs);
    let mut door = Door::new(listener, places, config.timeouts.greeting());
    let config = Arc::new(config.clone());
    let limit = limits::NEIGHBOURS.max(2 * config.timeouts.connect);
    let deadline = tokio::time::Instant::now() + limit;
    while !missing.is_empty() {
        let come = door.next(|caller| greet(config.clone(), caller, flit_bytes));
        let Ok(link) = timeout_at(deadline, come).await else {
            return Err(NodeError::MissingCallers { missing });
        };
        match missing.iter().position(|&caller| caller == link.peer()) {
            Some(place) => {
                missing.swap_remove(place);
                links.push(link);
            }
            None => tracing::warn!(peer = %link.peer(), "nobody that is to call, or twice"),
        }
    }
    Ok(links)
}

async fn greet(config: Arc<NodeConfig>, caller: Caller, flit_bytes: u32) -> Result<Link, String> {
    let stream = config.security.answer(caller.stream, &caller.lease).await;
    let stream = stream.map_err(|e| e.to_string())?;
    // What a stranger waits for is as large as all that may come of it: few get further.
    Box::pin(introduced(config, stream, flit_bytes)).await
}

async fn introduced(
    config: Arc<NodeConfig>,
    stream: Transport,
    flit_bytes: u32,
) -> Result<Link, String> {
    // Who it is, it has yet to say; and until then it may send no more than that.
    let link = Link::new(config.pe, stream, 0);
    let mut link = link.map_err(|e| e.to_string())?;
    let theirs = match link.next_control().await.map_err(|e| e.to_string())? {
        EdgeFrame::Hello(hello) => hello,
        _ => return Err("it did not say hello".to_owned()),
    };
    if theirs.cluster != config.cluster {
        return Err("it is of another cluster".to_owned());
    }
    if theirs.secret != config.secret {
        return Err("it does not know the secret of this launch".to_owned());
    }
    let version = negotiate(theirs.min_version, theirs.max_version).map_err(|e| e.to_string())?;
    link.is_known_to_be(theirs.pe, flit_bytes)?;
    let answer = hello(&config, version, version);
    let answered = link.send_control(&answer).await;
    answered.map_err(|e| e.to_string())?;
    Ok(link)
}
