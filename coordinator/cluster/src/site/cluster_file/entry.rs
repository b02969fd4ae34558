//! One `[[pe]]` of a cluster file.

use std::net::IpAddr;

use super::values::{
    At, read_address, read_destination, read_link, read_name, read_rails, read_reached_by,
    read_words,
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
    pub link: Option<At<LinkSpec>>,
}

impl PeEntry {
    pub fn called(&self) -> Option<&str> {
        self.name.as_ref()?.said.as_deref()
    }

    pub fn name(&self) -> String {
        self.called().unwrap_or("?").to_owned()
    }

    /// Returns the name and the address, if the address belongs to a network and not to loopback.
    pub fn away(&self) -> Option<(String, IpAddr)> {
        let address = self.address.as_ref()?.said?;
        (!address.is_loopback()).then(|| (self.name(), address))
    }
}

pub fn entry(reader: &Reader<'_>, pe: &Field<'_, '_>) -> PeEntry {
    let spot = pe.spot();
    let Some(table) = pe.table_of("a table with name and address") else {
        return PeEntry {
            spot,
            ..PeEntry::default()
        };
    };
    let name = At::key(&table, "name", read_name);
    let address = At::key(&table, "address", read_address);
    let addresses = At::key(&table, "addresses", read_rails);
    let first = addresses.as_ref().map(|at| At {
        spot: at.spot,
        said: at.said.as_ref().map(|all: &Vec<IpAddr>| all[0]),
    });
    if let (Some(At { spot, .. }), Some(_)) = (&addresses, &address) {
        let both = "there is an address, and addresses beside it: one of both says where it is";
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
        run: At::key(&table, "run", read_words),
        ssh: At::key(&table, "ssh", read_destination),
        link: At::key(&table, "link", read_link),
    };
    table.refuse_others();
    let name = entry.name();
    if entry.name.is_none() {
        table.fault("this [[pe]] has no name");
    }
    if entry.address.is_none() {
        table.fault(format!(
            "{name} has no address: say where its children reach it"
        ));
    }
    if let (Some(At { spot, .. }), None) = (&entry.parent_address, &entry.parent) {
        reader.fault(*spot, format!("{name} has a parent_address and no parent"));
    }
    entry
}
