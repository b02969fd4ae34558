//! A PE's way to its neighbours: it calls its parent, and its children call it.

use std::io;
use std::time::Duration;

use flitcast_proto::PeId;
use flitcast_proto::wire::control::Assignment;
use flitcast_proto::wire::edge::{EdgeFrame, Hello};
use flitcast_proto::wire::{MAX_VERSION, MIN_VERSION, WireError, negotiate};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::limits;
use crate::link::Link;
use crate::neighbours::Neighbours;
use crate::payload::joined;
use crate::session::{NodeConfig, NodeError};

/// Connects to the parent and waits for all children.
pub async fn connect(
    config: &NodeConfig,
    listener: &TcpListener,
    assignment: &Assignment,
) -> Result<Neighbours, NodeError> {
    let tree = &assignment.tree;
    let to_parent = async {
        match (tree.parent(config.pe), &assignment.parent_listen) {
            (Some(parent), Some(addr)) => {
                connect_to_parent(config, parent, addr, assignment.flit_bytes)
                    .await
                    .map(Some)
            }
            _ => Ok(None),
        }
    };
    let children = accept_children(
        config,
        listener,
        tree.children(config.pe),
        assignment.flit_bytes,
    );
    let (parent, children) = tokio::try_join!(to_parent, children)?;
    let mut neighbours = Neighbours::new(parent, children);
    // From here on: who somebody is, is said at any speed.
    let shaped = neighbours.shape(config.pe, &assignment.links);
    shaped.map_err(|source| NodeError::Io {
        what: "an alarm",
        source,
    })?;
    Ok(neighbours)
}

fn hello(config: &NodeConfig, min_version: u32, max_version: u32) -> EdgeFrame {
    let (cluster, pe) = (config.cluster, config.pe);
    EdgeFrame::Hello(Hello {
        cluster,
        pe,
        min_version,
        max_version,
    })
}

async fn connect_to_parent(
    config: &NodeConfig,
    parent: PeId,
    addr: &str,
    flit_bytes: u32,
) -> Result<Link, NodeError> {
    let failed = |source| NodeError::Parent {
        parent,
        addr: addr.to_owned(),
        source,
    };
    let attempt = config.timeouts.within(config.timeouts.connect);
    let stream = timeout(attempt, TcpStream::connect(addr)).await;
    let stream = stream
        .map_err(|_| failed(io::ErrorKind::TimedOut.into()))?
        .map_err(failed)?;
    let mut link = Link::new(parent, stream, flit_bytes).map_err(failed)?;
    let shake = async {
        link.send_control(&hello(config, MIN_VERSION, MAX_VERSION))
            .await?;
        match link.next_control().await? {
            EdgeFrame::Hello(theirs) if theirs.pe == parent && theirs.cluster == config.cluster => {
                negotiate(theirs.min_version, theirs.max_version).map_err(|e| link.wire(e))
            }
            _ => Err(link.wire(WireError::Malformed("no hello of the parent".to_owned()))),
        }
    };
    timeout(limits::NEIGHBOURS, shake)
        .await
        .map_err(|_| failed(io::ErrorKind::TimedOut.into()))??;
    Ok(link)
}

/// Takes the children's connections. Whoever is no child of this cluster is turned
/// away without a word, and holds nobody up: each is heard in a task of its own.
async fn accept_children(
    config: &NodeConfig,
    listener: &TcpListener,
    children: &[PeId],
    flit_bytes: u32,
) -> Result<Vec<Link>, NodeError> {
    let mut missing = children.to_vec();
    let mut links = Vec::with_capacity(children.len());
    let mut greeting = JoinSet::new();
    let limit = limits::NEIGHBOURS.max(2 * config.timeouts.connect);
    let deadline = tokio::time::Instant::now() + limit;
    while !missing.is_empty() {
        tokio::select! {
            accepted = listener.accept(), if greeting.len() < limits::GREETINGS => match accepted {
                Ok((stream, addr)) => {
                    let config = config.clone();
                    greeting.spawn(async move {
                        let greeted = timeout(config.timeouts.handshake, greet(&config, stream, flit_bytes));
                        greeted.await.unwrap_or_else(|_| Err("it said nothing".to_owned()))
                            .map_err(|why| (addr, why))
                    });
                }
                // Out of descriptors, say: others may close some.
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(greeted) = greeting.join_next() => match joined(greeted) {
                Ok(link) => match missing.iter().position(|&child| child == link.peer()) {
                    Some(place) => {
                        missing.swap_remove(place);
                        links.push(link);
                    }
                    None => tracing::warn!(peer = %link.peer(), "no child of ours, or twice"),
                },
                Err((addr, why)) => tracing::warn!(%addr, why, "turned a connection away"),
            },
            () = tokio::time::sleep_until(deadline) => {
                return Err(NodeError::MissingChildren { missing });
            }
        }
    }
    Ok(links)
}

async fn greet(config: &NodeConfig, stream: TcpStream, flit_bytes: u32) -> Result<Link, String> {
    // Who it is, it has yet to say; and until then it may send no more than that.
    let io = |e: io::Error| e.to_string();
    stream.set_nodelay(true).map_err(io)?;
    let mut link = Link::new(config.pe, stream, 0).map_err(io)?;
    let theirs = match link.next_control().await.map_err(|e| e.to_string())? {
        EdgeFrame::Hello(hello) => hello,
        _ => return Err("it did not say hello".to_owned()),
    };
    if theirs.cluster != config.cluster {
        return Err("it is of another cluster".to_owned());
    }
    let version = negotiate(theirs.min_version, theirs.max_version).map_err(|e| e.to_string())?;
    let answer = hello(config, version, version);
    link.send_control(&answer)
        .await
        .map_err(|e| e.to_string())?;
    link.is_known_to_be(theirs.pe, flit_bytes);
    Ok(link)
}
