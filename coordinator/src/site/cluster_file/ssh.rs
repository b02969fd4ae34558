//! Of a cluster file: how ssh reaches the hosts, and what is put there.
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
//! ```

use std::net::IpAddr;
use std::path::PathBuf;

use super::{At, ClusterFileFault, PeEntry, Reader, Value};
use crate::files::user_file::Spot;
use crate::site::settings::NamedFile;
use crate::site::ssh::{Ssh, is_destination};

/// What may stand in `[launch]` for ssh alone.
pub const KEYS: &str = "user, port, config, directory, environment, binary";

/// What `[launch]` says of ssh.
#[derive(Default)]
pub struct SshKeys {
    ssh: Ssh,
    /// The first of its keys, and where.
    first: Option<(Spot, &'static str)>,
    files: Vec<NamedFile>,
}

impl Reader<'_, ClusterFileFault> {
    /// Reads a key of `[launch]`; whether it is one for ssh.
    pub(super) fn ssh_key(&mut self, section: &mut SshKeys, key: &str, value: &Value<'_>) -> bool {
        let ssh = &mut section.ssh;
        let (spot, text) = (self.spot_of(value), value.get_ref().as_str());
        let key = match key {
            "user" => {
                let user = text.filter(|text| is_destination(text) && !text.contains('@'));
                match user {
                    Some(user) => ssh.user = Some(user.to_owned()),
                    None => self.wrong_type("user", "the name of a user, in quotes", value),
                }
                "user"
            }
            "port" => {
                let port = value.get_ref().as_integer();
                let port = port.and_then(|port| port.as_str().parse().ok());
                match port.filter(|port| *port > 0) {
                    Some(port) => ssh.port = Some(port),
                    None => self.wrong_type("port", "a number from 1 to 65535", value),
                }
                "port"
            }
            "directory" => {
                let is_one = |text: &&str| {
                    let rooted = text.starts_with('/') || text.starts_with("~/");
                    rooted && !text.contains(char::is_control)
                };
                match text.filter(is_one) {
                    Some(text) => ssh.directory = text.to_owned(),
                    None => {
                        let expected = "a path on the hosts that begins with / or ~/, in quotes";
                        self.wrong_type("directory", expected, value);
                    }
                }
                "directory"
            }
            "environment" => {
                let list = value.get_ref().as_array();
                let names = list.and_then(|list| {
                    let names = list.iter().map(|name| name.get_ref().as_str());
                    let names = names.map(|name| name.filter(|name| is_variable(name)));
                    names.map(|name| name.map(str::to_owned)).collect()
                });
                match names {
                    Some(names) => ssh.environment = names,
                    None => {
                        let expected = "a list of variables' names, like [\"LANG\"]";
                        self.wrong_type("environment", expected, value);
                    }
                }
                "environment"
            }
            "config" | "binary" => {
                let key = if key == "config" { "config" } else { "binary" };
                section.files.extend(self.named_file(key, value));
                key
            }
            _ => return false,
        };
        section.first.get_or_insert((spot, key));
        true
    }

    /// The path of a file.
    pub(super) fn named_file(&mut self, key: &'static str, value: &Value<'_>) -> Option<NamedFile> {
        let text = value.get_ref().as_str();
        // A zero byte would end it for the system.
        let Some(text) = text.filter(|text| !text.is_empty() && !text.contains('\0')) else {
            self.wrong_type(key, "a file, in quotes", value);
            return None;
        };
        Some(NamedFile {
            key,
            path: PathBuf::from(text),
            spot: self.spot_of(value),
        })
    }

    /// That nothing is said of an ssh that is not used.
    pub(super) fn without_ssh(&mut self, section: &SshKeys, entries: &[PeEntry]) {
        if let Some((spot, key)) = section.first {
            self.fault(spot, ClusterFileFault::UselessKey { key });
        }
        if let Some(At { spot, .. }) = entries.iter().find_map(|entry| entry.ssh.as_ref()) {
            self.fault(*spot, ClusterFileFault::UselessKey { key: "ssh" });
        }
    }

    /// How the hosts are reached, and the files that are named for it.
    pub(super) fn over_ssh(
        &mut self,
        section: SshKeys,
        coordinator: IpAddr,
        spot: Spot,
        entries: &[PeEntry],
    ) -> (Ssh, Vec<NamedFile>) {
        for entry in entries.iter().filter(|entry| entry.ssh.is_none()) {
            if let Some(name) = entry.name.as_ref().filter(|name| !is_destination(name)) {
                let name = name.clone();
                self.fault(entry.spot, ClusterFileFault::NoDestination { name });
            }
        }
        let away = entries.iter().find_map(|entry| {
            let address = entry.address.flatten()?;
            (!address.is_loopback()).then(|| (entry.name(), address))
        });
        if let (true, Some((name, address))) = (coordinator.is_loopback(), away) {
            let fault = ClusterFileFault::CoordinatorOnLoopback {
                coordinator,
                name,
                address,
            };
            self.fault(spot, fault);
        }
        (section.ssh, section.files)
    }

    /// What a `[[pe]]` says that ssh is to be given.
    pub(super) fn destination(&mut self, value: &Value<'_>) -> At<Option<String>> {
        let said = value.get_ref().as_str().filter(|text| is_destination(text));
        if said.is_none() {
            let expected = "what ssh is given to reach its host, like \"me@a.example\"";
            self.wrong_type("ssh", expected, value);
        }
        At {
            spot: self.spot_of(value),
            said: said.map(str::to_owned),
        }
    }
}

/// Whether a shell takes it for the name of a variable.
fn is_variable(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !name.is_empty() && name.chars().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit())
}
