//! The memory that a control frame may claim: a small multiple of its bytes, with any lists.

use flitcast_proto::wire::control::{FromPe, ToPe};
use prost::bytes::BufMut as _;
use prost::encoding::{WireType, encode_key, encode_varint};

use super::reference::Reference;
use super::refuses;

/// Returns a field that is a message, a list of numbers or bytes.
fn field(number: u32, inside: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_key(number, WireType::LengthDelimited, &mut out);
    encode_varint(inside.len() as u64, &mut out);
    out.put_slice(inside);
    out
}

/// Returns the body of a frame with `count` empty elements in the list to which field numbers lead.
fn of_empty_elements(path: &[u32], count: usize) -> Vec<u8> {
    let (last, outer) = path.split_last().expect("a list has a number");
    let elements = field(*last, &[]).repeat(count);
    let outer = outer.iter().rev();
    outer.fold(elements, |body, number| field(*number, &body))
}

/// Every list of the protocol is bounded, including those that are added later.
#[test]
fn no_list_takes_more_memory_than_its_bytes_allow() {
    let lists = Reference::new().lists("Control");
    assert!(lists.len() > 15, "{lists:?}");
    for path in lists {
        let body = of_empty_elements(&path, 3_000_000);
        for refused in [FromPe::parse(&body).map(drop), ToPe::parse(&body).map(drop)] {
            refuses(&path, refused, "bytes of memory");
        }
        // A list of realistic length is decoded, and its content is checked.
        let body = of_empty_elements(&path, 1_000);
        for read in [FromPe::parse(&body).map(drop), ToPe::parse(&body).map(drop)] {
            let error = read.err().map(|error| error.to_string());
            let is_refused = error.is_some_and(|error| error.contains("bytes of memory"));
            assert!(!is_refused, "{path:?}");
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
    let body = field(5, &element.repeat(count));
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
    let zeros = vec![0; 10_000_000];
    // The fields of an assignment: its parents, and those of another tree.
    let parents = field(2, &zeros);
    let refused = ToPe::parse(&field(8, &parents));
    refuses("parents", refused, "the tree has 10000001 PEs");

    let reference = Reference::new();
    let mut assignment = reference.encode(
        "Assignment",
        "collective: COLLECTIVE_SCATTER flit_bytes: 65536 parents: 0 files {}",
    );
    assignment.put_slice(&field(43, &field(1, &zeros)));
    let refused = ToPe::parse(&field(8, &assignment));
    refuses("another tree", refused, "trees of different PEs");
}
