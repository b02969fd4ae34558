//! A try of a cluster's hosts, for `flitcast check --reach`: what a launch needs is done as a launch does it,
//! except that no PE is started.
//!
//! On each host the program runs as `flitcast self-reach`: it listens where the host's PEs would, connects
//! to this machine, and reports its port, to which this machine connects. Where PEs join, only the
//! coordinator's port and the hosts' addresses can be tried.

use std::ffi::OsString;
use std::io;
use std::net::{self, IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{anyhow, bail};
use flitcast_node::handshake_limiter::listen;
use flitcast_proto::{PeId, Tree};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::cluster::begin;
use super::ssh::{Begun, Hosts};
use crate::site::placement::{Launch, Place, Placement};
use crate::text::phrases::{keep_last, last_words};
use crate::tuning::{ANSWER, ENDING};

/// Time to connect to an address: TCP repeats a lost packet after 1 and 3 s.
const CONNECT: Duration = Duration::from_secs(5);
/// Maximum number of simultaneous tries without ssh, which has its own limit (`ssh/hosts.rs`): each is a
/// process or a connection.
const AT_ONCE: usize = 32;
/// Line on stderr of a program that listens, followed by the port.
const LISTENS: &str = "flitcast: listens ";
/// The way to PEs on this machine.
const HERE: &str = "here";
/// The way of PEs that others start.
const JOINS: &str = "joins";
/// A port that is rarely open: that a host refuses a connection there shows that the host is there.
const ANY_PORT: u16 = 9;

/// A tried place.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The PEs there; none for the coordinator's own address.
    pub pes: Vec<PeId>,
    /// The way there, like `ssh a.example`.
    pub over: String,
    /// Address at which others reach it.
    pub address: IpAddr,
    /// The finding, or the fault and what to do.
    pub found: Result<String, String>,
}

/// Tries this machine's address for PEs, and then all places of PEs at once.
///
/// # Errors
///
/// Returns an error if the program that hosts would run cannot be read.
pub async fn reach(
    placement: &Placement,
    tree: &Tree,
    program: &Path,
) -> anyhow::Result<Vec<Tried>> {
    let (own, listener) = own_address(placement);
    let mut all = vec![own];
    // Without it no host can be tried.
    let Some(coordinator) = listener.as_ref().and_then(|it| it.local_addr().ok()) else {
        return Ok(all);
    };
    let pes: Vec<PeId> = tree.pes().collect();
    let hosts = Hosts::of(placement, tree, &pes, program);
    let hosts = hosts.map_err(|error| anyhow!("cannot read {error}"))?;
    let has_here = hosts.is_some() && placement.places.iter().any(|place| place.is_here);
    let few = Arc::new(Semaphore::new(AT_ONCE));
    let tries = targets(placement, &pes).into_iter().map(|target| {
        let (hosts, few, program) = (hosts.clone(), few.clone(), program.to_owned());
        tokio::spawn(async move {
            let hosts = hosts.as_deref().filter(|_| target.over != HERE);
            let listen = target.place.listen.to_string();
            let arguments = ["self-reach".to_owned(), listen, coordinator.to_string()];
            let invocation = (arguments.map(OsString::from).to_vec(), Vec::new());
            // The semaphore is never closed.
            let _one_of_few = match hosts {
                Some(_) => None,
                None => few.acquire().await.ok(),
            };
            let found = match target.over.as_str() {
                JOINS => answers(target.place.address).await,
                _ => match begin(&program, &target.place, hosts, &[], invocation).await {
                    Ok(mut begun) => {
                        let found = tried(&target, &mut begun, has_here).await;
                        // The program ends with its standard input.
                        drop(begun.stdin.take());
                        let _ = timeout(ENDING, begun.child.wait()).await;
                        found
                    }
                    Err(error) => Err(error),
                },
            };
            Tried {
                pes: target.pes,
                over: target.over,
                address: target.place.address,
                found: found.map_err(|error| format!("{error:#}")),
            }
        })
    });
    let tries: Vec<_> = tries.collect();
    for handle in tries {
        all.push(handle.await?);
    }
    Ok(all)
}

/// Listens where the coordinator will.
fn own_address(placement: &Placement) -> (Tried, Option<TcpListener>) {
    let port = match placement.launch {
        Launch::Join { port, .. } => port,
        Launch::Local | Launch::Ssh(_) => 0,
    };
    let address = SocketAddr::new(placement.coordinator, port);
    let listener = listen(address);
    let found = match &listener {
        Ok(_) if port > 0 => Ok(format!("port {port} is free")),
        Ok(_) => Ok("can listen".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(format!(
            "{address} is in use: end the command that listens there, or choose another port"
        )),
        Err(error) if placement.starter().is_some() => {
            // The network of this address may be made with the PEs.
            Ok(format!("cannot listen before the PEs are started: {error}"))
        }
        Err(error) => Err(format!(
            "cannot listen on {address}: {error}; name an address of this machine as `coordinator`"
        )),
    };
    let own = Tried {
        pes: Vec::new(),
        over: HERE.to_owned(),
        address: placement.coordinator,
        found,
    };
    (own, listener.ok())
}

/// The PEs of one place.
struct Target {
    pes: Vec<PeId>,
    over: String,
    place: Place,
}

/// Returns the places of the PEs, each once. A PE that joins from anywhere has none.
fn targets(placement: &Placement, pes: &[PeId]) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    for &pe in pes {
        let place = &placement.places[pe.index()];
        let over = match placement.launch {
            Launch::Join { .. } if place.address.is_unspecified() => continue,
            Launch::Join { .. } => JOINS.to_owned(),
            Launch::Ssh(_) if !place.is_here => format!("ssh {}", place.destination()),
            Launch::Local | Launch::Ssh(_) => HERE.to_owned(),
        };
        let is_same = |target: &&mut Target| {
            let other = &target.place;
            target.over == over
                && (&other.run, other.address, other.listen)
                    == (&place.run, place.address, place.listen)
        };
        match targets.iter_mut().find(is_same) {
            Some(target) => target.pes.push(pe),
            None => targets.push(Target {
                pes: vec![pe],
                over,
                place: place.clone(),
            }),
        }
    }
    targets
}

/// Waits for the program's port and connects to it, at each address of the place. That has to succeed only
/// if a PE is on this machine: the others need their neighbours.
async fn tried(target: &Target, begun: &mut Begun, is_needed: bool) -> anyhow::Result<String> {
    let (over, place) = (&target.over, &target.place);
    let mut last = Vec::new();
    let listening = async {
        while let Some(line) = begun.stderr.recv().await {
            match line
                .strip_prefix(LISTENS)
                .and_then(|port| port.parse().ok())
            {
                Some(port) => return Some(port),
                None => keep_last(&mut last, line),
            }
        }
        None
    };
    let listening = timeout(ANSWER, listening).await;
    if let Some(first) = last.first_mut() {
        *first = first.trim_start_matches("error: ").to_owned();
    }
    let port: u16 = match listening {
        Ok(Some(port)) => port,
        Ok(None) => bail!("{over}: {}", last_words("", &last)),
        Err(_) => {
            let seconds = ANSWER.as_secs();
            bail!(
                "{over}: no answer after {seconds} s{}",
                last_words(": ", &last)
            )
        }
    };
    let version = concat!("flitcast ", env!("CARGO_PKG_VERSION"));
    for &address in [place.address].iter().chain(place.rails.iter().skip(1)) {
        let address = SocketAddr::new(address, port);
        match connected(address).await {
            Ok(()) => {}
            Err(error) if is_needed => bail!(
                "{address} is not reached from this machine, where a PE is: {error}; let its firewall \
                 accept connections, or correct `address`"
            ),
            Err(_) => return Ok(format!("{version}, not from here")),
        }
    }
    Ok(version.to_owned())
}

async fn connected(address: SocketAddr) -> io::Result<()> {
    match timeout(CONNECT, TcpStream::connect(address)).await {
        Ok(connected) => connected.map(drop),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Tries whether the host of a PE that joins is there.
async fn answers(address: IpAddr) -> anyhow::Result<String> {
    match connected((address, ANY_PORT).into()).await {
        Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => bail!(
            "{address} does not answer: {error}; start its host, let its firewall accept \
             connections, or correct `address`"
        ),
        _ => Ok("answers".to_owned()),
    }
}

/// Shows that this host has an address and reaches the coordinator, and listens until standard input
/// ends: `flitcast self-reach`.
///
/// # Errors
///
/// Returns an error that says what to do if the host lacks the address or does not reach the coordinator.
pub fn show(listen: IpAddr, coordinator: SocketAddr) -> anyhow::Result<()> {
    let listener = net::TcpListener::bind((listen, 0)).map_err(|error| {
        anyhow!("cannot listen on {listen} there: {error}; correct `address` in its [[pe]]")
    })?;
    net::TcpStream::connect_timeout(&coordinator, CONNECT).map_err(|error| {
        anyhow!(
            "{coordinator} is not reached from there: {error}; let the firewall of this machine accept \
             connections, or correct `coordinator`"
        )
    })?;
    eprintln!("{LISTENS}{}", listener.local_addr()?.port());
    io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_is_tried_once() {
        let pes = [0, 1, 2, 3].map(PeId);
        let mut placement = Placement::local(4);
        let tried = |placement: &Placement| -> Vec<(String, usize)> {
            let targets = targets(placement, &pes).into_iter();
            targets.map(|it| (it.over, it.pes.len())).collect()
        };
        assert_eq!(tried(&placement), [(HERE.to_owned(), 4)]);
        placement.places[3].run = vec!["nice".to_owned()];
        placement.places[2].name = Some("c".to_owned());
        assert_eq!(
            tried(&placement),
            [(HERE.to_owned(), 3), (HERE.to_owned(), 1)]
        );
        placement.launch = Launch::Ssh(Default::default());
        placement.places[0].is_here = true;
        let ways = ["here", "ssh 127.0.0.1", "ssh c", "ssh 127.0.0.1"];
        assert_eq!(tried(&placement), ways.map(|way| (way.to_owned(), 1)));
        let launch = Launch::Join {
            port: 1,
            wait: CONNECT,
            starter: None,
        };
        let nowhere = IpAddr::from([0, 0, 0, 0]);
        assert!(tried(&Placement::joining(nowhere, launch, 4)).is_empty());
    }
}
