//! The bytes of messages, computed from the round and the message, so that deliveries can be
//! verified.

use std::borrow::Cow;

use flitcast_node::parts::Parts;
use flitcast_node::payload::Synthetic;
use flitcast_proto::items::Message;
use flitcast_proto::{MessageId, RoundId};

/// Returns the content of a whole message.
pub(super) fn content(round: RoundId, message: &Message) -> Synthetic {
    let id = message.id.0 + 10_007 * round.0 + 307 * u64::from(message.source.0);
    Synthetic::message(MessageId(id))
}

/// Returns the bytes of a message on a lane: of all of it, or of one of its parts.
pub(super) fn payload(
    round: RoundId,
    message: &Message,
    (lane, parts): (usize, &Parts),
    flit_bytes: u32,
) -> Cow<'static, [u8]> {
    let bytes = |message: &Message| content(round, message).next(message.bytes as usize);
    let Some((whole, turns, place)) = parts.whole(lane, *message) else {
        return bytes(message).into();
    };
    let flits = bytes(&whole).chunks(flit_bytes as usize).zip(turns);
    let own = flits.filter(|(_, turn)| *turn == place);
    own.flat_map(|(flit, _)| flit).copied().collect()
}
