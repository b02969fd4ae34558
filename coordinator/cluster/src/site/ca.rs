//! The folder of an authority, as `flitcast ca` creates it.
//!
//! ```text
//! ca.pem  ca.key                      the authority: its key can create certificates of PEs
//! coordinator.pem  coordinator.key
//! p0.pem  p0.key  p1.pem  p1.key ..
//! issued.txt                          all certificates that were issued
//! revoked.pem                         the revocation list, if there is one
//! ```
//!
//! A PE needs `ca.pem`, its own two files, and `revoked.pem` if it exists. A certificate that is
//! issued again replaces the old one; existing connections continue.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{anyhow, bail};
use flitcast_node::dates;
use flitcast_node::security::{AUTHORITY_FILE, Identity, Name, authority_ends, private_key};
use flitcast_node::system::lock::{Lock, try_lock};
use flitcast_node::system::regular;
use flitcast_proto::PeId;
use rcgen::KeyPair;

use crate::site::authority::{Authority, Issued, pem};
use crate::text::phrases::at;
use crate::text::whole_file::write_with_mode;

const AUTHORITY_KEY_FILE: &str = "ca.key";
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Creates an authority in a new folder, and certificates for the coordinator and `pes` PEs, all
/// valid for `days` days.
pub fn make(folder: &Path, pes: u32, days: u32) -> anyhow::Result<()> {
    let authority = found(folder, days)?;
    let pes = (0..pes).map(|pe| Name::Pe(PeId(pe)));
    let names: Vec<Name> = std::iter::once(Name::Coordinator).chain(pes).collect();
    issue_all(folder, &authority, &names, days).map(drop)
}

/// Creates an authority in a new folder, valid for `days` days.
pub fn found(folder: &Path, days: u32) -> anyhow::Result<Authority> {
    let (authority, own) = Authority::found(days * DAY)
        .map_err(|error| anyhow!("cannot make the certificate of the authority: {error}"))?;
    std::fs::create_dir_all(folder).map_err(at(folder))?;
    write(folder, &own, AUTHORITY_FILE, AUTHORITY_KEY_FILE)?;
    Ok(authority)
}

/// Loads the authority of a folder.
pub fn authority_in(folder: &Path) -> anyhow::Result<Authority> {
    let path = folder.join(AUTHORITY_KEY_FILE);
    let foreign = "it is no key of an authority that `flitcast ca init` has founded";
    let key = KeyPair::try_from(&private_key(&path)?).map_err(|_| at(&path)(foreign))?;
    Ok(Authority::of_key(key, authority_ends(folder)?))
}

/// Locks the folder against other commands that issue or revoke certificates.
pub fn locked(folder: &Path) -> anyhow::Result<File> {
    let path = folder.join(AUTHORITY_KEY_FILE);
    let lock = regular::open_file(&path).map_err(at(&path))?;
    match try_lock(&lock, Lock::Exclusive) {
        Ok(()) => Ok(lock),
        // Both commands would overwrite each other's changes.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => bail!(
            "{}: another `flitcast ca` is changing this folder; try again when it has ended",
            folder.display()
        ),
        Err(error) => Err(at(&path)(error)),
    }
}

/// Issues certificates for `days` days and returns the end of the last one's validity.
pub fn issue_all(
    folder: &Path,
    authority: &Authority,
    names: &[Name],
    days: u32,
) -> anyhow::Result<SystemTime> {
    let mut until = authority.ends();
    for &name in names {
        let issued = authority.issue(name, days * DAY);
        let issued =
            issued.map_err(|error| anyhow!("cannot make the certificate of {name}: {error}"))?;
        until = issued.until;
        let entry = Entry {
            name,
            serial: issued.serial.clone(),
            until,
        };
        note(folder, &entry)?;
        write(folder, &issued, &name.certificate_file(), &name.key_file())?;
        // Loads the result, so that an unusable certificate is reported now.
        Identity::load(folder, name)?;
    }
    Ok(until)
}

/// Writes both files, the key first. Only the owner can read the key; the certificate is public.
fn write(folder: &Path, issued: &Issued, certificate: &str, key: &str) -> anyhow::Result<()> {
    let key_pem = pem("PRIVATE KEY", &issued.key.serialize_der());
    put(folder, key, &key_pem, 0o600)?;
    let certificate_pem = pem("CERTIFICATE", &issued.certificate);
    put(folder, certificate, &certificate_pem, 0o644)
}

/// Writes a file of the folder as a whole or not at all.
pub fn put(folder: &Path, name: &str, text: &str, mode: u32) -> anyhow::Result<()> {
    let write = |out: &mut dyn io::Write| out.write_all(text.as_bytes());
    Ok(write_with_mode(&folder.join(name), mode, write)?)
}

const LEDGER_FILE: &str = "issued.txt";

/// A line of the ledger, `issued.txt`. A PE may have had several certificates, and revoking its name has to
/// revoke all of them.
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
