//! What messages are made of: bytes that its round, source and id determine, so that whoever looks
//! at a delivery knows what it has to be.

use flitcast_proto::RoundId;
use flitcast_proto::items::Message;
use xxhash_rust::xxh3::xxh3_128;

/// The bytes of a message.
pub(super) fn payload(round: RoundId, message: &Message) -> Vec<u8> {
    let seed = [round.0, message.source.0.into(), message.id.0];
    let seed: Vec<u8> = seed.iter().flat_map(|n: &u64| n.to_le_bytes()).collect();
    let mut block = xxh3_128(&seed).to_le_bytes();
    (0..message.bytes)
        .map(|at| {
            let place = at as usize % block.len();
            block[place] = block[place].wrapping_mul(5).wrapping_add(at as u8 | 1);
            block[place]
        })
        .collect()
}
