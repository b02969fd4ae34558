//! Of a cluster file: who starts the processes, and where the coordinator listens for them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::ssh::{self, Named};
use super::{At, Entry, Fault};
use crate::placement::Launch;
use crate::toml_file::{Reader, Spot, Value};
use crate::units::parse_time;

/// For all to join, unless the file says otherwise: containers are up in seconds, and who
/// starts them by hand has a minute.
const WAIT: Duration = Duration::from_secs(60);
/// Below this, a PE's own pauses between two tries would look like its absence.
const SHORTEST: Duration = Duration::from_secs(1);
/// Above this, nobody is waiting any more.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// `[launch]`, as far as it can be read.
pub struct Section {
    spot: Spot,
    /// `None` if what stands there is none.
    kind: Option<Kind>,
    wait: Option<At<Option<Duration>>>,
    ssh: ssh::Section,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Local,
    Join,
    Ssh,
}

/// Who starts the processes.
pub struct Launched {
    /// Where the coordinator listens for them.
    pub coordinator: IpAddr,
    /// Who.
    pub launch: Launch,
    /// The files that this needs.
    pub files: Vec<Named>,
}

/// An address, and a port if one is given.
pub type Endpoint = (IpAddr, Option<u16>);

impl Reader<'_, Fault> {
    /// `[launch]`; `None` if it is no table.
    pub(super) fn launch(&mut self, value: &Value<'_>) -> Option<Section> {
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type("launch", "a table, [launch]", value);
            return None;
        };
        let mut section = Section {
            spot: self.spot_of(value),
            kind: Some(Kind::Local),
            wait: None,
            ssh: ssh::Section::default(),
        };
        for (key, value) in table {
            match (key.get_ref().as_ref(), value.get_ref().as_str()) {
                ("kind", kind) => {
                    section.spot = self.spot_of(value);
                    section.kind = match kind {
                        Some("local") => Some(Kind::Local),
                        Some("join") => Some(Kind::Join),
                        Some("ssh") => Some(Kind::Ssh),
                        _ => {
                            let expected = "\"local\", \"join\" or \"ssh\"";
                            self.wrong_type("kind", expected, value);
                            None
                        }
                    };
                }
                ("wait", text) => {
                    let time = text.and_then(|text| parse_time(text).ok());
                    let time = time.map(Duration::from_nanos);
                    let said = time.filter(|time| (SHORTEST..=LONGEST).contains(time));
                    if said.is_none() {
                        self.wrong_type("wait", "a time from 1s to 86400s, in quotes", value);
                    }
                    let spot = self.spot_of(value);
                    section.wait = Some(At { spot, said });
                }
                (name, _) if self.ssh_key(&mut section.ssh, name, value) => {}
                _ => self.unknown_key(key, format!("kind, wait, {}", ssh::KEYS)),
            }
        }
        Some(section)
    }

    /// Where the coordinator listens: an address, and perhaps a port.
    pub(super) fn endpoint(&mut self, key: &'static str, value: &Value<'_>) -> Option<Endpoint> {
        let text = value.get_ref().as_str().unwrap_or_default();
        match text.parse::<SocketAddr>() {
            // Where others join, all that this host has may be meant: 0.0.0.0.
            Ok(both) if !both.ip().is_multicast() && both.port() > 0 => {
                Some((both.ip(), Some(both.port())))
            }
            _ => Some((self.address(key, value)?, None)),
        }
    }

    /// Who starts the processes, and where the coordinator listens for them; nothing once a
    /// fault was reported.
    pub(super) fn launched(
        &mut self,
        section: Option<Section>,
        coordinator: Option<&At<Option<Endpoint>>>,
        entries: &[Entry],
    ) -> Option<Launched> {
        let loopback: Endpoint = (Ipv4Addr::LOCALHOST.into(), None);
        let said = coordinator.map_or(Some(loopback), |at| at.said);
        let kind = section.as_ref().map_or(Some(Kind::Local), |of| of.kind);
        // Of a kind that there is not, nothing else is useless.
        if let Some(Kind::Local | Kind::Join) = kind {
            let none = ssh::Section::default();
            self.without_ssh(section.as_ref().map_or(&none, |of| &of.ssh), entries);
        }
        if let (Some(Kind::Local | Kind::Ssh), Some(at), Some((_, Some(port)))) =
            (kind, coordinator, said)
        {
            self.fault(at.spot, Fault::UselessPort { port });
        }
        let section = match (section, kind?) {
            (Some(section), Kind::Join) => section,
            (Some(section), Kind::Ssh) => {
                let spot = coordinator.map_or(section.spot, |at| at.spot);
                let (ssh, files) = self.over_ssh(section.ssh, said?.0, spot, entries);
                return Some(Launched {
                    coordinator: said?.0,
                    launch: Launch::Ssh(ssh),
                    files,
                });
            }
            _ => {
                return Some(Launched {
                    coordinator: said?.0,
                    launch: Launch::Local,
                    files: Vec::new(),
                });
            }
        };
        for entry in entries.iter().filter(|entry| !entry.run.is_empty()) {
            let name = entry.name();
            self.fault(entry.run_spot, Fault::UselessRun { name });
        }
        let wait = section.wait.map_or(Some(WAIT), |at| at.said);
        let (coordinator_address, port) = said?;
        let Some(port) = port else {
            let spot = coordinator.map_or(section.spot, |at| at.spot);
            self.fault(spot, Fault::NoPort);
            return None;
        };
        Some(Launched {
            coordinator: coordinator_address,
            launch: Launch::Join { port, wait: wait? },
            files: Vec::new(),
        })
    }
}

/// Whether something can be reached there.
pub fn is_one_host(address: IpAddr) -> bool {
    !address.is_unspecified() && !address.is_multicast()
}
