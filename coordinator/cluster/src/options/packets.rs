//! The value of `--packets`: how messages are cut into packets.

use std::fmt;
use std::str::FromStr;

use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};
use thiserror::Error;

use crate::text::units::{Bytes, UnitError, parse_bytes};

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

/// An error in `--packets`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PacketsError {
    /// Not one of the forms.
    #[error(
        "`{text}` is neither auto, nor mixed, nor a COUNT of packets, nor the SIZE of one: {source}"
    )]
    Form {
        /// As typed.
        text: String,
        /// The reason why the text is not a size either.
        source: UnitError,
    },
    /// A count of 0.
    #[error("0: a message goes in one packet at least")]
    None,
    /// A size that a flit cannot have.
    #[error("{}: a packet is one flit, of {} to {}, which a relay holds whole",
        Bytes(*.0), Bytes(MIN_FLIT_BYTES.into()), Bytes(MAX_FLIT_BYTES.into()))]
    Size(u64),
    /// Too few packets for a message.
    #[error(
        "{count}: the message of {} would go in packets of {}, and a relay holds one of at most {}: \
         at least {least} packets, or a SIZE",
        Bytes(*bytes), Bytes(bytes.div_ceil(*count)), Bytes(MAX_FLIT_BYTES.into())
    )]
    TooFew {
        /// The requested number of packets.
        count: u64,
        /// The longest message.
        bytes: u64,
        /// The smallest possible number of packets.
        least: u64,
    },
    /// Too many packets for all messages.
    #[error(
        "{count}: a packet has at least {}, so the longest message, of {}, can go in at most {most}",
        Bytes(MIN_FLIT_BYTES.into()), Bytes(*bytes)
    )]
    TooMany {
        /// The requested number of packets.
        count: u64,
        /// The longest message.
        bytes: u64,
        /// The largest possible number of packets.
        most: u64,
    },
}

impl FromStr for Packets {
    type Err = PacketsError;

    fn from_str(text: &str) -> Result<Packets, PacketsError> {
        let text = text.trim();
        if text == "auto" {
            return Ok(Packets::Auto);
        }
        if text == "mixed" {
            return Ok(Packets::Mixed);
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
            // A text of digits alone fails to parse only if the number is too large.
            return match text.parse().unwrap_or(u64::MAX) {
                0 => Err(PacketsError::None),
                count => Ok(Packets::Count(count)),
            };
        }
        let bytes = parse_bytes(text).map_err(|source| PacketsError::Form {
            text: text.to_owned(),
            source,
        })?;
        match u32::try_from(bytes) {
            Ok(fits) if (MIN_FLIT_BYTES..=MAX_FLIT_BYTES).contains(&fits) => {
                Ok(Packets::Size(fits))
            }
            _ => Err(PacketsError::Size(bytes)),
        }
    }
}

/// Writes the text that the parser reads.
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
    /// Checks that messages can be cut this way if the longest has `longest` bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the longest message needs more packets or cannot have as many.
    pub fn check(self, longest: u64) -> Result<(), PacketsError> {
        let Packets::Count(count) = self else {
            return Ok(());
        };
        let [least, most] = [MAX_FLIT_BYTES, MIN_FLIT_BYTES].map(|b| longest.div_ceil(b.into()));
        let bytes = longest;
        match count {
            _ if longest == 0 || (least..=most).contains(&count) => Ok(()),
            _ if count < least => Err(PacketsError::TooFew {
                count,
                bytes,
                least,
            }),
            _ => Err(PacketsError::TooMany { count, bytes, most }),
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
    fn what_no_packet_can_be_is_refused() {
        let refused = |text: &str| text.parse::<Packets>().expect_err(text).to_string();
        assert!(refused("0").contains("one packet at least"));
        assert!(refused("2MiB").contains("64 B to 1 MiB"));
        assert!(refused("63B").contains("64 B to 1 MiB"));
        assert!(refused("some").contains("neither auto"));
        let few = Packets::Count(3).check(4 << 20).expect_err("1.3 MiB");
        assert!(few.to_string().contains("at least 4 packets"), "{few}");
        let many = Packets::Count(3).check(128).expect_err("43 B");
        assert!(many.to_string().contains("at most 2"), "{many}");
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
