//! `--joblog FILE`: a line for each command that has ended, with the columns of GNU parallel and the name
//! of the shard; and the shards that `--resume` finds done in it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::time::SystemTime;

use flitcast_proto::wire::control::End;

use super::task::{CommandFate, ShardTask};
use flitcast_cluster::text::phrases::shell_word;

const COLUMNS: &str =
    "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\tShard\n";

#[derive(Debug)]
pub struct JobLog(File);

impl JobLog {
    /// Creates a log, or continues the one in a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn open(path: &Path, continues: bool) -> io::Result<JobLog> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true);
        let mut file = options.truncate(!continues).open(path)?;
        let length = file.seek(SeekFrom::End(0))?;
        if length == 0 {
            file.write_all(COLUMNS.as_bytes())?;
            return Ok(JobLog(file));
        }
        // The last line of a run that was killed may be incomplete.
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
        Ok(JobLog(file))
    }

    /// Adds the line of a command that has begun at this time and has ended.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn add(
        &mut self,
        task: &ShardTask,
        began: SystemTime,
        words: &[OsString],
    ) -> io::Result<()> {
        let since = began.duration_since(SystemTime::UNIX_EPOCH);
        let began = since.unwrap_or_default().as_secs_f64();
        let took = task.ran().map_or(0, |ran| ran.took_ns) as f64 / 1e9;
        let (exit, signal) = match &task.fate {
            CommandFate::Ran(ran) => match ran.end {
                End::Exited(code) => (code, 0),
                End::Signalled(signal) => (0, signal),
                End::Failed(_) => (-1, 0),
            },
            CommandFate::Waiting | CommandFate::Lost(_) | CommandFate::Killed(_) => (-1, 0),
        };
        let words = words.iter().map(|word| shell_word(escaped(word)));
        let words: Vec<String> = words.collect();
        let line = format!(
            "{}\t{}\t{began:.3}\t{took:.3}\t{}\t{}\t{exit}\t{signal}\t{}\t{}\n",
            task.seq,
            task.pe,
            task.shard_bytes,
            task.wrote_bytes(),
            words.join(" "),
            escaped(&task.name),
        );
        // In one call, so that the line is complete or absent.
        self.0.write_all(line.as_bytes())
    }
}

/// Returns the shards whose last command in a log has succeeded; none if there is no such file.
///
/// # Errors
///
/// Returns an error if the file cannot be read, or has no log.
pub fn done_in(path: &Path) -> io::Result<Vec<OsString>> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    if !text.is_empty() && !text.starts_with(COLUMNS) {
        let fault = "it is not a log of `flitcast map`";
        return Err(io::Error::new(io::ErrorKind::InvalidData, fault));
    }
    let mut last = BTreeMap::new();
    for line in text.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        if let [_, _, _, _, _, _, exit, signal, _, shard] = columns[..] {
            last.insert(unescaped(shard), (exit, signal) == ("0", "0"));
        }
    }
    let done = last.into_iter().filter(|(_, is_done)| *is_done);
    Ok(done.map(|(shard, _)| shard).collect())
}

/// Returns text without tabs, ends of lines and other bytes that a line cannot show.
fn escaped(text: &OsStr) -> String {
    let mut out = String::new();
    for chunk in text.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", c as u32)),
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

/// Returns the text that [`escaped`] has changed.
fn unescaped(text: &str) -> OsString {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let hex = after.strip_prefix(b"x").and_then(|hex| hex.get(..2));
        let byte = hex.and_then(|hex| u8::from_str_radix(str::from_utf8(hex).ok()?, 16).ok());
        let (byte, length) = match (first, after, byte) {
            (b'\\', [b'\\', ..], _) => (b'\\', 2),
            (b'\\', _, Some(byte)) => (byte, 4),
            _ => (*first, 1),
        };
        out.push(byte);
        rest = &rest[length..];
    }
    OsString::from_vec(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_bytes_are_in_one_column() {
        for (name, text) in [
            (&b"plain name"[..], "plain name"),
            (b"a\tb\nc", "a\\x09b\\x0ac"),
            (b"\\x41", "\\\\x41"),
            (b"\\\\n", "\\\\\\\\n"),
            ("\u{e9}".as_bytes(), "\u{e9}"),
            (b"\xff\xfe.", "\\xff\\xfe."),
        ] {
            let name = OsStr::from_bytes(name);
            assert_eq!(escaped(name), text);
            assert_eq!(unescaped(text), name);
        }
    }

    #[test]
    fn the_last_line_of_a_shard_counts_and_an_incomplete_one_does_not() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let path = dir.path().join("log");
        assert!(done_in(&path).expect("there is none").is_empty());
        let line = |exit: &str, signal: &str, shard: &str| {
            format!("1\tP1\t0.1\t0.1\t1\t1\t{exit}\t{signal}\tcat\t{shard}\n")
        };
        let lines = [
            line("1", "0", "again"),
            line("0", "0", "again"),
            line("0", "0", "later bad"),
            line("-1", "0", "later bad"),
            line("0", "9", "killed"),
            line("0", "0", "a\\x09b"),
            "7\tP1\t0.1\t0.1\t1\t1\t0\t0".to_owned(),
        ];
        std::fs::write(&path, COLUMNS.to_owned() + &lines.concat()).expect("it can be written");
        let done = done_in(&path).expect("it is a log");
        assert_eq!(done, ["a\tb", "again"]);
        // What follows is a line.
        JobLog::open(&path, true).expect("it can be opened");
        let text = std::fs::read_to_string(&path).expect("it is there");
        assert!(text.ends_with("\t0\n"), "{text}");
        std::fs::write(&path, "something else").expect("it can be written");
        assert!(done_in(&path).is_err());
    }
}
