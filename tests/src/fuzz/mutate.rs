//! Changes of inputs that keep them nearly valid.

use flitcast_proto::seeded::SplitMix64;

/// Bytes at which the behaviour of parsers changes.
const EDGES: [u8; 10] = [0, 1, 0x7f, 0x80, 0xff, 0x08, 0x12, 0x7a, b'0', b'\n'];

/// Returns one of `kept`, which must not be empty, changed in one to eight places.
pub(super) fn changed(kept: &[Vec<u8>], words: &[&str], chance: &mut SplitMix64) -> Vec<u8> {
    let mut input = pick(kept, chance).clone();
    for _ in 0..1 + chance.below(8) {
        change(&mut input, kept, words, chance);
    }
    input
}

fn pick<'a, T>(from: &'a [T], chance: &mut SplitMix64) -> &'a T {
    &from[chance.below(from.len() as u64) as usize]
}

fn change(input: &mut Vec<u8>, kept: &[Vec<u8>], words: &[&str], chance: &mut SplitMix64) {
    let at = chance.below(input.len() as u64 + 1) as usize;
    let to = at + chance.below((input.len() - at) as u64 + 1) as usize;
    match chance.below(9) {
        0 if at < input.len() => input[at] ^= 1 << chance.below(8),
        1 if at < input.len() => input[at] = *pick(&EDGES, chance),
        2 => input.insert(at, chance.below(256) as u8),
        3 if at < input.len() => drop(input.remove(at)),
        4 => drop(input.drain(at..to)),
        5 => {
            let again = input[at..to].to_vec();
            input.splice(at..at, again);
        }
        6 => {
            let other = pick(kept, chance);
            let from = chance.below(other.len() as u64 + 1) as usize;
            input.splice(at..to, other[from..].iter().copied());
        }
        7 if !words.is_empty() => {
            let word = pick(words, chance).bytes();
            input.splice(at..at, word);
        }
        // A varint of any length.
        _ => {
            let number = chance.next_u64() >> chance.below(64);
            let bytes = (0..10).map(|i| (number >> (7 * i)) as u8 | 0x80);
            let length = 1 + chance.below(10) as usize;
            input.splice(at..at, bytes.take(length));
        }
    }
}
