//! The memory that decoding a control frame takes, bounded before the frame is decoded.
//!
//! An element of a repeated field can have two bytes on the wire and a hundred in memory. The
//! frame's nested fields are walked without reserving anything, and the sizes of their elements
//! added up. Packed numbers take at most eight bytes of memory for each byte on the wire, and are
//! not counted.

use prost::Message as _;
use prost::bytes::Buf as _;
use prost::encoding::{WireType, decode_varint};

use crate::limits::{DECODED_ALLOWANCE, DECODED_PER_BYTE};
use crate::wire::codec::missing;
use crate::wire::{WireError, pb};

/// A field of a message that is nested or repeated, and not a number.
struct Field {
    number: u64,
    /// Bytes that each occurrence adds to a list; 0 for a field that is not repeated.
    element_bytes: usize,
    inside: &'static [Field],
}

const fn one(number: u64, inside: &'static [Field]) -> Field {
    Field {
        number,
        element_bytes: 0,
        inside,
    }
}

const fn many<T>(number: u64, inside: &'static [Field]) -> Field {
    Field {
        number,
        element_bytes: size_of::<T>(),
        inside,
    }
}

/// Bytes that the allocator adds to each text or byte string.
const HEAP_BYTES: usize = 32;
type Text = (String, [u8; HEAP_BYTES]);
type Octets = (bytes::Bytes, [u8; HEAP_BYTES]);

const COUNTS: &[Field] = &[many::<pb::EdgeCounts>(1, &[])];
const LANE: &[Field] = &[many::<pb::ShapedEdge>(3, &[])];
const BRIEF: &[Field] = &[
    one(4, &[many::<pb::ChildPace>(4, &[])]),
    many::<pb::Message>(5, &[]),
    many::<pb::Message>(6, &[]),
    many::<pb::ScheduledHop>(9, &[]),
];
/// The nested fields of a `Control`, as `flitcast.proto` numbers them; a test of the suite compares
/// this table with that file.
const CONTROL: &[Field] = &[
    one(2, &[many::<pb::MadeOf>(42, &[])]),
    one(3, &[many::<pb::Exchange>(2, &[])]),
    one(
        5,
        &[
            many::<pb::Arrival>(4, &[]),
            many::<pb::Span>(12, &[]),
            one(14, COUNTS),
            many::<pb::ChildStream>(19, &[]),
        ],
    ),
    one(
        8,
        &[
            one(
                7,
                &[
                    many::<Text>(6, &[]),
                    many::<Octets>(7, &[]),
                    many::<Text>(11, &[]),
                    many::<Text>(16, &[]),
                ],
            ),
            many::<pb::ShapedEdge>(9, &[]),
            many::<pb::Peer>(19, &[]),
            many::<pb::Lane>(43, LANE),
            many::<pb::Version>(45, &[]),
        ],
    ),
    one(10, &[one(1, BRIEF), many::<pb::PeSchedule>(3, BRIEF)]),
    one(16, &[one(5, COUNTS)]),
    one(24, &[many::<Octets>(1, &[])]),
    one(26, &[many::<Text>(6, &[]), many::<Text>(7, &[])]),
    one(38, &[many::<Octets>(1, &[]), many::<Octets>(3, &[])]),
    one(
        39,
        &[
            many::<Octets>(3, &[]),
            many::<Octets>(4, &[]),
            many::<Octets>(6, &[]),
        ],
    ),
    one(40, &[many::<Text>(1, &[])]),
];

/// Decodes a control frame, unless its lists would take more memory than its bytes allow.
pub(super) fn decode(body: &[u8]) -> Result<pb::control::Kind, WireError> {
    check(body)?;
    let kind = pb::Control::decode(body)?.kind;
    kind.ok_or_else(|| missing("a control message"))
}

/// Checks that the lists of a control frame take no more memory than a small multiple of its bytes.
fn check(body: &[u8]) -> Result<(), WireError> {
    let limit = DECODED_ALLOWANCE + body.len() * DECODED_PER_BYTE;
    let mut room = limit;
    walk(body, CONTROL, &mut room).map_err(|fault| match fault {
        Fault::Cut => WireError::malformed("it is cut off, or not a protobuf message"),
        Fault::Full => WireError::malformed(format!(
            "its lists would take more than the {limit} bytes of memory that {} bytes may take",
            body.len()
        )),
    })
}

enum Fault {
    Cut,
    Full,
}

fn walk(mut body: &[u8], fields: &[Field], room: &mut usize) -> Result<(), Fault> {
    while !body.is_empty() {
        let key = decode_varint(&mut body).map_err(|_| Fault::Cut)?;
        let bytes = match WireType::try_from(key & 7) {
            Ok(WireType::Varint) => {
                decode_varint(&mut body).map_err(|_| Fault::Cut)?;
                continue;
            }
            Ok(WireType::SixtyFourBit) => 8,
            Ok(WireType::ThirtyTwoBit) => 4,
            Ok(WireType::LengthDelimited) => decode_varint(&mut body).map_err(|_| Fault::Cut)?,
            // Groups are not used by any version of the protocol.
            _ => return Err(Fault::Cut),
        };
        let bytes = usize::try_from(bytes).map_err(|_| Fault::Cut)?;
        let value = body.get(..bytes).ok_or(Fault::Cut)?;
        body.advance(bytes);
        if let Some(field) = fields.iter().find(|field| field.number == key >> 3) {
            let left = room.checked_sub(field.element_bytes);
            *room = left.ok_or(Fault::Full)?;
            // Texts have nothing inside that is a field.
            if !field.inside.is_empty() {
                walk(value, field.inside, room)?;
            }
        }
    }
    Ok(())
}
