//! Part of a cluster file: settings of ssh and of the program on the hosts.
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

use std::net::IpAddr;
use std::path::Path;

use super::entry::PeEntry;
use super::values::{At, named_file};
use crate::files::toml_file::{Reader, Table};
use crate::files::user_file::SourcePosition;
use crate::site::settings::NamedFile;
use crate::site::ssh::{DIRECTORY, Ssh, is_destination};

/// Keys of `[launch]` that only ssh uses.
const KEYS: [&str; 6] = [
    "user",
    "port",
    "config",
    "directory",
    "environment",
    "binary",
];

#[derive(Default)]
pub struct SshKeys {
    pub ssh: Ssh,
    /// One of the keys, with its position.
    first: Option<(SourcePosition, &'static str)>,
    pub files: Vec<NamedFile>,
}

pub fn keys(table: &Table<'_, '_>, beside: &Path) -> SshKeys {
    let there = KEYS.map(|key| Some((table.optional(key)?.spot(), key)));
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
            directory: directory.unwrap_or_else(|| DIRECTORY.to_owned()),
            environment: environment.unwrap_or_default(),
            config,
            binary,
        },
        first,
        files: files.into_iter().flatten().collect(),
    }
}

/// Reports a fault if ssh is configured but not used.
pub fn without(reader: &Reader<'_>, section: &SshKeys, entries: &[PeEntry]) {
    if let Some((spot, key)) = section.first {
        reader.fault(spot, useless(key));
    }
    if let Some(At { spot, .. }) = entries.iter().find_map(|entry| entry.ssh.as_ref()) {
        reader.fault(*spot, useless("ssh"));
    }
    if let Some(entry) = entries.iter().find(|entry| entry.here) {
        reader.fault(entry.spot, useless("here"));
    }
}

/// Checks that ssh reaches the hosts, and the hosts the coordinator.
pub fn check(reader: &Reader<'_>, coordinator: IpAddr, spot: SourcePosition, entries: &[PeEntry]) {
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

fn useless(key: &str) -> String {
    format!("{key} is for hosts that ssh reaches: leave it out, or say kind = \"ssh\" in [launch]")
}

/// Returns whether a shell accepts the text as the name of a variable.
fn is_variable(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit())
}
