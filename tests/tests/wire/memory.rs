//! The memory that a control frame may claim: a small multiple of its bytes, with any lists.

use flitcast_proto::wire::control::{FromPe, ToPe};
use prost::bytes::BufMut as _;
use prost::encoding::{WireType, encode_key, encode_varint};

use super::reference::Reference;
use super::refuses;

/// Returns the body of a frame with `count` empty elements in the list to which field numbers lead.
fn of_empty_elements(path: &[u32], count: usize) -> Vec<u8> {
    let (last, outer) = path.split_last().expect("a list has a number");
    let mut element = Vec::new();
    encode_key(*last, WireType::LengthDelimited, &mut element);
    encode_varint(0, &mut element);
    outer
        .iter()
        .rev()
        .fold(element.repeat(count), |body, field| {
            let mut wrapped = Vec::new();
            encode_key(*field, WireType::LengthDelimited, &mut wrapped);
            encode_varint(body.len() as u64, &mut wrapped);
            wrapped.put_slice(&body);
            wrapped
        })
}

/// Every list of the protocol is bounded, including those that are added later.
#[test]
fn no_list_takes_more_memory_than_its_bytes_allow() {
    let lists = Reference::new().lists("Control");
    assert!(lists.len() > 15, "{lists:?}");
    for path in lists {
        let body = of_empty_elements(&path, 3_000_000);
        let refusals = [FromPe::parse(&body).map(drop), ToPe::parse(&body).map(drop)];
        for refused in refusals {
            refuses(&path, refused, "bytes of memory");
        }
        // A list of realistic length is decoded, and its content is checked.
        let body = of_empty_elements(&path, 1_000);
        for read in [FromPe::parse(&body).map(drop), ToPe::parse(&body).map(drop)] {
            let is_bounded = |e: String| !e.contains("bytes of memory");
            assert!(
                read.map_err(|e| is_bounded(e.to_string())) != Err(false),
                "{path:?}"
            );
        }
    }
}

#[test]
fn elements_with_content_are_decoded_up_to_the_longest_frame() {
    let reference = Reference::new();
    let arrival = "arrivals { source: 70000 destination: 1 bytes_received: 1 bytes_total: 1 delivered: true }";
    let one = reference.encode("Control", &format!("report {{ {arrival} }}"));
    // After the key and the length of the report, whose length is below 128.
    let element = &one[2..];
    let count = 400_000;
    let mut body = Vec::new();
    encode_key(5, WireType::LengthDelimited, &mut body);
    encode_varint((count * element.len()) as u64, &mut body);
    body.put_slice(&element.repeat(count));
    let Ok(FromPe::Report(report)) = FromPe::parse(&body) else {
        panic!("{count} arrivals are a report");
    };
    assert_eq!(report.arrivals.len(), count);
    // A frame that is cut off anywhere is refused.
    assert!(FromPe::parse(&body[..body.len() - 1]).is_err());
}

/// More PEs than a tree may have, in each tree that an assignment can describe.
#[test]
fn trees_are_no_larger_than_trees_may_be() {
    let zeros = |count: usize| {
        let mut packed = Vec::new();
        encode_key(1, WireType::LengthDelimited, &mut packed);
        encode_varint(count as u64, &mut packed);
        packed.put_bytes(0, count);
        packed
    };
    let field = |number: u32, inside: &[u8]| {
        let mut out = Vec::new();
        encode_key(number, WireType::LengthDelimited, &mut out);
        encode_varint(inside.len() as u64, &mut out);
        out.put_slice(inside);
        out
    };
    let mut parents = zeros(10_000_000);
    // The field of an assignment's parents is 2.
    parents[0] = 2 << 3 | 2;
    let refused = ToPe::parse(&field(8, &parents));
    refuses("parents", refused, "the tree has 10000001 PEs");

    let reference = Reference::new();
    let mut assignment = reference.encode(
        "Assignment",
        "collective: COLLECTIVE_SCATTER flit_bytes: 65536 parents: 0 files {}",
    );
    assignment.put_slice(&field(43, &zeros(10_000_000)));
    let refused = ToPe::parse(&field(8, &assignment));
    refuses("another tree", refused, "trees of different PEs");
}
