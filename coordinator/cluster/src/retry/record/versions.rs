//! A version of a message as a record holds it: the message's number, its bytes, the state of its
//! source, and the digest, if it was delivered.

use flitcast_proto::MessageId;
use flitcast_proto::wire::control::Version;

/// Returns the text that [`parse`] reads.
pub(super) fn written(version: &Version) -> String {
    let Version {
        message,
        bytes,
        state,
        digest,
    } = version;
    let digest = digest.map(|digest| format!(" {:032x}", u128::from_be_bytes(digest)));
    format!(
        "{} {bytes} {state:016x}{}",
        message.0,
        digest.unwrap_or_default()
    )
}

/// Reads what [`written`] has made, and nothing else.
pub(super) fn parse(text: &str) -> Option<Version> {
    let words: Vec<&str> = text.split(' ').collect();
    let (message, bytes, state, digest) = match words[..] {
        [message, bytes, state] => (message, bytes, state, None),
        [message, bytes, state, digest] => {
            let digest = u128::from_str_radix(digest, 16).ok()?;
            (message, bytes, state, Some(digest.to_be_bytes()))
        }
        _ => return None,
    };
    let version = Version {
        message: MessageId(message.parse().ok()?),
        bytes: bytes.parse().ok()?,
        state: u64::from_str_radix(state, 16).ok()?,
        digest,
    };
    (written(&version) == text).then_some(version)
}
