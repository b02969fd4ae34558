//! PEs as they are typed, how many there can be on one machine, and what each needs of it.

use flitcast_proto::{PeId, Tree};
use thiserror::Error;

/// Processes on one machine. Each has some 8 MiB and a dozen descriptors; a
/// thousand is past what a machine does well and before what hurts it.
pub const MAX_LOCAL_PES: usize = 1024;

/// Descriptors that the coordinator needs for a PE: its control connection, its stderr, its
/// process.
const DESCRIPTORS_PER_PE: u64 = 3;
/// And where that process is an ssh: what goes to it, and what else it says.
pub const DESCRIPTORS_PER_SSH: u64 = 2;
/// And for itself: some of its own, and 16 who scrape.
const DESCRIPTORS_OWN: u64 = 32;

/// Descriptors that a coordinator of so many PEs needs, those that strangers take apart.
pub fn needed_descriptors(pes: usize) -> u64 {
    DESCRIPTORS_OWN + DESCRIPTORS_PER_PE * pes as u64
}

/// A PE, typed as 3 or P3.
pub fn parse_pe(text: &str) -> Result<PeId, String> {
    let number = text.strip_prefix('P').unwrap_or(text).parse();
    let told = |_| format!("`{text}` is no PE: 3 or P3, say");
    number.map(PeId).map_err(told)
}

/// Nobody is there to start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("--from: there is no {from} among {pes} PEs, P0 to P{}", pes - 1)]
pub struct NoSuchPe {
    /// Who was asked for.
    pub from: PeId,
    /// How many there are.
    pub pes: usize,
}

/// The source that was asked for, or P0.
///
/// # Errors
///
/// That it is not there.
pub fn source(from: Option<PeId>, tree: &Tree) -> Result<PeId, NoSuchPe> {
    let from = from.unwrap_or(PeId::ROOT);
    let pes = tree.len();
    match tree.contains(from) {
        true => Ok(from),
        false => Err(NoSuchPe { from, pes }),
    }
}
