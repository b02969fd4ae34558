//! The part of a report that lists attributes of files which destinations do not have.

use flitcast_proto::Unkept;
use flitcast_proto::wire::control::Payload;
use serde_json::{Value, json};

use crate::job::request::Request;
use crate::text::phrases::counted;

/// Attributes of files that destinations do not have.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnkeptAttributes {
    entries: Unkept,
    /// Whether they were sent and could not be set.
    is_archive: bool,
}

impl UnkeptAttributes {
    /// Returns the attributes that the PEs of a request have reported.
    pub fn of(request: &Request, entries: Unkept) -> UnkeptAttributes {
        let payload = &request.messages.payload;
        UnkeptAttributes {
            entries,
            is_archive: matches!(payload, Payload::Files(files) if files.archive),
        }
    }

    /// Returns the line of a report; `None` if all attributes are kept.
    pub fn text(&self) -> Option<String> {
        let of = |count: u64, what: &str, one: &str, many: &str| {
            (count > 0).then(|| format!("{what} of {}", counted(count, one, many)))
        };
        let entries = self.entries;
        let all = [
            of(entries.owners, "owners", "entry", "entries"),
            of(
                entries.special_modes,
                "special mode bits",
                "entry",
                "entries",
            ),
            of(entries.hard_links, "hard links", "file", "files"),
            of(entries.extended, "extended attributes", "entry", "entries"),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        let why = match self.is_archive {
            true => "receivers did not set them",
            false => "--archive keeps them",
        };
        (!all.is_empty()).then(|| format!("{}; {why}", all.join(", ")))
    }

    /// Returns the value in JSON: numbers of entries.
    pub fn value(&self) -> Value {
        json!({
            "owners": self.entries.owners,
            "special_modes": self.entries.special_modes,
            "hard_links": self.entries.hard_links,
            "extended_attributes": self.entries.extended,
        })
    }
}
