//! The requested size of flits and packets.

use anyhow::{anyhow, bail};
use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};

use crate::site::topology::of_option;
use crate::text::units::{Bytes, parse_bytes};

/// Parses the payload of a flit.
pub fn flit_size(text: &str) -> anyhow::Result<u32> {
    let bytes = parse_bytes(text).map_err(of_option("--flit-size"))?;
    match u32::try_from(bytes) {
        Ok(fits) if (MIN_FLIT_BYTES..=MAX_FLIT_BYTES).contains(&fits) => Ok(fits),
        _ => bail!(
            "--flit-size {}: a flit has {} to {}",
            Bytes(bytes),
            Bytes(MIN_FLIT_BYTES.into()),
            Bytes(MAX_FLIT_BYTES.into())
        ),
    }
}

/// Returns all errors of packets: for an operation whose messages go as a whole, beside a size of flits, or
/// where an algorithm or a tree is to be chosen.
pub fn packets_faults(
    whole: Option<String>,
    has_flit_size: bool,
    is_open: bool,
) -> impl Iterator<Item = anyhow::Error> {
    let whole = whole.map(|operation| {
        anyhow!(
            "--packets is for a scatter by fdf, for a gather by shoulder-tap or certification and for \
             any broadcast, not for {operation}: --flit-size says how large flits are there"
        )
    });
    let two_sizes = has_flit_size
        .then(|| anyhow!("--packets and --flit-size both define the size of flits; choose one"));
    let open = is_open.then(|| {
        anyhow!(
            "--packets is for one algorithm on one tree: name them, or leave it out, since auto chooses \
             among flits as well"
        )
    });
    [whole, two_sizes, open].into_iter().flatten()
}
