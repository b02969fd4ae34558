//! The settings of a cluster file for the cluster as a whole. Each corresponds to an option of the
//! command line, which overrides it.
//!
//! ```toml
//! link = "rate=200mbit,latency=1ms"   # --link, if all PEs are processes of one host
//! [security]
//! credentials = "credentials"         # --credentials, from where this file is
//! [timeouts]
//! silence = "5s"                      # --timeouts silence=5s
//! [[pe]]
//! link = "rate=50mbit"                # of the edge to its parent
//! ```
//!
//! `--insecure` has no key: it must be typed each time.

use std::net::IpAddr;
use std::path::Path;

use flitcast_node::limits::Timeouts;
use flitcast_proto::PeId;

use super::entry::PeEntry;
use super::values::{At, read_path};
use crate::files::toml_file::{Field, Reader};
use crate::options::link_spec::{EdgeSpec, LinkSpec, Links};
use crate::options::timeouts;
use crate::site::settings::Credentials;

/// Reads `[security]` of a file in the folder `beside`.
pub fn security(field: &Field<'_, '_>, beside: &Path) -> Option<Credentials> {
    let table = field.table_of("a table, [security]")?;
    let credentials = table.optional("credentials").and_then(|field| {
        Some(Credentials {
            folder: read_path(&field, "a folder, in quotes", beside)?,
            spot: field.spot(),
        })
    });
    table.refuse(
        "insecure",
        "insecure is not allowed in a file: a command that sends unencrypted needs --insecure each time",
    );
    table.refuse_others();
    credentials
}

pub fn timeouts(field: &Field<'_, '_>) -> Timeouts {
    let mut parsed = Timeouts::default();
    let Some(table) = field.table_of("a table, [timeouts]") else {
        return parsed;
    };
    let mut is_good = true;
    for timeout in timeouts::ALL {
        if let Some(field) = table.optional(timeout.name) {
            let set = |text: &str| timeout.set(&mut parsed, text);
            let set = field.parse_as("a time in quotes, like \"5s\"", set);
            is_good &= set.is_some();
        }
    }
    is_good &= table.refuse_others();
    // Checked only if no other fault was found, so that one mistake is one fault.
    if is_good && let Err(fault) = timeouts::check(&parsed) {
        let keys = ["silence", "heartbeat"];
        let given = keys.iter().find_map(|key| table.optional(key));
        given.as_ref().unwrap_or(field).fault(fault);
    }
    parsed
}

/// Returns the links of single PEs to their parents. Reports a fault if links are shaped across
/// hosts.
pub fn links(
    reader: &Reader<'_>,
    entries: &[PeEntry],
    everywhere: Option<&At<LinkSpec>>,
    in_network: bool,
) -> Links {
    let first = &entries[0];
    // A PE other than the first without a parent makes the tree invalid, which is reported
    // elsewhere. In a network any PE may be the root.
    if let (Some(link), None, false) = (&first.link, &first.parent, in_network) {
        let name = first.name();
        reader.fault(link.spot, format!("{name} has a link and no parent"));
    }
    let mut shaped = everywhere
        .into_iter()
        .chain(entries.iter().filter_map(|entry| entry.link.as_ref()));
    let away = entries.iter().find_map(PeEntry::away);
    if let (Some(link), Some((name, address))) = (shaped.next(), away) {
        let why = across_hosts(Some(&name), &address);
        reader.fault(link.spot, format!("link: {why}"));
    }
    let links = (0..).map(PeId).zip(entries).filter_map(|(pe, entry)| {
        let link = entry.link.as_ref()?.value?;
        Some((pe, EdgeSpec::alike(link)))
    });
    links.collect()
}

/// Returns the reason why a link cannot be shaped, for messages.
pub fn across_hosts(name: Option<&str>, address: &IpAddr) -> String {
    let who = name.unwrap_or("a PE");
    let why = match address.is_unspecified() {
        true => "may join from anywhere".to_owned(),
        false => format!("has an address of a network, {address}"),
    };
    format!(
        "only links between processes of one host are shaped, by the clock that all of them read, \
         and {who} {why}; take the link out"
    )
}
