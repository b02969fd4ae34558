//! What reads the files and arguments that people write, for tests that feed it anything.
//! Each function gives what was understood, in a form of its own, or all that is wrong,
//! as it is printed.

use std::fmt::{Debug, Display};

use crate::link_spec::{LinkFault, LinkSpec};
use crate::printable::printable;
use crate::toml_file::SpotFault;
use crate::workload::Lengths;
use crate::{cluster_file, edge_file, retry, tree_file};

type Read = Result<String, Vec<String>>;

fn shown(read: impl Debug) -> String {
    format!("{read:?}")
}

fn listed<F: Display>(faults: Vec<SpotFault<F>>) -> Vec<String> {
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
    let said = |faults: Vec<(usize, edge_file::Fault)>| {
        faults.iter().map(|(_, fault)| printable(fault)).collect()
    };
    edge_file::parse(text).map(shown).map_err(said)
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
