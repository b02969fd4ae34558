//! The history of a running cluster: `rounds.jsonl`, a line for each command that has ended.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::running::find;
use super::state::since;

const FILE: &str = "rounds.jsonl";
/// Maximum bytes, some thousand lines; the older half is removed beyond that.
const LONGEST: u64 = 256 * 1024;

/// A command that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// Time of its end.
    #[serde(rename = "at_s", with = "since")]
    pub at: SystemTime,
    /// Description, such as `scatter by fdf`.
    pub what: String,
    pub rounds: u64,
    /// `done`, or the failure.
    pub outcome: String,
}

/// Records the end of a command on the running cluster of this file, if there is one. A failure to
/// record is only logged.
pub fn note(file: &Path, round: &Round) {
    if let Ok(Some(kept)) = find(file)
        && let Err(error) = append(&kept.folder, round)
    {
        tracing::debug!(%error, "cannot note the round");
    }
}

fn append(folder: &Path, round: &Round) -> std::io::Result<()> {
    let path = folder.join(FILE);
    if fs::metadata(&path).is_ok_and(|file| file.len() > LONGEST) {
        let text = fs::read_to_string(&path)?;
        let half = text.len() / 2;
        let next = text.bytes().skip(half).position(|byte| byte == b'\n');
        // A newline is never inside a character.
        fs::write(&path, &text[half + next.map_or(0, |next| next + 1)..])?;
    }
    let line = serde_json::to_string(round)?;
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let before = file.metadata()?.len();
    let noted = file.write_all(format!("{line}\n").as_bytes());
    if noted.is_err() {
        // A partial line would also damage the next one.
        file.set_len(before)?;
    }
    noted
}

pub fn read(folder: &Path) -> Vec<Round> {
    parse(&fs::read_to_string(folder.join(FILE)).unwrap_or_default())
}

/// Parses the file and ignores invalid lines.
pub fn parse(text: &str) -> Vec<Round> {
    let of = |line| serde_json::from_str(line).ok();
    text.lines().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_last_ones_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()), []);
        let round = |n: u64| Round {
            at: SystemTime::UNIX_EPOCH + Duration::from_secs(n),
            what: "scatter by fdf".to_owned(),
            rounds: n,
            outcome: "é".repeat(50),
        };
        for n in 0..4000 {
            append(dir.path(), &round(n)).unwrap();
        }
        let kept = read(dir.path());
        assert_eq!(kept.last(), Some(&round(3999)));
        assert!((500..2000).contains(&kept.len()), "{}", kept.len());
        assert!(
            kept.iter()
                .zip(&kept[1..])
                .all(|(one, next)| one.rounds + 1 == next.rounds)
        );
    }
}
