//! Part of a cluster file: the starter of the processes, and the coordinator's listen address.
//!
//! ```toml
//! coordinator = "0.0.0.0:7117"      # where the PEs call
//! tree = "kary:2:8"                 # on whatever nodes; or a [[pe]] named after each node
//! [launch]
//! kind = "slurm"
//! options = ["--partition=short"]   # for srun
//! ```
//!
//! ```toml
//! [launch]
//! kind = "compose"
//! file = "compose.yaml"             # from where this file is
//! options = ["--project-name=one"]  # for docker compose
//! [[pe]]
//! name = "p0"                       # its service
//! ```
//!
//! ```toml
//! coordinator = "10.0.0.9"            # where the hosts reach this machine
//! [launch]
//! kind = "ssh"
//! user = "me"                         # unless ssh's configuration says who
//! port = 2222                         # and where
//! config = "ssh_config"               # from where this file is; else the user's own
//! directory = "~/.cache/flitcast"     # where the program is put; the default
//! environment = ["LANG"]              # variables of this process that the PEs get
//! binary = "target/arm/flitcast"      # what is put there; else this very program
//! [[pe]]
//! name = "a"
//! address = "10.0.0.1"
//! ssh = "me@a.example"                # what ssh is given; else the name
//! here = true                         # instead: this PE runs on this machine, without ssh
//! ```

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;

use super::entry::PeEntry;
use super::lookup::Lookup;
use super::values::{At, named_file, read_address, read_texts};
use crate::files::toml_file::{Field, Reader, Table};
use crate::files::user_file::SourcePosition;
use crate::options::names::typed;
use crate::site::placement::{Compose, Launch, SlurmStep, Ssh, Starter, is_destination};
use crate::site::settings::NamedFile;
use crate::text::units::parse_time;

/// Default time for all PEs to join: containers start in seconds, and a user who starts PEs by hand
/// has a minute.
const WAIT: Duration = Duration::from_secs(60);
/// Minimum time to join: it exceeds a PE's pause between two attempts to connect.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The valid parts of `[launch]`.
pub struct LaunchTable {
    spot: SourcePosition,
    /// Kind of the launch; `None` if the value is invalid.
    kind: Option<LaunchKind>,
    wait: Option<At<Duration>>,
    ssh: SshKeys,
    /// The compose file.
    file: Option<At<NamedFile>>,
    /// Options of the program that starts the PEs.
    options: Option<At<Vec<String>>>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LaunchKind {
    Local,
    Join,
    Ssh,
    Slurm,
    Compose,
}

impl Default for LaunchTable {
    fn default() -> LaunchTable {
        LaunchTable {
            spot: SourcePosition::default(),
            kind: Some(LaunchKind::Local),
            wait: None,
            ssh: SshKeys::default(),
            file: None,
            options: None,
        }
    }
}

/// The starter of the processes.
pub struct Launched {
    /// Address where the coordinator listens for them.
    pub coordinator: IpAddr,
    pub launch: Launch,
    pub files: Vec<NamedFile>,
}

pub type Endpoint = (IpAddr, Option<u16>);

/// Reads `[launch]` of a file in the folder `beside`; returns `None` if it is not a table.
pub fn launch(field: &Field<'_, '_>, beside: &Path) -> Option<LaunchTable> {
    let table = field.table_of("a table, [launch]")?;
    let mut section = LaunchTable {
        spot: field.spot(),
        ..LaunchTable::default()
    };
    if let Some(field) = table.optional("kind") {
        section.spot = field.spot();
        let kind = field.value().as_str();
        let kind = kind.and_then(|kind| LaunchKind::from_str(kind, false).ok());
        let expected = "\"local\", \"join\", \"ssh\", \"slurm\" or \"compose\"";
        section.kind = field.expect(expected, kind);
    }
    section.wait = At::key(&table, "wait", |field| {
        let text = field.value().as_str();
        let time = text.and_then(|text| parse_time(text).ok());
        let time = time.map(Duration::from_nanos);
        let time = time.filter(|time| (SHORTEST..=LONGEST).contains(time));
        field.expect("a time from 1s to 86400s, in quotes", time)
    });
    section.ssh = ssh_keys(&table, beside);
    section.file = At::key(&table, "file", |field| named_file("file", field, beside));
    section.options = At::key(&table, "options", read_texts);
    table.refuse_others();
    Some(section)
}

/// Reads the coordinator's listen address, with an optional port.
pub fn endpoint(field: &Field<'_, '_>, lookup: &Lookup) -> Option<Endpoint> {
    let text = field.value().as_str().unwrap_or_default();
    match text.parse::<SocketAddr>() {
        // If PEs join, the address 0.0.0.0 means all addresses of this host.
        Ok(both) if !both.ip().is_multicast() && both.port() > 0 => {
            Some((both.ip(), Some(both.port())))
        }
        _ => Some((read_address(field, lookup)?, None)),
    }
}

impl LaunchTable {
    pub fn is_ssh(&self) -> bool {
        self.kind == Some(LaunchKind::Ssh)
    }
}

/// Returns the starter of the processes and the coordinator's listen address; `None` if a fault was
/// reported.
pub fn launched(
    reader: &Reader<'_>,
    section: Option<LaunchTable>,
    coordinator: Option<&At<Endpoint>>,
    entries: &[PeEntry],
) -> Option<Launched> {
    let loopback: Endpoint = (Ipv4Addr::LOCALHOST.into(), None);
    let endpoint = coordinator.map_or(Some(loopback), |at| at.value);
    let section = section.unwrap_or_default();
    // For an unknown kind, other keys are not reported as useless.
    let kind = section.kind?;
    refuse_useless(reader, kind, &section, entries);
    if let (LaunchKind::Local | LaunchKind::Ssh, Some(at), Some((_, Some(port)))) =
        (kind, coordinator, endpoint)
    {
        let fault = format!(
            "the coordinator has a port, {port}, and nobody joins: leave it out, \
             or say kind = \"join\" in [launch]"
        );
        reader.fault(at.spot, fault);
    }
    let (launch, files) = match kind {
        LaunchKind::Local => (Launch::Local, Vec::new()),
        LaunchKind::Ssh => {
            let spot = coordinator.map_or(section.spot, |at| at.spot);
            check_ssh(reader, endpoint?.0, spot, entries);
            (Launch::Ssh(section.ssh.ssh), section.ssh.files)
        }
        LaunchKind::Join | LaunchKind::Slurm | LaunchKind::Compose => {
            joining(reader, kind, section, coordinator, entries)?
        }
    };
    Some(Launched {
        coordinator: endpoint?.0,
        launch,
        files,
    })
}

/// Reports the keys that another kind of launch uses.
fn refuse_useless(
    reader: &Reader<'_>,
    kind: LaunchKind,
    section: &LaunchTable,
    entries: &[PeEntry],
) {
    if kind != LaunchKind::Ssh {
        let useless = |spot, key| {
            let kind = "leave it out, or say kind = \"ssh\" in [launch]";
            reader.fault(spot, format!("{key} is for hosts that ssh reaches: {kind}"));
        };
        if let Some((spot, key)) = section.ssh.first {
            useless(spot, key);
        }
        if let Some(At { spot, .. }) = entries.iter().find_map(|entry| entry.ssh.as_ref()) {
            useless(*spot, "ssh");
        }
        if let Some(entry) = entries.iter().find(|entry| entry.here) {
            useless(entry.spot, "here");
        }
    }
    let useless = |spot, key, kinds| {
        let fault =
            format!("{key} is for kind = \"{kinds}\" in [launch]: leave it out, or say that");
        reader.fault(spot, fault);
    };
    if let Some(file) = At::value(&section.file).filter(|_| kind != LaunchKind::Compose) {
        useless(file.spot, "file", "compose");
    }
    let takes_options = matches!(kind, LaunchKind::Slurm | LaunchKind::Compose);
    if let Some(options) = section.options.as_ref().filter(|_| !takes_options) {
        useless(options.spot, "options", "slurm\" or \"compose");
    }
}

/// Returns the launch of processes that others start and that join.
fn joining(
    reader: &Reader<'_>,
    kind: LaunchKind,
    section: LaunchTable,
    coordinator: Option<&At<Endpoint>>,
    entries: &[PeEntry],
) -> Option<(Launch, Vec<NamedFile>)> {
    let kind_name = typed(&kind);
    for (entry, run) in entries.iter().filter_map(|it| Some((it, it.run.as_ref()?))) {
        if run.value.as_ref().is_some_and(|words| !words.is_empty()) {
            let (name, starts) = (entry.name(), "others start it: leave it out");
            let fault = format!("{name} has a run, and with kind = \"{kind_name}\" {starts}");
            reader.fault(run.spot, fault);
        }
    }
    let options = At::value(&section.options).unwrap_or_default();
    let begun = match kind {
        LaunchKind::Slurm => Some((Some(Starter::Slurm(SlurmStep { options })), Vec::new())),
        LaunchKind::Compose => {
            if section.file.is_none() {
                let fault = "kind = \"compose\" needs the compose file: file = \"compose.yaml\"";
                reader.fault(section.spot, fault);
            }
            At::value(&section.file).map(|named| {
                let file = named.path.clone();
                let compose = Starter::Compose(Compose { file, options });
                (Some(compose), vec![named])
            })
        }
        LaunchKind::Local | LaunchKind::Join | LaunchKind::Ssh => Some((None, Vec::new())),
    };
    let wait = section.wait.map_or(Some(WAIT), |at| at.value);
    let port = match coordinator {
        Some(at) => at.value?.1,
        None => None,
    };
    let Some(port) = port else {
        let spot = coordinator.map_or(section.spot, |at| at.spot);
        let like = "coordinator = \"ADDRESS:PORT\", like \"198.18.0.1:7117\"";
        let fault = format!("kind = \"{kind_name}\" needs a port to listen on: {like}");
        reader.fault(spot, fault);
        return None;
    };
    let (starter, files) = begun?;
    let launch = Launch::Join {
        port,
        wait: wait?,
        starter,
    };
    Some((launch, files))
}

/// Keys of `[launch]` that only ssh uses.
const SSH_KEYS: [&str; 6] = [
    "user",
    "port",
    "config",
    "directory",
    "environment",
    "binary",
];

#[derive(Default)]
struct SshKeys {
    pub ssh: Ssh,
    /// One of the keys, with its position.
    first: Option<(SourcePosition, &'static str)>,
    pub files: Vec<NamedFile>,
}

fn ssh_keys(table: &Table<'_, '_>, beside: &Path) -> SshKeys {
    let there = SSH_KEYS.map(|key| Some((table.optional(key)?.spot(), key)));
    // If several keys are useless, only the alphabetically first is reported.
    let first = there.into_iter().flatten().min_by_key(|(_, key)| *key);
    let is_user = |text: &str| is_destination(text) && !text.contains('@');
    let is_directory = |text: &str| {
        let rooted = text.starts_with('/') || text.starts_with("~/");
        rooted && !text.contains(char::is_control)
    };
    let are_variables = |names: &[String]| names.iter().all(|name| is_variable(name));
    let directory = table.find("directory", |field| {
        let expected = "a path on the hosts that begins with / or ~/, in quotes";
        field.text_where(expected, is_directory)
    });
    let environment = table.find("environment", |field| {
        let expected = "a list of variables' names, like [\"LANG\"]";
        field.texts_where(expected, are_variables)
    });
    let files =
        ["binary", "config"].map(|key| table.find(key, |field| named_file(key, field, beside)));
    let [binary, config] = files.clone().map(|file| Some(file?.path));
    SshKeys {
        ssh: Ssh {
            user: table.find("user", |field| {
                field.text_where("the name of a user, in quotes", is_user)
            }),
            port: table.find("port", |field| {
                let port = field.value().as_integer();
                let port = port.and_then(|port| port.as_str().parse().ok());
                field.expect("a number from 1 to 65535", port.filter(|port| *port > 0))
            }),
            directory,
            environment: environment.unwrap_or_default(),
            config,
            binary,
        },
        first,
        files: files.into_iter().flatten().collect(),
    }
}

/// Checks that ssh reaches the hosts, and the hosts the coordinator.
fn check_ssh(reader: &Reader<'_>, coordinator: IpAddr, spot: SourcePosition, entries: &[PeEntry]) {
    let by_name = |entry: &&PeEntry| entry.ssh.is_none() && !entry.here;
    for entry in entries.iter().filter(by_name) {
        if let Some(name) = entry.called().filter(|name| !is_destination(name)) {
            let like = "say how it reaches the host, like ssh = \"me@a.example\"";
            reader.fault(entry.spot, format!("ssh cannot be given `{name}`: {like}"));
        }
    }
    let away = entries.iter().find_map(PeEntry::away);
    if let (true, Some((name, address))) = (coordinator.is_loopback(), away) {
        let fault = format!(
            "the coordinator listens on {coordinator}, where {name} at {address} does not reach it: \
             say coordinator = \"ADDRESS\", where the hosts reach this machine"
        );
        reader.fault(spot, fault);
    }
}

/// Returns whether a shell accepts the text as the name of a variable.
fn is_variable(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit())
}
