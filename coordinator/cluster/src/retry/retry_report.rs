//! The part of a report that describes retries: the excluded PEs, the PEs with a new parent, the
//! messages that were sent again, and those that are missing, with their paths.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use flitcast_proto::tree::Move;
use flitcast_proto::wire::control::{Payload, SkippedFiles};
use flitcast_proto::{DeliveryName, PeId, Unkept};
use serde_json::{Value, json};

use crate::job::request::Request;
use crate::text::deliveries;
use crate::text::phrases::{counted, names, shell_word};
use crate::text::units::Bytes;

/// The runs after the first one, and the messages that are missing.
#[derive(Debug, Default)]
pub struct RetryReport {
    /// The runs after a failure, in order.
    pub retries: Vec<Retry>,
    /// The undelivered messages, by row; empty if the run does not count them.
    pub undelivered: Vec<Undelivered>,
    /// The messages that were skipped because they are in the output.
    pub skipped: Vec<DeliveryName>,
    /// The files of other messages that were not sent because the output has them.
    pub unchanged: SkippedFiles,
    /// The attributes that destinations do not have.
    pub unkept: UnkeptAttributes,
    /// The messages that the last run continued.
    pub continued: Vec<Continued>,
    pub record: Option<PathBuf>,
    /// The options that `flitcast resume` needs with this record.
    pub resume_options: Vec<&'static str>,
    /// The reason why there was no retry, or why there is no record.
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Whether `flitcast resume` started the run.
    pub resumed: bool,
    /// The excluded PEs, each with a reason.
    pub left_out: Vec<(PeId, String)>,
    /// The PEs with a new parent.
    pub moves: Vec<Move>,
    /// The running PEs that cannot be reached.
    pub stranded: Vec<PeId>,
    /// The missing messages, by row.
    pub missing: Vec<DeliveryName>,
    /// The number of messages, each counted once per destination.
    pub messages: usize,
    /// The missing messages that are sent.
    pub sent: Vec<DeliveryName>,
    /// The missing messages that have a receipt at their destination, and are not sent.
    pub found: Vec<DeliveryName>,
    /// The new algorithm, if the previous one does not run on the repaired tree.
    pub algorithm: Option<&'static str>,
    /// Whether the profile is left out because it describes another tree.
    pub without_profile: bool,
}

/// A message that was continued behind the prefix of an earlier run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continued {
    pub delivery: DeliveryName,
    /// The length of the prefix in bytes.
    pub there: u64,
    /// The length of the message in bytes.
    pub bytes: u64,
}

/// A message that has not been delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undelivered {
    pub delivery: DeliveryName,
    pub bytes: u64,
    pub fate: UndeliveredReason,
    /// The path of the message, if it consists of files.
    pub kept: Option<PathBuf>,
    /// The PE that has the message, if that is not the root.
    pub kept_at: Option<PeId>,
}

/// The reason why a message has not been delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UndeliveredReason {
    /// The source or the destination is dead.
    Dead,
    /// The source or the destination cannot be reached.
    Stranded,
    /// The last run failed before the message was delivered.
    Missing,
}

impl UndeliveredReason {
    fn name(self) -> &'static str {
        match self {
            UndeliveredReason::Dead => "dead",
            UndeliveredReason::Stranded => "stranded",
            UndeliveredReason::Missing => "missing",
        }
    }
}

impl Retry {
    /// Adds the messages that PEs found at their destinations.
    pub fn learn_found(&mut self, found: Vec<DeliveryName>) {
        self.sent.retain(|name| !found.contains(name));
        self.found = found;
    }

    /// Returns a clause for each new parent, such as "P5, P6 move to P0".
    fn moved(&self, verb: [&str; 2]) -> Vec<String> {
        let mut parents: Vec<PeId> = self.moves.iter().map(|moved| moved.to).collect();
        parents.sort_unstable();
        parents.dedup();
        let to = |to: PeId| {
            let moves = self.moves.iter().filter(|moved| moved.to == to);
            let pes: Vec<PeId> = moves.map(|moved| moved.pe).collect();
            let verb = verb[usize::from(pes.len() > 1)];
            format!("{} {verb} to {to}", names(&pes))
        };
        parents.into_iter().map(to).collect()
    }

    fn what(&self) -> String {
        let mut parts = self.moved(["moves", "move"]);
        if !self.stranded.is_empty() {
            let stranded = names(&self.stranded);
            parts.push(format!("no living ancestor can reach {stranded}"));
        }
        let moved = match parts.is_empty() {
            true => String::new(),
            false => format!("{}; ", parts.join(", ")),
        };
        let missing = self.missing.len();
        let was = if missing == 1 { "is" } else { "are" };
        let all = counted(self.messages as u64, "message", "messages");
        format!("{moved}{missing} of {all} {was} missing")
    }
}

/// Formats the run as it is reported when it begins.
impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dead = |(pe, why): &(PeId, String)| format!("{pe} is dead ({why})");
        let dead: Vec<String> = self.left_out.iter().map(dead).collect();
        let verb = if self.resumed { "resuming" } else { "going on" };
        match &self.left_out[..] {
            [] => write!(f, "{verb} with all PEs")?,
            [_] => write!(f, "{}; {verb} without it", dead[0])?,
            _ => write!(f, "{}; {verb} without them", dead.join(", "))?,
        }
        write!(f, ": {}", self.what())?;
        if let Some(algorithm) = self.algorithm {
            write!(
                f,
                "; the tree is no path any more, so {algorithm} takes over"
            )?;
        }
        if self.without_profile {
            f.write_str("; the profile is of the whole tree, so the edges are measured")?;
        }
        Ok(())
    }
}

/// Formats the message, for example "P2's message stays in shards/p2".
impl fmt::Display for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&deliveries::message(self.delivery))?;
        match (&self.kept, self.kept_at) {
            (None, _) => f.write_str(" was not delivered")?,
            (Some(kept), None) => write!(f, " stays in {}", kept.display())?,
            (Some(kept), Some(pe)) => write!(f, " is still at {pe} in {}", kept.display())?,
        }
        write!(f, " ({})", Bytes(self.bytes))
    }
}

impl RetryReport {
    pub fn add_note(&mut self, why: String) {
        self.note = Some(match self.note.take() {
            Some(note) => format!("{note}; {why}"),
            None => why,
        });
    }

    /// Returns a line for each undelivered message, with its reason; for messages between pairs, a
    /// line for each PE that lacks some.
    fn left(&self) -> Vec<(UndeliveredReason, String)> {
        let mut lines = Vec::new();
        let mut by_pe: BTreeMap<(UndeliveredReason, PeId), Vec<&Undelivered>> = BTreeMap::new();
        for left in &self.undelivered {
            match left.delivery.source {
                None => lines.push((left.fate, left.to_string())),
                Some(_) => {
                    let key = (left.fate, left.delivery.row);
                    by_pe.entry(key).or_default().push(left);
                }
            }
        }
        lines.extend(by_pe.into_iter().map(|((fate, pe), left)| {
            let line = match left[..] {
                [one] => one.to_string(),
                _ => {
                    let count = counted(left.len() as u64, "message", "messages");
                    let bytes = Bytes(left.iter().map(|left| left.bytes).sum());
                    format!("{count} for {pe} were not delivered ({bytes})")
                }
            };
            (fate, line)
        }));
        lines
    }

    /// Returns the lines below the table of a successful run.
    pub fn lines(&self) -> String {
        let mut out = String::new();
        let mut add = |label: &str, text: String| {
            out.push_str(&format!("  {label:<12} {text}\n"));
        };
        for retry in &self.retries {
            let without = retry.left_out.iter();
            let without = without.map(|(pe, why)| format!("without {pe} ({why})"));
            let without: Vec<String> = without.collect();
            let without = match without.is_empty() {
                true => "with all PEs".to_owned(),
                false => without.join(", "),
            };
            let label = if retry.resumed { "resumed" } else { "retried" };
            let mut what = retry.moved(["moved", "moved"]);
            let (sent, missing) = (retry.sent.len(), retry.missing.len());
            let which = match sent {
                0 => String::new(),
                _ => format!(": {}", deliveries::names(&retry.sent)),
            };
            what.push(format!("sent {sent} of {missing} that were missing{which}"));
            if !retry.found.is_empty() {
                let found = deliveries::names(&retry.found);
                what.push(format!("{found} had it already"));
            }
            add(label, format!("{without}: {}", what.join(", ")));
        }
        if !self.continued.is_empty() {
            let there = Bytes(self.continued.iter().map(|it| it.there).sum());
            let bytes = Bytes(self.continued.iter().map(|it| it.bytes).sum());
            let names: Vec<DeliveryName> = self.continued.iter().map(|it| it.delivery).collect();
            let (names, again) = (deliveries::names(&names), "and were not sent again");
            add(
                "continued",
                format!("{names}: {there} of {bytes} had arrived before, {again}"),
            );
        }
        if !self.skipped.is_empty() {
            let count = counted(self.skipped.len() as u64, "message", "messages");
            let names = deliveries::names(&self.skipped);
            add("skipped", format!("{count} in the output already: {names}"));
        }
        if self.unchanged.files > 0 {
            let count = counted(self.unchanged.files, "file", "files");
            let bytes = Bytes(self.unchanged.file_bytes);
            let text = format!("{count} ({bytes}) of the messages sent are in the output already");
            add("unchanged", text);
        }
        if let Some(text) = self.unkept.text() {
            add("not kept", text);
        }
        for (_, left) in self.left() {
            add("left out", left);
        }
        out
    }

    /// Returns the last lines on stderr of a run that was not successful.
    pub fn final_message(&self) -> Vec<String> {
        let mut out = Vec::new();
        out.extend(self.note.as_ref().map(|note| format!("  retry: {note}")));
        if !self.retries.is_empty() {
            let left = self.left().into_iter();
            out.extend(left.map(|(fate, left)| format!("  {}: {left}", fate.name())));
        }
        let record = self.record.as_deref();
        let options = &self.resume_options;
        let purpose = match options[..] {
            [] | ["--revive"] => "to go on",
            _ => "to send the present version to all",
        };
        out.extend(record.map(|path| format!("{purpose}: {}", resume_command(path, options))));
        out
    }

    /// Adds the same information to the JSON object of a run.
    pub fn add_to(&self, result: &mut Value) {
        let numbers = |pes: &[PeId]| json!(pes.iter().map(|pe| pe.0).collect::<Vec<_>>());
        let retry = |retry: &Retry| {
            let moved = |m: &Move| json!({ "pe": m.pe.0, "from": m.from.0, "to": m.to.0 });
            let left_out = |(pe, why): &(PeId, String)| json!({ "pe": pe.0, "why": why });
            json!({
                "resumed": retry.resumed,
                "left_out": retry.left_out.iter().map(left_out).collect::<Vec<_>>(),
                "moved": retry.moves.iter().map(moved).collect::<Vec<_>>(),
                "stranded": numbers(&retry.stranded),
                "missing": deliveries::values(&retry.missing),
                "sent": deliveries::values(&retry.sent),
                "found": deliveries::values(&retry.found),
                "messages": retry.messages,
            })
        };
        let with_source = |mut entry: Value, delivery: DeliveryName| {
            if let Some(source) = delivery.source {
                entry["source"] = source.0.into();
            }
            entry
        };
        let undelivered = |left: &Undelivered| {
            let entry = json!({
                "pe": left.delivery.row.0,
                "bytes": left.bytes,
                "why": left.fate.name(),
                "kept_in": left.kept.as_ref().map(|kept| kept.display().to_string()),
            });
            with_source(entry, left.delivery)
        };
        result["retries"] = self.retries.iter().map(retry).collect();
        let continued = |it: &Continued| {
            let entry = json!({
                "pe": it.delivery.row.0,
                "arrived_before": it.there,
                "bytes": it.bytes,
            });
            with_source(entry, it.delivery)
        };
        result["continued"] = self.continued.iter().map(continued).collect();
        result["skipped"] = deliveries::values(&self.skipped);
        result["unchanged"] = json!({
            "files": self.unchanged.files,
            "bytes": self.unchanged.file_bytes,
        });
        result["not_kept"] = self.unkept.value();
        result["undelivered"] = self.undelivered.iter().map(undelivered).collect();
        let record = self.record.as_ref();
        result["record"] = json!(record.map(|path| path.display().to_string()));
    }
}

/// Returns the `flitcast resume` command as a user types it.
fn resume_command(record: &Path, options: &[&str]) -> String {
    let record = shell_word(record.display().to_string());
    let options: String = options.iter().map(|option| format!(" {option}")).collect();
    format!("flitcast resume {record}{options}")
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn rows<const N: usize>(rows: [u32; N]) -> Vec<DeliveryName> {
        let name = |row| DeliveryName {
            row: PeId(row),
            source: None,
        };
        rows.map(name).to_vec()
    }

    fn retry() -> Retry {
        let moved = |pe| Move {
            pe: PeId(pe),
            from: PeId(2),
            to: PeId(0),
        };
        Retry {
            resumed: false,
            left_out: vec![(PeId(2), "killed by signal 9 (SIGKILL)".to_owned())],
            moves: vec![moved(5), moved(6)],
            stranded: Vec::new(),
            missing: rows([2, 5, 6]),
            messages: 6,
            sent: rows([5, 6]),
            found: Vec::new(),
            algorithm: None,
            without_profile: false,
        }
    }

    #[test]
    fn absent_and_moved_pes_and_missing_messages_are_listed() {
        let mut retry = retry();
        assert_eq!(
            retry.to_string(),
            "P2 is dead (killed by signal 9 (SIGKILL)); going on without it: \
             P5, P6 move to P0; 3 of 6 messages are missing"
        );
        retry.left_out.push((PeId(3), "has been silent".to_owned()));
        retry.moves.truncate(1);
        retry.missing.truncate(1);
        retry.stranded = vec![PeId(6)];
        retry.algorithm = Some("certification");
        retry.without_profile = true;
        assert_eq!(
            retry.to_string(),
            "P2 is dead (killed by signal 9 (SIGKILL)), P3 is dead (has been silent); \
             going on without them: P5 moves to P0, no living ancestor can reach P6; \
             1 of 6 messages is missing; the tree is no path any more, so certification \
             takes over; the profile is of the whole tree, so the edges are measured"
        );
        let mut revived = self::retry();
        revived.resumed = true;
        (revived.left_out, revived.moves) = Default::default();
        let expected = "resuming with all PEs: 3 of 6 messages are missing";
        assert_eq!(revived.to_string(), expected);
    }

    #[test]
    fn the_command_can_be_typed() {
        let command = resume_command(Path::new("my out/.flitcast-round-07.toml"), &["--revive"]);
        let expected = "flitcast resume 'my out/.flitcast-round-07.toml' --revive";
        assert_eq!(command, expected);
    }
}
