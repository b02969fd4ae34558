//! The requested size of flits.

use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};

use crate::job::fault::RequestError;
use crate::text::units::parse_bytes;

/// Parses the payload of a flit.
pub fn flit_size(text: &str) -> Result<u32, RequestError> {
    let option = "--flit-size";
    let bytes = parse_bytes(text).map_err(|source| RequestError::Size { option, source })?;
    match u32::try_from(bytes) {
        Ok(fits) if (MIN_FLIT_BYTES..=MAX_FLIT_BYTES).contains(&fits) => Ok(fits),
        _ => Err(RequestError::FlitSize(bytes)),
    }
}
