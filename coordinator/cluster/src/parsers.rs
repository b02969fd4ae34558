//! Parsers of the files and arguments that users write, of data from unauthenticated clients, and of
//! files that Flitcast left on the disk, for tests that feed them arbitrary input. Each function
//! returns the parsed value in printable form, or all errors as they are printed.

use std::fmt::Debug;

use serde::de::DeserializeOwned;

use crate::files::profile::Profile;
use crate::files::user_file::PositionedError;
use crate::files::{edge_file, tree_file};
use crate::observe::metrics;
use crate::options::link_spec::LinkSpec;
use crate::options::workload::Lengths;
use crate::retry;
use crate::site::{cluster_file, running_cluster};
use crate::text::printable::printable;

type Read = Result<String, Vec<String>>;

fn shown(read: impl Debug) -> String {
    format!("{read:?}")
}

fn listed(faults: Vec<PositionedError>) -> Vec<String> {
    faults.iter().map(|fault| printable(&fault.fault)).collect()
}

pub fn tree_file(text: &str) -> Read {
    tree_file::parse(text).map(shown).map_err(listed)
}

/// Parses `flitcast resume ROUND`.
pub fn record(text: &str) -> Read {
    retry::parse_record(text).map(shown).map_err(listed)
}

pub fn cluster_file(text: &str) -> Read {
    cluster_file::parse(text).map(shown).map_err(listed)
}

/// Parses `--network FILE`.
pub fn edge_file(text: &str) -> Read {
    edge_file::parse(text).map(shown).map_err(listed)
}

/// Parses `--lengths` for `messages` messages.
pub fn lengths(text: &str, messages: usize) -> Read {
    let lengths = text.parse::<Lengths>();
    let lengths = lengths.map_err(|fault| vec![printable(fault)])?;
    let dealt = lengths.deal(messages).map(shown);
    dealt.map_err(|fault| vec![printable(fault)])
}

pub fn link(text: &str) -> Read {
    let printed = |faults: Vec<String>| faults.iter().map(printable).collect();
    LinkSpec::parse(text).map(shown).map_err(printed)
}

/// Parses `--profile FILE`, and writes it again.
pub fn profile(text: &str) -> Read {
    let read = Profile::parse(text, None);
    read.map(|profile| profile.text()).map_err(listed)
}

/// Parses a request to the metrics server.
pub fn request(bytes: &[u8]) -> Read {
    let checked = metrics::check_request(bytes).map(shown);
    checked.map_err(|(status, why)| vec![status.to_owned(), why.to_owned()])
}

/// Parses `cluster.json`, the settings of a cluster that `flitcast up` started.
pub fn kept_cluster(text: &str) -> Read {
    written::<running_cluster::ClusterRecord>(text)
}

/// Parses `pes.json`, a daemon's list of its PEs.
pub fn kept_pes(text: &str) -> Read {
    written::<running_cluster::Pes>(text)
}

/// Parses `rounds.jsonl`, the list of rounds run on a cluster. Invalid lines are skipped.
pub fn kept_rounds(text: &str) -> Read {
    Ok(shown(running_cluster::rounds::parse(text)))
}

fn written<T: DeserializeOwned + Debug>(text: &str) -> Read {
    let read = serde_json::from_str::<T>(text).map(shown);
    read.map_err(|error| vec![printable(error)])
}
