//! The value of `--packets`: how messages are cut into packets.

use std::fmt;
use std::str::FromStr;

use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};

use crate::text::units::{Bytes, parse_bytes};

/// How messages are cut. A packet is one flit: a relay receives all of it before it sends any of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packets {
    /// The number with the shortest predicted time.
    Auto,
    /// Packets that may have flits of several messages, planned for the costs of the links.
    Mixed,
    /// Each message into this number of equal packets, at least 1.
    Count(u64),
    /// Each message into as few equal packets as possible of at most this number of bytes.
    Size(u32),
}

impl FromStr for Packets {
    type Err = String;

    fn from_str(text: &str) -> Result<Packets, String> {
        let text = text.trim();
        match text {
            "auto" => return Ok(Packets::Auto),
            "mixed" => return Ok(Packets::Mixed),
            _ => {}
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
            // A text of digits alone fails to parse only if the number is too large.
            return match text.parse().unwrap_or(u64::MAX) {
                0 => Err("0: a message goes in one packet at least".to_owned()),
                count => Ok(Packets::Count(count)),
            };
        }
        let bytes = parse_bytes(text).map_err(|fault| {
            format!(
                "`{text}` is neither auto, nor mixed, nor a COUNT of packets, nor the SIZE of one: \
                 {fault}"
            )
        })?;
        match u32::try_from(bytes) {
            Ok(fits) if (MIN_FLIT_BYTES..=MAX_FLIT_BYTES).contains(&fits) => {
                Ok(Packets::Size(fits))
            }
            _ => Err(format!(
                "{}: a packet is one flit, of {} to {}, which a relay holds whole",
                Bytes(bytes),
                Bytes(MIN_FLIT_BYTES.into()),
                Bytes(MAX_FLIT_BYTES.into())
            )),
        }
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Packets::Auto => f.write_str("auto"),
            Packets::Mixed => f.write_str("mixed"),
            Packets::Count(count) => write!(f, "{count}"),
            Packets::Size(bytes) => write!(f, "{bytes}B"),
        }
    }
}

impl Packets {
    /// Checks that the longest message, of `longest` bytes, needs no more packets and can have as many.
    pub fn check(self, longest: u64) -> Result<(), String> {
        let Packets::Count(count) = self else {
            return Ok(());
        };
        let [least, most] = [MAX_FLIT_BYTES, MIN_FLIT_BYTES].map(|b| longest.div_ceil(b.into()));
        let bytes = Bytes(longest);
        match count {
            _ if longest == 0 || (least..=most).contains(&count) => Ok(()),
            _ if count < least => Err(format!(
                "{count}: the message of {bytes} would go in packets of {}, and a relay holds one of at \
                 most {}: at least {least} packets, or a SIZE",
                Bytes(longest.div_ceil(count)),
                Bytes(MAX_FLIT_BYTES.into())
            )),
            _ => Err(format!(
                "{count}: a packet has at least {}, so the longest message, of {bytes}, can go in at \
                 most {most}",
                Bytes(MIN_FLIT_BYTES.into())
            )),
        }
    }

    /// Returns the largest packet of a message of `bytes` bytes, or `None` if it is to be chosen by
    /// prediction or planned. All packets but the last have this size.
    pub fn of(self, bytes: u64) -> Option<u32> {
        let packets = match self {
            Packets::Auto | Packets::Mixed => return None,
            Packets::Count(count) => count,
            Packets::Size(size) => bytes.div_ceil(size.into()).max(1),
        };
        let [least, most] = [MIN_FLIT_BYTES, MAX_FLIT_BYTES].map(u64::from);
        Some(bytes.div_ceil(packets).clamp(least, most) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_read_and_written() {
        for (text, packets) in [
            ("auto", Packets::Auto),
            ("mixed", Packets::Mixed),
            ("7", Packets::Count(7)),
            ("64KiB", Packets::Size(64 << 10)),
            ("65536B", Packets::Size(64 << 10)),
        ] {
            assert_eq!(text.parse(), Ok(packets));
            assert_eq!(packets.to_string().parse(), Ok(packets));
        }
    }

    #[test]
    fn a_message_can_have_as_few_bytes_as_its_packets_need() {
        assert_eq!(Packets::Count(2).check(128), Ok(()));
        assert_eq!(Packets::Count(9).check(0), Ok(()));
    }

    #[test]
    fn packets_are_equal_and_as_few_as_there_can_be() {
        assert_eq!(Packets::Count(4).of(1_000_001), Some(250_001));
        assert_eq!(Packets::Size(64 << 10).of(100_000), Some(50_000));
        assert_eq!(Packets::Count(4).of(100), Some(64));
        assert_eq!(Packets::Size(100).of(0), Some(64));
    }
}
