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

mod ledger;

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{anyhow, bail};
use flitcast_node::security::{AUTHORITY_FILE, Identity, Name, authority_ends, private_key};
use flitcast_node::system::lock::{Lock, try_lock};
use flitcast_node::system::regular;
use flitcast_proto::PeId;
use rcgen::KeyPair;

use crate::site::authority::{Authority, Issued};
use crate::text::pem::pem;
use crate::text::phrases::at;
use crate::text::whole_file::write_with_mode;
pub use ledger::{Entry, name, read};

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
        ledger::note(folder, &entry)?;
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
