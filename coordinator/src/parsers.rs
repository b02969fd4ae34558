//! What reads the files and arguments that people write, what a stranger may send, and what
//! Flitcast itself has left on the disk, for tests that feed it anything.
//! Each function gives what was understood, in a form of its own, or all that is wrong,
//! as it is printed.

use std::fmt::Debug;

use serde::de::DeserializeOwned;

use crate::files::profile::Profile;
use crate::files::user_file::SpotFault;
use crate::files::{edge_file, tree_file};
use crate::observe::metrics;
use crate::options::link_spec::{LinkFault, LinkSpec};
use crate::options::workload::Lengths;
use crate::retry;
use crate::site::{cluster_file, kept};
use crate::text::printable::printable;

type Read = Result<String, Vec<String>>;

fn shown(read: impl Debug) -> String {
    format!("{read:?}")
}

fn listed(faults: Vec<SpotFault>) -> Vec<String> {
    faults.iter().map(|fault| printable(&fault.fault)).collect()
}

/// `--tree FILE`.
pub fn tree_file(text: &str) -> Read {
    tree_file::parse(text).map(shown).map_err(listed)
}

/// `flitcast resume ROUND`.
pub fn record(text: &str) -> Read {
    retry::parse_record(text).map(shown).map_err(listed)
}

/// `--cluster FILE`.
pub fn cluster_file(text: &str) -> Read {
    cluster_file::parse(text).map(shown).map_err(listed)
}

/// `--network FILE`.
pub fn edge_file(text: &str) -> Read {
    edge_file::parse(text).map(shown).map_err(listed)
}

/// `--lengths` for so many messages.
pub fn lengths(text: &str, messages: usize) -> Read {
    let lengths = text.parse::<Lengths>();
    let lengths = lengths.map_err(|fault| vec![printable(fault)])?;
    let dealt = lengths.deal(messages).map(shown);
    dealt.map_err(|fault| vec![printable(fault)])
}

/// `--link`.
pub fn link(text: &str) -> Read {
    let said = |faults: Vec<LinkFault>| faults.iter().map(printable).collect();
    LinkSpec::parse(text).map(shown).map_err(said)
}

/// `--profile FILE`; what was understood is a profile again.
pub fn profile(text: &str) -> Read {
    let read = Profile::parse(text, None);
    read.map(|profile| profile.text()).map_err(listed)
}

/// What is sent to where metrics are shown.
pub fn request(bytes: &[u8]) -> Read {
    let understood = metrics::understood(bytes).map(shown);
    understood.map_err(|(status, why)| vec![status.to_owned(), why.to_owned()])
}

/// What `flitcast up` has settled: `cluster.json`.
pub fn kept_cluster(text: &str) -> Read {
    written::<kept::Said>(text)
}

/// What a keeper tells of its PEs: `pes.json`.
pub fn kept_pes(text: &str) -> Read {
    written::<kept::Pes>(text)
}

/// What was done on a cluster: `rounds.jsonl`. What is none of its lines is left out.
pub fn kept_rounds(text: &str) -> Read {
    Ok(shown(kept::rounds::parse(text)))
}

fn written<T: DeserializeOwned + Debug>(text: &str) -> Read {
    let read = serde_json::from_str::<T>(text).map(shown);
    read.map_err(|error| vec![printable(error)])
}
