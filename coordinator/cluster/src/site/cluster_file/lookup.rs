//! Addresses of hosts that a cluster file names, and of this machine where they reach it.
//!
//! A file is parsed first to find the names in it, and again after all of them were looked up side by side.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _, UdpSocket};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Maximum number of names that are looked up at once: each has a thread.
const AT_ONCE: usize = 64;
/// Time for an address to answer: TCP repeats a lost packet after a second.
const ANSWER: Duration = Duration::from_secs(2);
/// The port that is tried: hosts that ssh reaches listen there, and others refuse the connection.
const PORT: u16 = 22;

const NO_ADDRESS: &str = "it has no address";

/// The addresses of a name in the order of preference, each with whether it answers; or the reason why there
/// are none.
type Addresses = Result<Vec<(IpAddr, bool)>, String>;

/// A source of addresses.
pub struct Lookup {
    /// The requested names, with their addresses after `look_up`; `None` for texts that come from
    /// anywhere.
    names: Option<RefCell<BTreeMap<String, Option<Addresses>>>>,
}

impl Lookup {
    /// Creates a source without addresses.
    pub fn none() -> Lookup {
        Lookup { names: None }
    }

    /// Creates a source that uses the system's resolver and routes.
    pub fn system() -> Lookup {
        Lookup {
            names: Some(RefCell::default()),
        }
    }

    /// Returns the address of a host: of those that answer, or else of all, the first one of the coordinator's
    /// family, if that is known.
    ///
    /// # Errors
    ///
    /// Returns the reason if there is none yet.
    pub fn address(&self, host: &str, coordinator: Option<IpAddr>) -> Result<IpAddr, String> {
        let names = self.names.as_ref().ok_or("names are not looked up here")?;
        if let Ok(address) = host.parse() {
            return Ok(address);
        }
        let mut names = names.borrow_mut();
        let all = names.entry(host.to_owned()).or_default().as_ref();
        let all = all.ok_or("it was not looked up yet")?.as_ref()?;
        let is_other =
            |address: &IpAddr| coordinator.is_some_and(|it| it.is_ipv4() != address.is_ipv4());
        let best = all
            .iter()
            .min_by_key(|(address, answers)| (!answers, is_other(address)));
        best.map(|(address, _)| *address)
            .ok_or_else(|| NO_ADDRESS.to_owned())
    }

    /// Returns the names that were looked up and not found, and the reason for the first of them.
    pub fn not_found(&self) -> Option<(Vec<String>, String)> {
        let names = self.names.as_ref()?.borrow();
        let failed = |(name, found): (&String, &Option<Addresses>)| match found {
            Some(Err(why)) => Some((name.clone(), why.clone())),
            Some(Ok(all)) if all.is_empty() => Some((name.clone(), NO_ADDRESS.to_owned())),
            _ => None,
        };
        let (hosts, whys): (Vec<String>, Vec<String>) = names.iter().filter_map(failed).unzip();
        Some((hosts, whys.into_iter().next()?))
    }

    /// Looks up all requested names that are not known; returns whether there were any.
    pub fn look_up(&self) -> bool {
        let mut names = self.names.iter().map(RefCell::borrow_mut);
        let Some(mut names) = names.next() else {
            return false;
        };
        let unknown = names.iter_mut().filter(|(_, found)| found.is_none());
        let mut unknown: Vec<_> = unknown.collect();
        for few in unknown.chunks_mut(AT_ONCE) {
            thread::scope(|scope| {
                for (name, found) in few {
                    scope.spawn(|| **found = Some(addresses(name)));
                }
            });
        }
        !unknown.is_empty()
    }

    /// Returns the address at which another machine reaches this one.
    pub fn own(&self, other: IpAddr) -> Option<IpAddr> {
        self.names.as_ref()?;
        let any: IpAddr = match other {
            IpAddr::V4(_) => [0; 4].into(),
            IpAddr::V6(_) => [0; 16].into(),
        };
        // This chooses the route; nothing is sent.
        let socket = UdpSocket::bind(SocketAddr::new(any, 0)).ok()?;
        socket.connect(SocketAddr::new(other, 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    }
}

/// Resolves a name, or else the one that it has in the user's configuration of ssh, and tries its addresses if
/// there are several.
fn addresses(host: &str) -> Addresses {
    let found = (host, PORT).to_socket_addrs();
    let found = found.or_else(|error| {
        let configured = configured_for_ssh(host).ok_or(error)?;
        (configured.as_str(), PORT).to_socket_addrs()
    });
    let found = found.map_err(|error| {
        let why = error.to_string();
        let known = "failed to lookup address information: ";
        why.strip_prefix(known).unwrap_or(&why).to_owned()
    })?;
    let mut all: Vec<(SocketAddr, bool)> = found.map(|address| (address, true)).collect();
    if all.len() > 1 {
        thread::scope(|scope| {
            for (address, answers) in &mut all {
                scope.spawn(|| *answers = does_answer(address));
            }
        });
    }
    let ips = all.into_iter();
    Ok(ips
        .map(|(address, answers)| (address.ip(), answers))
        .collect())
}

/// Returns the name or the address that ssh uses for a host, if it is another one.
fn configured_for_ssh(host: &str) -> Option<String> {
    let mut ssh = Command::new("ssh");
    // This prints the configuration; ssh connects to nothing.
    let shown = ssh.args(["-G", "--", host]).stdin(Stdio::null()).output();
    let shown = String::from_utf8(shown.ok()?.stdout).ok()?;
    let name = shown
        .lines()
        .find_map(|line| line.strip_prefix("hostname "))?;
    (name != host).then(|| name.to_owned())
}

/// Returns whether the host of an address accepts or refuses a connection.
fn does_answer(address: &SocketAddr) -> bool {
    match TcpStream::connect_timeout(address, ANSWER) {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::ConnectionRefused,
    }
}

pub fn is_host_name(text: &str) -> bool {
    let is_of_name = |char: char| char.is_ascii_alphanumeric() || "-._".contains(char);
    text.starts_with(|char: char| char.is_ascii_alphanumeric())
        && text.len() < 254
        && text.chars().all(is_of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answering_addresses_of_the_coordinators_family_are_preferred() {
        let [v4, v6]: [IpAddr; 2] = [[10, 0, 0, 1].into(), [0; 16].into()];
        let lookup = |answers: [bool; 2]| {
            let all = vec![(v6, answers[0]), (v4, answers[1])];
            Lookup {
                names: Some(RefCell::new([("a".to_owned(), Some(Ok(all)))].into())),
            }
        };
        for answer in [true, false] {
            let both = lookup([answer; 2]);
            assert_eq!(both.address("a", None), Ok(v6));
            assert_eq!(both.address("a", Some(v4)), Ok(v4));
            assert_eq!(both.address("a", Some(v6)), Ok(v6));
        }
        assert_eq!(lookup([false, true]).address("a", Some(v6)), Ok(v4));
        assert_eq!(lookup([true, false]).address("a", Some(v4)), Ok(v6));
        assert!(Lookup::none().address("a", None).is_err());
    }

    #[test]
    fn requested_names_are_looked_up_once() {
        let lookup = Lookup::system();
        let loopback = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(lookup.address("127.0.0.1", None), Ok(loopback));
        assert!(!lookup.look_up());
        for name in ["localhost", "no-such-host.invalid"] {
            assert!(lookup.address(name, Some(loopback)).is_err());
        }
        assert!(lookup.look_up());
        assert_eq!(lookup.address("localhost", Some(loopback)), Ok(loopback));
        assert!(lookup.address("no-such-host.invalid", None).is_err());
        assert!(!lookup.look_up());
        assert!(!Lookup::none().look_up());
        assert_eq!(lookup.own(loopback), Some(loopback));
    }
}
