//! The fuzz targets, and the properties that their answers must have.

use flitcast_cluster::parsers;
use flitcast_proto::wire::admission::Admission;
use flitcast_proto::wire::control::{FromPe, ToPe};
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::seal::{FrameVerifier, HEAD_BYTES, frame_bytes};
use flitcast_proto::wire::{LENGTH_BYTES, MAX_CONTROL_FRAME, flit, frame_length};

use super::target::{Target, parse_text};
use super::{PART, examples, payload, state};
use crate::wire_examples::written;

pub const TARGETS: &[Target] = &[
    Target::new("frames", frames, examples::frames, ""),
    Target::new("sealed", sealed, examples::sealed, ""),
    Target::new("edge", edge, examples::edges, ""),
    Target::new("flit", flit, examples::flits, ""),
    Target::new(
        "from-pe",
        |body| round_trip(body, FromPe::parse, FromPe::put),
        examples::control,
        "",
    ),
    Target::new(
        "to-pe",
        |body| round_trip(body, ToPe::parse, ToPe::put),
        examples::control,
        "",
    ),
    Target::new("admission", admission, examples::admissions, ""),
    Target::new(
        "tree-file",
        |text| parse_text(text, parsers::tree_file),
        examples::tree_files,
        "[[pe]]|id = |parent = |parents = |root = 0|[[edges]]|child = |\
         rate = |latency = |\"1mbit\"|down = |up = |[|]|{|}|0x",
    ),
    Target::new(
        "record",
        |text| parse_text(text, parsers::record),
        examples::records,
        "[[dead]]|[[link]]|pe = |parents = |nodes = |bytes = |delivered = |\"|[|]",
    ),
    Target::new(
        "cluster-file",
        |text| parse_text(text, parsers::cluster_file),
        examples::cluster_files,
        "[[pe]]|name = |address = |parent = |parent_address = |run = |\
         [launch]|kind = |coordinator = |\"127.0.0.1\"|\"::1\"|\"\"",
    ),
    Target::new(
        "edge-file",
        |text| parse_text(text, parsers::edge_file),
        examples::edge_files,
        "#| |0 1|4294967295|-1",
    ),
    Target::new(
        "lengths",
        |text| parse_text(text, |text| parsers::lengths(text, 5)),
        examples::lengths,
        "uniform:|equal:|ramp:|onebig:|halfnull:|..|:|,|KiB|MiB|TB|18446744073709551615|.|e",
    ),
    Target::new(
        "link",
        |text| parse_text(text, parsers::link),
        examples::links,
        "rate=|latency=|,|mbit|gbit|kbit|ms|us|ns|s|unlimited|.|1e9|18446744073709551615",
    ),
    payload::ENTRY,
    payload::UNPACKER,
    state::PROFILE,
    state::REQUEST,
    state::KEPT_CLUSTER,
    state::KEPT_PES,
    state::KEPT_ROUNDS,
];

/// Checks that a parsed admission is encoded and parsed to the same value.
fn admission(frame: &[u8]) -> Result<String, String> {
    read_again(frame, Admission::parse, Admission::written)
}

/// Checks that a parsed message is encoded and parsed to the same value.
fn round_trip<T: PartialEq + std::fmt::Debug, E: std::fmt::Display>(
    body: &[u8],
    parse: fn(&[u8]) -> Result<T, E>,
    put: fn(&T, &mut Vec<u8>),
) -> Result<String, String> {
    let write = |value: &T| written(|out| put(value, out)).split_off(LENGTH_BYTES);
    read_again(body, parse, write)
}

/// Checks that what is parsed is the same once it was written.
fn read_again<T: PartialEq + std::fmt::Debug, E: std::fmt::Display>(
    input: &[u8],
    parse: fn(&[u8]) -> Result<T, E>,
    write: impl Fn(&T) -> Vec<u8>,
) -> Result<String, String> {
    let value = match parse(input) {
        Ok(value) => value,
        Err(error) => return Ok(error.to_string()),
    };
    match parse(&write(&value)) {
        Ok(again) if again == value => Ok(format!("{value:?}")),
        Ok(again) => Err(format!("{value:?} is written and read as {again:?}")),
        Err(error) => Err(format!("{value:?} is written and refused: {error}")),
    }
}

fn edge(body: &[u8]) -> Result<String, String> {
    round_trip(body, EdgeFrame::parse, EdgeFrame::put)
}

/// Checks that the payload of a parsed flit is at the end of its frame.
fn flit(body: &[u8]) -> Result<String, String> {
    let flit = match flit::parse(body) {
        Ok(flit) => flit,
        Err(error) => return Ok(error.to_string()),
    };
    let Some(payload) = body.get(flit.payload.clone()) else {
        return Err(format!("{flit:?} in {} bytes", body.len()));
    };
    if flit.payload.end != body.len() {
        let length = body.len();
        return Err(format!("{flit:?} does not end with its frame, {length}"));
    }
    let digest = flit.digest.as_ref();
    let mut frame = written(|out| flit::put_prefix(flit.head, digest, payload.len(), out));
    frame.extend_from_slice(payload);
    match flit::parse(&frame[LENGTH_BYTES..]) {
        Ok(again) if (again.head, again.digest) == (flit.head, flit.digest) => {
            Ok(format!("{} {}", flit.head.is_some(), flit.digest.is_some()))
        }
        other => Err(format!("{flit:?} is written and read as {other:?}")),
    }
}

/// Divides a stream into frames, as the reader of a connection does.
fn frames(mut stream: &[u8]) -> Result<String, String> {
    let mut answers = Vec::new();
    while let Some((prefix, rest)) = stream.split_first_chunk() {
        let length = match frame_length(*prefix, MAX_CONTROL_FRAME) {
            Ok(length) if length > MAX_CONTROL_FRAME => {
                return Err(format!("a frame of {length} bytes is let in"));
            }
            Ok(length) => length,
            Err(error) => {
                answers.push(error.to_string());
                break;
            }
        };
        let Some((body, rest)) = rest.split_at_checked(length) else {
            answers.push("cut".to_owned());
            break;
        };
        stream = rest;
        answers.push(match flit::is_flit(body) {
            true => flit(body)?,
            false => edge(body)?,
        });
    }
    Ok(answers.join(PART))
}

/// Divides a stream into sealed frames, and checks that each accepted frame is new and not too
/// long.
fn sealed(mut stream: &[u8]) -> Result<String, String> {
    let mut opener = FrameVerifier::default();
    let mut answers = Vec::new();
    loop {
        let whole = match frame_bytes(stream, MAX_CONTROL_FRAME) {
            Ok(Some(whole)) if whole > LENGTH_BYTES + MAX_CONTROL_FRAME => {
                return Err(format!("a frame of {whole} bytes is let in"));
            }
            Ok(Some(whole)) => whole,
            Ok(None) => break,
            Err(error) => {
                answers.push(error.to_string());
                break;
            }
        };
        let Some((frame, rest)) = stream.split_at_checked(whole) else {
            answers.push("cut".to_owned());
            break;
        };
        stream = rest;
        match opener.open(frame) {
            Ok(true) if opener.open(frame) != Ok(false) => {
                return Err("a frame is new twice".to_owned());
            }
            Ok(true) => answers.push(edge(&frame[HEAD_BYTES..])?),
            Ok(false) => answers.push("again".to_owned()),
            Err(error) => {
                answers.push(error.to_string());
                break;
            }
        }
    }
    Ok(answers.join(PART))
}
