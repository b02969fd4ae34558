//! Connects a PE to its neighbours: it calls its parent, and its children call it. For other pairs the
//! coordinator decides who calls.

use std::io;
use std::sync::Arc;

use flitcast_proto::PeId;
use flitcast_proto::wire::control::Assignment;
use flitcast_proto::wire::edge::{EdgeFrame, Hello};
use flitcast_proto::wire::{MAX_VERSION, MIN_VERSION, negotiate};
use tokio::net::TcpListener;
use tokio::time::{timeout, timeout_at};

use crate::config::NodeConfig;
use crate::error::NodeError;
use crate::handshake_limiter::{HandshakeLimiter, PendingConnection};
use crate::limits;
use crate::link::Link;
use crate::neighbours::Neighbours;
use crate::security::{Name, Transport};
use crate::system::{descriptors, sockets};
use crate::timeout_stream::in_time;

/// The index of one of the trees that are used at once, from 0.
type LaneId = u32;

/// Connects to the parents and to other peers, and waits for all children and for peers that call.
/// Returns the neighbours in each tree, the first tree's first.
pub async fn connect(
    config: &NodeConfig,
    listener: &TcpListener,
    assignment: &Assignment,
) -> Result<Vec<Neighbours>, NodeError> {
    let first = (
        &assignment.tree,
        &assignment.parent_listen,
        &assignment.links,
    );
    let further = assignment.lanes.iter();
    let further = further.map(|lane| (&lane.tree, &lane.parent_listen, &lane.links));
    let lanes: Vec<_> = std::iter::once(first).chain(further).collect();
    let flit_bytes = assignment.flit_bytes;
    let to_parents = async {
        let mut links = Vec::new();
        for (lane, (tree, listen, _)) in (0..).zip(&lanes) {
            links.push(match (tree.parent(config.pe), listen) {
                (Some(parent), Some(addr)) => {
                    Some(connect_to(config, parent, addr, lane, flit_bytes).await?)
                }
                _ => None,
            });
        }
        Ok(links)
    };
    let to_peers = async {
        let mut links = Vec::new();
        for peer in &assignment.peers {
            if let Some(addr) = &peer.listen {
                links.push(connect_to(config, peer.pe, addr, 0, flit_bytes).await?);
            }
        }
        Ok(links)
    };
    let children = (0..).zip(&lanes).flat_map(|(lane, (tree, ..))| {
        let children = tree.children(config.pe).iter();
        children.map(move |child| (lane, *child))
    });
    let callers = assignment.peers.iter().filter(|peer| peer.listen.is_none());
    let awaited = children.chain(callers.map(|peer| (0, peer.pe)));
    let accepted = answer_callers(config, listener, awaited.collect(), flit_bytes);
    let (parents, mut peers, mut accepted) = tokio::try_join!(to_parents, to_peers, accepted)?;
    let mut all = Vec::new();
    for (lane, (parent, (tree, _, links))) in (0..).zip(parents.into_iter().zip(lanes)) {
        let children = tree.children(config.pe);
        let here = accepted.extract_if(.., |(of, _)| *of == lane);
        let (below, callers): (Vec<Link>, Vec<Link>) = here
            .map(|(_, link)| link)
            .partition(|link| children.binary_search(&link.peer()).is_ok());
        let mut peers = std::mem::take(&mut peers);
        peers.extend(callers);
        let mut neighbours = Neighbours::new(parent, below, peers);
        for link in neighbours.all_mut() {
            let kept = link.keep_alive(config.timeouts.silence);
            kept.map_err(NodeError::io("keeping connections alive"))?;
        }
        // From here on links are shaped; the authentication before was not.
        let shaped_peers = match lane {
            0 => &assignment.peers[..],
            _ => &[],
        };
        let shaped = neighbours.shape(config.pe, links, shaped_peers, assignment.own_links);
        shaped.map_err(NodeError::io("an alarm"))?;
        all.push(neighbours);
    }
    Ok(all)
}

fn hello(config: &NodeConfig, lane: LaneId, min_version: u32, max_version: u32) -> EdgeFrame {
    EdgeFrame::Hello(Hello {
        cluster: config.cluster,
        pe: config.pe,
        min_version,
        max_version,
        secret: config.secret,
        lane,
    })
}

/// Calls a neighbour, and again if the connection is cut off.
async fn connect_to(
    config: &NodeConfig,
    neighbour: PeId,
    addr: &str,
    lane: LaneId,
    flit_bytes: u32,
) -> Result<Link, NodeError> {
    let mut calls = 1;
    loop {
        match call(config, neighbour, addr, lane, flit_bytes).await {
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
    lane: LaneId,
    flit_bytes: u32,
) -> Result<Link, NodeError> {
    let failed = |error| NodeError::Neighbour(neighbour, addr.to_owned(), error);
    let attempt = config.timeouts.within(config.timeouts.connect);
    let stream = in_time(attempt, sockets::connect(addr)).await;
    let stream = stream.map_err(failed)?;
    let shake = async {
        let stream = config.security.call(stream, Name::Pe(neighbour)).await;
        let mut link = Link::new(neighbour, stream.map_err(failed)?, flit_bytes).map_err(failed)?;
        link.send_control(&hello(config, lane, MIN_VERSION, MAX_VERSION))
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
            _ => Err(link.malformed("no hello of the neighbour").into()),
        }
    };
    let shaken = timeout(limits::NEIGHBOURS, shake).await;
    shaken.map_err(|_| failed(io::ErrorKind::TimedOut.into()))?
}

/// Accepts the connections of the PEs that are to call. Any other client is disconnected without an
/// answer and delays no PE.
async fn answer_callers(
    config: &NodeConfig,
    listener: &TcpListener,
    mut missing: Vec<(LaneId, PeId)>,
    flit_bytes: u32,
) -> Result<Vec<(LaneId, Link)>, NodeError> {
    let mut links = Vec::with_capacity(missing.len());
    let neighbours = missing.len() as u64 + 1;
    let needs = limits::DESCRIPTORS + limits::DESCRIPTORS_PER_NEIGHBOUR * neighbours;
    let places = descriptors::places(needs);
    let mut limiter = HandshakeLimiter::new(listener, places, config.timeouts.greeting());
    let config = Arc::new(config.clone());
    let limit = limits::NEIGHBOURS.max(2 * config.timeouts.connect);
    let deadline = tokio::time::Instant::now() + limit;
    while !missing.is_empty() {
        let next_caller = limiter.next(|caller| greet(config.clone(), caller, flit_bytes));
        let Ok((lane, link)) = timeout_at(deadline, next_caller).await else {
            let missing = missing.into_iter().map(|(_, pe)| pe).collect();
            return Err(NodeError::MissingCallers(missing));
        };
        let caller = (lane, link.peer());
        match missing.iter().position(|one| *one == caller) {
            Some(place) => {
                missing.swap_remove(place);
                links.push((lane, link));
            }
            None => tracing::warn!(peer = %link.peer(), "nobody that is to call, or twice"),
        }
    }
    Ok(links)
}

async fn greet(
    config: Arc<NodeConfig>,
    caller: PendingConnection,
    flit_bytes: u32,
) -> Result<(LaneId, Link), String> {
    let stream = config.security.answer(caller.stream, &caller.lease).await;
    let stream = stream.map_err(|e| e.to_string())?;
    // The future is as large as all that may follow, so it is boxed: few clients get that far.
    Box::pin(introduced(config, stream, flit_bytes)).await
}

async fn introduced(
    config: Arc<NodeConfig>,
    stream: Transport,
    flit_bytes: u32,
) -> Result<(LaneId, Link), String> {
    // The client is not identified yet; until then it may send no more than its name.
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
    link.authenticate_peer(theirs.pe, flit_bytes)?;
    let answer = hello(&config, theirs.lane, version, version);
    let answered = link.send_control(&answer).await;
    answered.map_err(|e| e.to_string())?;
    Ok((theirs.lane, link))
}
