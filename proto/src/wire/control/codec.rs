//! The parts of protobuf messages that several control messages have.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use prost::Message as _;

use super::footprint;
use crate::cost::Link;
use crate::wire::{WireError, pb};

/// Decodes a control frame, unless its lists would take more memory than its bytes allow.
pub(super) fn decode(body: &[u8]) -> Result<pb::control::Kind, WireError> {
    footprint::check(body)?;
    let kind = pb::Control::decode(body)?.kind;
    kind.ok_or_else(|| missing("a control message"))
}

pub(super) fn missing(what: &str) -> WireError {
    WireError::malformed(format!("{what} is missing"))
}

pub(super) fn put_link(link: Link) -> pb::Link {
    pb::Link {
        latency_ns: link.latency_ns,
        ns_per_byte: link.ns_per_byte,
        burst_bytes: link.burst_bytes,
        setup_ns: link.setup_ns,
    }
}

pub(super) fn parse_link(link: Option<pb::Link>) -> Result<Link, WireError> {
    let link = link.ok_or_else(|| missing("a link"))?;
    let link = Link {
        latency_ns: link.latency_ns,
        ns_per_byte: link.ns_per_byte,
        burst_bytes: link.burst_bytes,
        setup_ns: link.setup_ns,
    };
    let Link {
        latency_ns,
        setup_ns,
        ns_per_byte,
        burst_bytes,
    } = link;
    let numbers = [latency_ns, setup_ns, ns_per_byte, burst_bytes];
    match numbers.iter().all(|x| x.is_finite() && *x >= 0.0) {
        true => Ok(link),
        false => Err(WireError::malformed("a link with nonsense numbers")),
    }
}

/// Returns the bytes of a path.
pub(super) fn path_bytes(path: &Path) -> Bytes {
    Bytes::copy_from_slice(path.as_os_str().as_bytes())
}

/// Returns the path with these bytes.
pub(super) fn parse_path(bytes: Bytes) -> PathBuf {
    OsString::from_vec(bytes.into()).into()
}
