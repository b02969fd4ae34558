//! One `[[pe]]` of a cluster file.

use std::net::IpAddr;

use super::lookup::{Lookup, is_host_name};
use super::values::{
    At, read_address, read_destination, read_link, read_name, read_rails, read_reached_by,
    read_texts,
};
use crate::files::toml_file::{Field, Reader};
use crate::files::user_file::SourcePosition;
use crate::options::link_spec::LinkSpec;

/// The valid parts of a `[[pe]]`.
#[derive(Default)]
pub struct PeEntry {
    pub spot: SourcePosition,
    pub name: Option<At<String>>,
    pub address: Option<At<IpAddr>>,
    pub parent: Option<At<String>>,
    pub parent_address: Option<At<IpAddr>>,
    pub addresses: Option<At<Vec<IpAddr>>>,
    pub reached_by: Vec<(SourcePosition, String, IpAddr)>,
    pub run: Option<At<Vec<String>>>,
    pub ssh: Option<At<String>>,
    /// Whether the process runs on this machine, though ssh starts the others.
    pub here: bool,
    pub link: Option<At<LinkSpec>>,
}

impl PeEntry {
    pub fn called(&self) -> Option<&str> {
        self.name.as_ref()?.value.as_deref()
    }

    pub fn name(&self) -> String {
        self.called().unwrap_or("?").to_owned()
    }

    /// Completes an address that is not given: that of the host which ssh reaches, or of this machine.
    /// `own` is where others reach this machine.
    pub fn complete(&mut self, reader: &Reader<'_>, lookup: &Lookup, own: Option<IpAddr>) {
        if self.address.is_some() {
            return;
        }
        let destination = self
            .ssh
            .as_ref()
            .map_or(self.called(), |at| at.value.as_deref());
        let host = destination.map(|it| it.rsplit_once('@').map_or(it, |(_, host)| host));
        let found = match (self.here, own, host.filter(|host| is_host_name(host))) {
            (true, Some(own), _) => Ok(own),
            (true, None, _) | (_, _, None) => Err(String::new()),
            (false, _, Some(host)) => lookup
                .address(host, own)
                .map_err(|why| format!("; no host `{host}` is found: {why}")),
        };
        let value = found.as_ref().ok().copied();
        self.address = Some(At {
            spot: self.spot,
            value,
        });
        if let Err(why) = found {
            let name = self.name();
            let fault = format!("{name} has no address: say where its children reach it{why}");
            reader.fault(self.spot, fault);
        }
    }

    /// Returns the name and the address, if the address belongs to a network and not to loopback.
    pub fn away(&self) -> Option<(String, IpAddr)> {
        let address = self.address.as_ref()?.value?;
        (!address.is_loopback()).then(|| (self.name(), address))
    }
}

pub fn entry(reader: &Reader<'_>, pe: &Field<'_, '_>, lookup: &Lookup) -> PeEntry {
    let spot = pe.spot();
    let Some(table) = pe.table_of("a table with name and address") else {
        return PeEntry {
            spot,
            // The fault is reported.
            address: Some(At { spot, value: None }),
            ..PeEntry::default()
        };
    };
    let name = At::key(&table, "name", read_name);
    let read_address = |field: &Field<'_, '_>| read_address(field, lookup);
    let address = At::key(&table, "address", read_address);
    let addresses = At::key(&table, "addresses", |field| read_rails(field, lookup));
    let first = addresses.as_ref().map(|at| At {
        spot: at.spot,
        value: at.value.as_ref().map(|all: &Vec<IpAddr>| all[0]),
    });
    if let (Some(At { spot, .. }), Some(_)) = (&addresses, &address) {
        let both = "address and addresses are both given: give one of them";
        reader.fault(*spot, both);
    }
    let reached_by = table.find("reached_by", read_reached_by);
    let entry = PeEntry {
        spot,
        name,
        address: address.or(first),
        addresses,
        reached_by: reached_by.unwrap_or_default(),
        parent: At::key(&table, "parent", read_name),
        parent_address: At::key(&table, "parent_address", read_address),
        run: At::key(&table, "run", read_texts),
        ssh: At::key(&table, "ssh", read_destination),
        here: table.flag("here"),
        link: At::key(&table, "link", read_link),
    };
    table.refuse_others();
    let name = entry.name();
    if entry.name.is_none() {
        table.fault("this [[pe]] has no name");
    }
    if let (Some(At { spot, .. }), None) = (&entry.parent_address, &entry.parent) {
        reader.fault(*spot, format!("{name} has a parent_address and no parent"));
    }
    entry
}
