//! The values of a cluster file, each with its check.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use flitcast_proto::wire::MAX_LANES;

use super::lookup::{Lookup, is_host_name};
use crate::files::toml_file::{Field, Table};
use crate::files::user_file::SourcePosition;
use crate::options::link_spec::LinkSpec;
use crate::site::placement::is_destination;
use crate::site::settings::NamedFile;

/// Maximum bytes of a name; names are part of every message about a PE, and host names are not
/// longer.
const LONGEST_NAME: usize = 255;

/// The value of a key and its position. The value is `None` if it was invalid and a fault was
/// reported.
pub struct At<T> {
    pub spot: SourcePosition,
    pub value: Option<T>,
}

impl<T: Clone> At<T> {
    /// Returns the value, if there is a valid one.
    pub fn value(at: &Option<At<T>>) -> Option<T> {
        at.as_ref()?.value.clone()
    }

    /// Reads a key with `read`; returns `None` if the key is missing.
    pub fn key(
        table: &Table<'_, '_>,
        key: &'static str,
        read: impl FnOnce(&Field<'_, '_>) -> Option<T>,
    ) -> Option<At<T>> {
        let field = table.optional(key)?;
        Some(At {
            spot: field.spot(),
            value: read(&field),
        })
    }
}

/// Reads a name on one line.
pub fn read_name(field: &Field<'_, '_>) -> Option<String> {
    let expected = format!("a name in quotes, of at most {LONGEST_NAME} bytes");
    let is_name =
        |name: &str| (1..=LONGEST_NAME).contains(&name.len()) && !name.contains(char::is_control);
    field.text_where(&expected, is_name)
}

/// Reads an address at which a host can be reached, or a name that is looked up.
pub fn read_address(field: &Field<'_, '_>, lookup: &Lookup) -> Option<IpAddr> {
    let text = field.value().as_str();
    let expected = "the address or the name of one host, in quotes";
    let is_name = |text: &&str| is_host_name(text) && text.contains(char::is_alphabetic);
    match text.filter(is_name) {
        Some(name) => {
            let found = lookup.address(name, None);
            let fault = |why| field.fault(format!("no host `{name}` is found: {why}"));
            found.map_err(fault).ok()
        }
        None => field.expect(expected, text.and_then(host_address)),
    }
}

fn host_address(text: &str) -> Option<IpAddr> {
    let address = text.parse().ok();
    address.filter(|a: &IpAddr| !a.is_unspecified() && !a.is_multicast())
}

/// Reads the addresses of a host's network cards.
pub fn read_rails(field: &Field<'_, '_>, lookup: &Lookup) -> Option<Vec<IpAddr>> {
    let expected = format!("a list of 2 to {MAX_LANES} addresses, all different");
    let addresses = field
        .list_of(&expected)?
        .map(|one| read_address(&one, lookup));
    let addresses = addresses.collect::<Option<Vec<IpAddr>>>()?;
    let distinct: BTreeSet<&IpAddr> = addresses.iter().collect();
    let is_so = (2..=MAX_LANES).contains(&addresses.len()) && distinct.len() == addresses.len();
    field.expect(&expected, is_so.then_some(addresses))
}

/// Reads the addresses of a PE on separate links.
pub fn read_reached_by(field: &Field<'_, '_>) -> Option<Vec<(SourcePosition, String, IpAddr)>> {
    let expected = "a list of a name and an address each, like [[\"a\", \"198.18.0.5\"]]";
    let pairs = field.list_of(expected)?.map(|pair| {
        let texts = pair.texts_where(expected, |texts| texts.len() == 2)?;
        let address = pair.expect(expected, host_address(&texts[1]))?;
        Some((pair.spot(), texts[0].clone(), address))
    });
    pairs.collect()
}

/// Reads the words of a command; the first is the program.
pub fn read_texts(field: &Field<'_, '_>) -> Option<Vec<String>> {
    field.texts_where("a list of words, like [\"nice\", \"-5\"]", |words| {
        words.first().is_none_or(|first| !first.is_empty())
            && words.iter().all(|word| !word.contains('\0'))
    })
}

/// Reads a path, which is relative to the folder `beside`.
pub fn read_path(field: &Field<'_, '_>, expected: &str, beside: &Path) -> Option<PathBuf> {
    // System calls end a path at a zero byte.
    let is_path = |text: &str| !text.is_empty() && !text.contains('\0');
    let path = field.text_where(expected, is_path)?;
    Some(beside.join(path))
}

pub fn named_file(key: &'static str, field: &Field<'_, '_>, beside: &Path) -> Option<NamedFile> {
    Some(NamedFile {
        key,
        path: read_path(field, "a file, in quotes", beside)?,
        spot: field.spot(),
    })
}

pub fn read_link(field: &Field<'_, '_>) -> Option<LinkSpec> {
    let expected = "a text like \"rate=200mbit,latency=1ms\"";
    field.parse_parts(expected, LinkSpec::parse)
}

pub fn read_destination(field: &Field<'_, '_>) -> Option<String> {
    let expected = "what ssh is given to reach its host, like \"me@a.example\"";
    field.text_where(expected, is_destination)
}
