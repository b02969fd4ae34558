//! Of a cluster file: who starts the processes, and where the coordinator listens for them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::ssh;
use super::{At, ClusterFileFault, PeEntry, starter};
use crate::files::toml_file::{Reader, Value};
use crate::files::user_file::Spot;
use crate::site::placement::Launch;
use crate::site::settings::NamedFile;
use crate::text::units::parse_time;

/// For all to join, unless the file says otherwise: containers are up in seconds, and who
/// starts them by hand has a minute.
const WAIT: Duration = Duration::from_secs(60);
/// Below this, a PE's own pauses between two tries would look like its absence.
const SHORTEST: Duration = Duration::from_secs(1);
/// Above this, nobody is waiting any more.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// `[launch]`, as far as it can be read.
pub struct LaunchTable {
    spot: Spot,
    /// `None` if what stands there is none.
    kind: Option<LaunchKind>,
    wait: Option<At<Option<Duration>>>,
    ssh: ssh::SshKeys,
    starter: starter::StarterKeys,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LaunchKind {
    Local,
    Join,
    Ssh,
    Slurm,
    Compose,
}

impl LaunchKind {
    /// All, as the file names them.
    const ALL: [(&'static str, LaunchKind); 5] = [
        ("local", LaunchKind::Local),
        ("join", LaunchKind::Join),
        ("ssh", LaunchKind::Ssh),
        ("slurm", LaunchKind::Slurm),
        ("compose", LaunchKind::Compose),
    ];

    /// The one of this name.
    fn named(name: &str) -> Option<LaunchKind> {
        let found = LaunchKind::ALL
            .into_iter()
            .find(|(known, _)| *known == name);
        found.map(|(_, kind)| kind)
    }

    fn name(self) -> &'static str {
        let found = LaunchKind::ALL.into_iter().find(|(_, kind)| *kind == self);
        found.map_or("", |(name, _)| name)
    }
}

impl LaunchTable {
    /// One that says nothing else.
    fn of(kind: LaunchKind) -> LaunchTable {
        LaunchTable {
            spot: Spot::default(),
            kind: Some(kind),
            wait: None,
            ssh: ssh::SshKeys::default(),
            starter: starter::StarterKeys::default(),
        }
    }
}

/// Who starts the processes.
pub struct Launched {
    /// Where the coordinator listens for them.
    pub coordinator: IpAddr,
    /// Who.
    pub launch: Launch,
    /// The files that this needs.
    pub files: Vec<NamedFile>,
}

/// An address, and a port if one is given.
pub type Endpoint = (IpAddr, Option<u16>);

impl Reader<'_, ClusterFileFault> {
    /// `[launch]`; `None` if it is no table.
    pub(super) fn launch(&mut self, value: &Value<'_>) -> Option<LaunchTable> {
        let Some(table) = value.get_ref().as_table() else {
            self.wrong_type("launch", "a table, [launch]", value);
            return None;
        };
        let mut section = LaunchTable {
            spot: self.spot_of(value),
            ..LaunchTable::of(LaunchKind::Local)
        };
        for (key, value) in table {
            match (key.get_ref().as_ref(), value.get_ref().as_str()) {
                ("kind", kind) => {
                    section.spot = self.spot_of(value);
                    section.kind = kind.and_then(LaunchKind::named);
                    if section.kind.is_none() {
                        let expected = "\"local\", \"join\", \"ssh\", \"slurm\" or \"compose\"";
                        self.wrong_type("kind", expected, value);
                    }
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
                (name, _) if self.starter_key(&mut section.starter, name, value) => {}
                _ => {
                    let known = format!("kind, wait, {}, {}", ssh::KEYS, starter::KEYS);
                    self.unknown_key(key, known);
                }
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
        section: Option<LaunchTable>,
        coordinator: Option<&At<Option<Endpoint>>>,
        entries: &[PeEntry],
    ) -> Option<Launched> {
        let loopback: Endpoint = (Ipv4Addr::LOCALHOST.into(), None);
        let said = coordinator.map_or(Some(loopback), |at| at.said);
        let section = section.unwrap_or_else(|| LaunchTable::of(LaunchKind::Local));
        // Of a kind that there is not, nothing else is useless.
        let kind = section.kind?;
        if kind != LaunchKind::Ssh {
            self.without_ssh(&section.ssh, entries);
        }
        if matches!(kind, LaunchKind::Local | LaunchKind::Ssh | LaunchKind::Join) {
            self.without_starter(&section.starter);
        }
        if let (LaunchKind::Local | LaunchKind::Ssh, Some(at), Some((_, Some(port)))) =
            (kind, coordinator, said)
        {
            self.fault(at.spot, ClusterFileFault::UselessPort { port });
        }
        let (launch, files) = match kind {
            LaunchKind::Local => (Launch::Local, Vec::new()),
            LaunchKind::Ssh => {
                let spot = coordinator.map_or(section.spot, |at| at.spot);
                let (ssh, files) = self.over_ssh(section.ssh, said?.0, spot, entries);
                (Launch::Ssh(ssh), files)
            }
            LaunchKind::Join | LaunchKind::Slurm | LaunchKind::Compose => {
                self.joining(kind, section, coordinator, entries)?
            }
        };
        Some(Launched {
            coordinator: said?.0,
            launch,
            files,
        })
    }

    /// Others start the processes, which then join.
    fn joining(
        &mut self,
        kind: LaunchKind,
        section: LaunchTable,
        coordinator: Option<&At<Option<Endpoint>>>,
        entries: &[PeEntry],
    ) -> Option<(Launch, Vec<NamedFile>)> {
        for entry in entries.iter().filter(|entry| !entry.run.is_empty()) {
            let (name, kind) = (entry.name(), kind.name());
            self.fault(entry.run_spot, ClusterFileFault::UselessRun { name, kind });
        }
        let begun = match kind {
            LaunchKind::Slurm => Some((Some(self.step(section.starter)), Vec::new())),
            LaunchKind::Compose => {
                let services = self.services(section.starter, section.spot);
                services.map(|(starter, file)| (Some(starter), vec![file]))
            }
            LaunchKind::Local | LaunchKind::Join | LaunchKind::Ssh => Some((None, Vec::new())),
        };
        let wait = section.wait.map_or(Some(WAIT), |at| at.said);
        let port = match coordinator {
            Some(at) => at.said?.1,
            None => None,
        };
        let Some(port) = port else {
            let spot = coordinator.map_or(section.spot, |at| at.spot);
            let kind = kind.name();
            self.fault(spot, ClusterFileFault::NoPort { kind });
            return None;
        };
        let (wait, (starter, files)) = (wait?, begun?);
        Some((
            Launch::Join {
                port,
                wait,
                starter,
            },
            files,
        ))
    }
}

/// Whether something can be reached there.
pub fn is_one_host(address: IpAddr) -> bool {
    !address.is_unspecified() && !address.is_multicast()
}
