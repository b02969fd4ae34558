//! Parsing of PE numbers, the limit of PEs on one machine, and the descriptors that they need.

use anyhow::ensure;
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
    let number = text.strip_prefix('P').unwrap_or(text).parse();
    let told = |_| format!("`{text}` is no PE: 3 or P3, say");
    number.map(PeId).map_err(told)
}

/// Checks that a tree has the PE that an option names.
pub fn check_pe(option: &str, pe: PeId, tree: &Tree) -> anyhow::Result<()> {
    let pes = tree.len();
    ensure!(
        tree.contains(pe),
        "{option}: there is no {pe} among {pes} PEs, P0 to P{}",
        pes - 1
    );
    Ok(())
}

/// Returns the requested source, or P0.
///
/// # Errors
///
/// Returns an error if the tree has no such PE.
pub fn source(from: Option<PeId>, tree: &Tree) -> anyhow::Result<PeId> {
    let from = from.unwrap_or(PeId::ROOT);
    check_pe("--from", from, tree)?;
    Ok(from)
}
