//! Parsing of PE numbers, the limit of PEs on one machine, and the descriptors that they need.

use anyhow::{anyhow, ensure};
use flitcast_proto::{PeId, Tree};

/// Limit of PEs on one machine. Each takes some 8 MiB and a dozen descriptors; a machine runs a
/// thousand slowly, but without harm.
pub const MAX_LOCAL_PES: usize = 1024;

/// Descriptors that the coordinator needs for a PE: its control connection, its stderr, its process.
const DESCRIPTORS_PER_PE: u64 = 3;
/// Additional descriptors if that process is an ssh client: its stdin and its stdout.
pub const DESCRIPTORS_PER_SSH: u64 = 2;
/// Descriptors that the coordinator needs for itself, among them 16 for clients that scrape metrics.
const DESCRIPTORS_OWN: u64 = 32;

/// Returns the number of descriptors that a coordinator of `pes` PEs needs, without those for
/// unauthenticated clients.
pub fn needed_descriptors(pes: usize) -> u64 {
    DESCRIPTORS_OWN + DESCRIPTORS_PER_PE * pes as u64
}

/// Parses a PE, typed as 3 or P3.
pub fn parse_pe(text: &str) -> Result<PeId, String> {
    let number = text.strip_prefix(['P', 'p']).unwrap_or(text).parse();
    let invalid = |_| format!("`{text}` is not a PE: write 3, P3, or its name in the cluster file");
    number.map(PeId).map_err(invalid)
}

/// Returns the PE with one of these names, which are by PE, or else with this number.
pub fn pe_called(text: &str, names: &[String]) -> Result<PeId, String> {
    match names.iter().position(|name| name == text) {
        Some(pe) => Ok(PeId(pe as u32)),
        None => parse_pe(text),
    }
}

/// Returns the PE that an option names: by one of the `names`, which are by PE, or by its number.
///
/// # Errors
///
/// Returns an error if the tree has no such PE.
pub fn find_pe(option: &str, text: &str, names: &[String], tree: &Tree) -> anyhow::Result<PeId> {
    let pe = pe_called(text, names).map_err(|fault| anyhow!("{option}: {fault}"))?;
    let pes = tree.len();
    ensure!(
        tree.contains(pe),
        "{option}: there is no {pe} among {pes} PEs, P0 to P{}",
        pes - 1
    );
    Ok(pe)
}

/// Returns the requested source as [`find_pe`] does, or P0.
pub fn source(from: Option<&str>, names: &[String], tree: &Tree) -> anyhow::Result<PeId> {
    from.map_or(Ok(PeId::ROOT), |text| find_pe("--from", text, names, tree))
}
