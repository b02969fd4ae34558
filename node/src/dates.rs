//! Points in time as text, like `2026-11-28T03:33:22Z`.

use std::time::SystemTime;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Returns the text of a point in time, to the second (RFC 3339).
pub fn text(time: SystemTime) -> String {
    let time = OffsetDateTime::from(time).truncate_to_second();
    // Only years from 0 to 9999 have such a text.
    time.format(&Rfc3339).unwrap_or_else(|_| time.to_string())
}

pub fn parse(text: &str) -> Option<SystemTime> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    Some(time.into())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_text_is_of_one_second() {
        let time = UNIX_EPOCH + Duration::from_millis(1_795_836_802_900);
        assert_eq!(text(time), "2026-11-28T03:33:22Z");
        assert_eq!(parse(&text(time)), Some(time - Duration::from_millis(900)));
        assert_eq!(parse("2026-11-28"), None);
    }
}
