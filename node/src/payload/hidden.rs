//! The hidden names that Flitcast gives to its own files among those of a user.
//!
//! No file with such a name is part of a message, at any depth: an output, where these names are
//! used, may be anywhere below an input. The forms are exact, so a user's own file is left out only
//! if its name is one of them. [`super::leftovers`] has the rules for removing these files.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use flitcast_proto::PeId;

/// The beginning of each hidden name.
pub(super) const PREFIX: &str = ".flitcast-";
/// The beginning of the name of a working folder of `flitcast map`. A PE touches no other.
pub const WORK_PREFIX: &str = ".flitcast-map-";
/// The beginning of the name of a working folder that stays when its run has ended.
pub const KEPT_WORK_PREFIX: &str = ".flitcast-map-kept-";
/// The beginning of the name of a file that is renamed when it is complete.
pub const UNFINISHED_PREFIX: &str = ".flitcast-unfinished-";

pub(super) const PARTIAL: &str = ".partial";
pub(super) const HEADS: &str = ".heads";
pub(super) const RECEIPT: &str = ".receipt";
const REPLACED: &str = ".replaced";
const RECORD: &str = ".toml";
const ID_DIGITS: usize = 16;

/// A hidden name, by its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HiddenName<'a> {
    /// `.flitcast-ID-ENTRY.partial`: a message that is not complete and becomes this entry. The number
    /// is that of the run that stages it, or of its job if a later run can continue it.
    Partial(u64, &'a OsStr),
    /// `.flitcast-JOB-ENTRY.heads`: the heads of the entries in a partial message, with which a
    /// later run of the job continues it.
    Heads(u64, &'a OsStr),
    /// `.flitcast-RUN-ENTRY.replaced`: an entry that was moved aside; after a crash it may be the
    /// only copy.
    Replaced,
    /// `.flitcast-JOB-ENTRY.receipt`: the proof that a job delivered an entry.
    Receipt(u64, &'a OsStr),
    /// `.flitcast-round-JOB.toml`: the record of a round that failed.
    Record,
    /// `.flitcast-map-ID` or `.flitcast-map-kept-ID`: a working folder of `flitcast map`.
    Work,
    /// `.flitcast-measuring-RUN-pN`: a folder in which the costs of files are measured.
    Measuring,
    /// `.flitcast-unfinished-ID` or `.flitcast-held-ID`: a file that no process opens by its name.
    Scratch,
}

impl HiddenName<'_> {
    /// Parses a file name; `None` if it has none of the forms.
    pub fn parse(name: &OsStr) -> Option<HiddenName<'_>> {
        let rest = name.as_bytes().strip_prefix(PREFIX.as_bytes())?;
        let dash = rest.iter().position(|&byte| byte == b'-')?;
        let (kind, id) = (&rest[..dash], &rest[dash + 1..]);
        match kind {
            b"round" => {
                let id = id.strip_suffix(RECORD.as_bytes())?;
                id_of(id).map(|_| HiddenName::Record)
            }
            b"map" => {
                let id = id.strip_prefix(b"kept-").unwrap_or(id);
                id_of(id).map(|_| HiddenName::Work)
            }
            b"measuring" => {
                let (run, pe) = id.split_at_checked(ID_DIGITS)?;
                let pe = pe.strip_prefix(b"-p")?;
                let is_pe = !pe.is_empty() && pe.iter().all(u8::is_ascii_digit);
                id_of(run).filter(|_| is_pe).map(|_| HiddenName::Measuring)
            }
            b"unfinished" | b"held" => {
                let is_id = !id.is_empty() && id.iter().all(u8::is_ascii_alphanumeric);
                is_id.then_some(HiddenName::Scratch)
            }
            _ => beside_entry(id_of(kind)?, id),
        }
    }

    /// Returns whether the file belongs to a message that becomes the entry `pN`.
    pub fn is_beside(self, pe: PeId) -> bool {
        match self {
            HiddenName::Partial(_, entry)
            | HiddenName::Heads(_, entry)
            | HiddenName::Receipt(_, entry) => pe_of(entry) == Some(pe.index()),
            _ => false,
        }
    }
}

fn beside_entry(id: u64, rest: &[u8]) -> Option<HiddenName<'_>> {
    let entry = |suffix: &str| {
        let entry = rest.strip_suffix(suffix.as_bytes())?;
        (!entry.is_empty()).then(|| OsStr::from_bytes(entry))
    };
    let partial = entry(PARTIAL).map(|entry| HiddenName::Partial(id, entry));
    let heads = || entry(HEADS).map(|entry| HiddenName::Heads(id, entry));
    let receipt = || entry(RECEIPT).map(|entry| HiddenName::Receipt(id, entry));
    let replaced = || entry(REPLACED).map(|_| HiddenName::Replaced);
    partial.or_else(heads).or_else(receipt).or_else(replaced)
}

/// Parses an id in a hidden name: 16 hexadecimal digits in lower case.
fn id_of(digits: &[u8]) -> Option<u64> {
    let digits = str::from_utf8(digits).ok()?;
    let id = u64::from_str_radix(digits, 16).ok()?;
    (digits == format!("{id:016x}")).then_some(id)
}

/// Returns the name of a file of this kind that belongs to an entry.
pub(super) fn name_beside(entry: &OsStr, id: u64, kind: &str) -> OsString {
    let mut name = OsString::from(format!("{PREFIX}{id:016x}-"));
    name.push(entry);
    name.push(kind);
    name
}

pub fn record_name(job: u64) -> String {
    format!("{PREFIX}round-{job:016x}{RECORD}")
}

/// Returns the PE with exactly this name: `p12`, not `p012`, `P12` or `p+12`.
pub fn pe_of(name: &OsStr) -> Option<usize> {
    let name = name.to_str()?;
    let pe = name.strip_prefix('p')?.parse().ok()?;
    (name == format!("p{pe}")).then_some(pe)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str) -> Option<HiddenName<'_>> {
        HiddenName::parse(OsStr::new(name))
    }

    #[test]
    fn the_names_that_are_made_are_read() {
        let (copy, p3) = (OsStr::new("a copy.partial"), OsStr::new("p3"));
        let of_p3 = HiddenName::Receipt(u64::MAX, p3);
        let of_copy = HiddenName::Partial(0xab, copy);
        assert!(of_p3.is_beside(PeId(3)) && !of_p3.is_beside(PeId(33)));
        assert!(!of_copy.is_beside(PeId(3)));
        let partial = ".flitcast-00000000000000ab-a copy.partial.partial";
        let heads = ".flitcast-00000000000000ab-p3.heads";
        let receipt = ".flitcast-ffffffffffffffff-p3.receipt";
        assert_eq!(name_beside(copy, 0xab, PARTIAL), partial);
        assert_eq!(name_beside(p3, 0xab, HEADS), heads);
        assert_eq!(name_beside(p3, u64::MAX, RECEIPT), receipt);
        for (name, is) in [
            (partial, of_copy),
            (heads, HiddenName::Heads(0xab, p3)),
            (receipt, of_p3),
            (&record_name(7), HiddenName::Record),
            (
                ".flitcast-00000000000000ab-p3.replaced",
                HiddenName::Replaced,
            ),
            (".flitcast-map-00000000000000ab", HiddenName::Work),
            (".flitcast-map-kept-00000000000000ab", HiddenName::Work),
            (
                ".flitcast-measuring-00000000000000ab-p12",
                HiddenName::Measuring,
            ),
            (".flitcast-unfinished-aZ09bc", HiddenName::Scratch),
            (".flitcast-held-1234", HiddenName::Scratch),
        ] {
            assert_eq!(parsed(name), Some(is), "{name}");
        }
    }

    #[test]
    fn a_name_of_another_form_is_a_users_own() {
        for name in [
            "p3",
            ".flitcast",
            ".flitcast-",
            ".flitcast-notes",
            ".flitcast-p3.partial",
            ".flitcast-00000000000000ab-p3",
            ".flitcast-00000000000000ab-.partial",
            ".flitcast-00000000000000AB-p3.partial",
            ".flitcast-+0000000000000ab-p3.partial",
            ".flitcast-0000000000000ab-p3.receipt",
            ".flitcast-round-00000000000000ab.tom",
            ".flitcast-round-ab.toml",
            ".flitcast-map-",
            ".flitcast-map-7",
            ".flitcast-map-kept-",
            ".flitcast-map-00000000000000ab.tar",
            ".flitcast-measuring-00000000000000ab-p",
            ".flitcast-measuring-00000000000000ab-px",
            ".flitcast-held-",
            ".flitcast-unfinished-a.b",
        ] {
            assert_eq!(parsed(name), None, "{name}");
        }
    }
}
