//! The ledger of an authority: a line for each issued certificate. A PE may have had several
//! certificates, and revoking its name has to revoke all of them.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::SystemTime;

use anyhow::anyhow;
use flitcast_node::dates;
use flitcast_node::security::Name;
use flitcast_node::system::regular;
use flitcast_proto::PeId;

use crate::text::phrases::at;

const LEDGER_FILE: &str = "issued.txt";

/// A line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name in the certificate.
    pub name: Name,
    pub serial: Vec<u8>,
    /// End of its validity.
    pub until: SystemTime,
}

impl Entry {
    fn written(&self) -> String {
        let file = self.name.certificate_file();
        let who = file.trim_end_matches(".pem");
        let serial = self.serial.iter().map(|byte| format!("{byte:02x}"));
        let serial: String = serial.collect();
        let until = dates::text(self.until);
        format!("{who} {serial} until {until}\n")
    }

    fn parse(line: &str) -> Option<Entry> {
        let mut fields = line.split(' ');
        let (who, serial) = (fields.next()?, fields.next()?);
        let until = fields.nth(1)?;
        let digits = (0..serial.len()).step_by(2);
        let bytes = digits.map(|at| u8::from_str_radix(serial.get(at..at + 2)?, 16).ok());
        Some(Entry {
            name: name(who).ok()?,
            serial: bytes.collect::<Option<_>>()?,
            until: dates::parse(until)?,
        })
    }
}

/// Parses the name of a process in its certificate: `coordinator`, or `p3`.
pub fn name(text: &str) -> anyhow::Result<Name> {
    let name = match text.strip_prefix(['p', 'P']) {
        Some(number) => number.parse().ok().map(|pe| Name::Pe(PeId(pe))),
        None => (text == "coordinator").then_some(Name::Coordinator),
    };
    name.ok_or_else(|| {
        let text: String = text.chars().take(40).collect();
        anyhow!("`{text}`: unknown name; write coordinator, or p and a PE's number")
    })
}

/// Longest ledger that is read: a million certificates, a line of some 60 bytes each.
const MAX_LEDGER_BYTES: u64 = 64 << 20;

/// Records a certificate that is about to be issued.
pub fn note(folder: &Path, entry: &Entry) -> anyhow::Result<()> {
    let path = folder.join(LEDGER_FILE);
    let mut options = OpenOptions::new();
    let opened = options.create(true).append(true).mode(0o600).open(&path);
    let noted = opened.and_then(|mut ledger| {
        ledger.write_all(entry.written().as_bytes())?;
        ledger.sync_data()
    });
    noted.map_err(at(&path))
}

/// Returns the issued certificates, oldest first; none if the authority has no ledger.
pub fn read(folder: &Path) -> anyhow::Result<Vec<Entry>> {
    let path = folder.join(LEDGER_FILE);
    let text = match regular::read_text(&path, MAX_LEDGER_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(at(&path)(error)),
    };
    let entry = |(number, line): (usize, &str)| {
        let (path, foreign) = (path.display(), "this line was not written by `flitcast ca`");
        Entry::parse(line).ok_or_else(|| anyhow!("{path}:{number}: {foreign}"))
    };
    (1..).zip(text.lines()).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn noted_certificates_are_read_back() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).unwrap(), []);
        let entry = |name, serial: &[u8]| Entry {
            name,
            serial: serial.to_vec(),
            until: SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_000),
        };
        let all = [
            entry(Name::Pe(PeId(3)), &[0, 0xff, 7]),
            entry(Name::Coordinator, &[1]),
        ];
        for entry in &all {
            note(dir.path(), entry).unwrap();
        }
        assert_eq!(read(dir.path()).unwrap(), all);
        std::fs::write(dir.path().join(LEDGER_FILE), "p3 0g until now\n").unwrap();
        let message = read(dir.path()).unwrap_err().to_string();
        assert!(message.contains("issued.txt:1: "), "{message}");
    }
}
