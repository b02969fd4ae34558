//! Synthetic messages: bytes that a receiver can check without having been sent
//! anything but them, and that cost a source nothing to make.

use std::sync::OnceLock;

use flitcast_proto::MessageId;
use flitcast_proto::seeded::SplitMix64;
use flitcast_proto::wire::MAX_FLIT_BYTES;

/// The pattern repeats after so many bytes. A prime, so that a piece that went
/// missing or astray by whole flits or blocks never lands on the same bytes; and
/// small enough to stay in a core's cache.
const PERIOD: usize = 65_537;

/// Where in the pattern the messages of neighbouring PEs start apart.
const STRIDE: u64 = 7_919;

/// The pattern, continued past its period by one flit, so that any flit of any
/// message is one slice of it.
fn pattern() -> &'static [u8] {
    static PATTERN: OnceLock<Vec<u8>> = OnceLock::new();
    PATTERN.get_or_init(|| {
        let mut random = SplitMix64::new(0x666c_6974_6361_7374);
        let longest = PERIOD + MAX_FLIT_BYTES as usize;
        let mut bytes = Vec::with_capacity(longest);
        while bytes.len() < PERIOD {
            bytes.extend_from_slice(&random.next_u64().to_le_bytes());
        }
        bytes.truncate(PERIOD);
        while bytes.len() < longest {
            bytes.extend_from_within(..PERIOD.min(longest - bytes.len()));
        }
        bytes
    })
}

/// A message, from its start to its end.
#[derive(Debug)]
pub struct Synthetic {
    at: usize,
    last: &'static [u8],
}

impl Synthetic {
    /// Makes the pattern, so that no round has to.
    pub fn warm_up() {
        pattern();
    }

    /// The message with this id.
    pub fn message(id: MessageId) -> Synthetic {
        Synthetic {
            at: (id.0 % PERIOD as u64 * STRIDE % PERIOD as u64) as usize,
            last: &[],
        }
    }

    /// Its next `len` bytes, at most a flit's.
    pub fn next(&mut self, len: usize) -> &'static [u8] {
        self.last = &pattern()[self.at..self.at + len];
        self.at = (self.at + len) % PERIOD;
        self.last
    }

    /// What [`Synthetic::next`] has given last.
    pub fn last(&self) -> &'static [u8] {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_does_not_depend_on_how_it_is_cut() {
        let whole = |cut: usize| {
            let mut message = Synthetic::message(MessageId(3));
            (0..600_000 / cut)
                .flat_map(|_| message.next(cut).to_vec())
                .collect::<Vec<u8>>()
        };
        assert!(whole(1) == whole(60_000) && whole(1) == whole(200_000));
    }

    #[test]
    fn messages_differ_and_flits_of_a_message_differ() {
        let mut one = Synthetic::message(MessageId(1));
        let mut two = Synthetic::message(MessageId(2));
        let first = one.next(65_536);
        assert!(first != two.next(65_536));
        assert!(first != one.next(65_536));
    }
}
