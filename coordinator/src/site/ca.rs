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

mod error;
mod ledger;

use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use flitcast_node::security::{
    AUTHORITY_FILE, Identity, Name, SecurityError, authority_ends, private_key,
};
use flitcast_node::system::lock::{Lock, try_lock};
use flitcast_node::system::regular;
use flitcast_proto::PeId;
use rcgen::KeyPair;

use crate::site::authority::{Authority, Issued, Validity};
use crate::text::pem::pem;
pub use error::{CaError, MOST_DAYS, name};
pub use ledger::{Entry, read};

const AUTHORITY_KEY_FILE: &str = "ca.key";
const DAY: Duration = Duration::from_secs(24 * 3600);
/// Creates an authority in a new folder, and certificates for the coordinator and `pes` PEs, all
/// valid for `days` days.
///
/// # Errors
///
/// Returns an error if a file cannot be written or a certificate cannot be created.
pub fn make(folder: &Path, pes: u32, days: u32) -> Result<(), CaError> {
    let authority = found(folder, days)?;
    let pes = (0..pes).map(|pe| Name::Pe(PeId(pe)));
    let names: Vec<Name> = std::iter::once(Name::Coordinator).chain(pes).collect();
    issue_all(folder, &authority, &names, days).map(drop)
}

/// Creates an authority in a new folder, valid for `days` days.
pub fn found(folder: &Path, days: u32) -> Result<Authority, CaError> {
    let (authority, own) =
        Authority::found(Validity::of(days * DAY)).map_err(|source| CaError::Issue {
            name: "the authority".to_owned(),
            source,
        })?;
    std::fs::create_dir_all(folder).map_err(|source| CaError::Write {
        path: folder.to_owned(),
        source,
    })?;
    write(folder, &own, AUTHORITY_FILE, AUTHORITY_KEY_FILE)?;
    Ok(authority)
}

/// Loads the authority of a folder.
pub fn authority_in(folder: &Path) -> Result<Authority, CaError> {
    let path = folder.join(AUTHORITY_KEY_FILE);
    let key = private_key(&path)?;
    let key = KeyPair::try_from(&key).map_err(|_| SecurityError::Malformed {
        path,
        why: "it is no key of an authority that `flitcast ca init` has founded".to_owned(),
    })?;
    Ok(Authority::of_key(key, authority_ends(folder)?))
}

/// Locks the folder against other commands that issue or revoke certificates.
pub fn locked(folder: &Path) -> Result<File, CaError> {
    let failed = |source| CaError::Read {
        path: folder.join(AUTHORITY_KEY_FILE),
        source,
    };
    let lock = regular::open_file(&folder.join(AUTHORITY_KEY_FILE)).map_err(failed)?;
    match try_lock(&lock, Lock::Exclusive) {
        Ok(()) => Ok(lock),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(CaError::Busy(folder.to_owned()))
        }
        Err(error) => Err(failed(error)),
    }
}

/// Issues certificates for `days` days and returns the end of the last one's validity.
pub fn issue_all(
    folder: &Path,
    authority: &Authority,
    names: &[Name],
    days: u32,
) -> Result<SystemTime, CaError> {
    let mut until = authority.ends();
    for &name in names {
        let issued = authority.issue(name, Validity::of(days * DAY));
        let issued = issued.map_err(|source| CaError::Issue {
            name: name.to_string(),
            source,
        })?;
        until = issued.until;
        let serial = issued.serial.clone();
        ledger::note(
            folder,
            &Entry {
                name,
                serial,
                until,
            },
        )?;
        write(folder, &issued, &name.certificate_file(), &name.key_file())?;
        // Loads the result, so that an unusable certificate is reported now.
        Identity::load(folder, name)?;
    }
    Ok(until)
}

/// Writes both files, the key first. Only the owner can read the key; the certificate is public.
fn write(folder: &Path, issued: &Issued, certificate: &str, key: &str) -> Result<(), CaError> {
    let key_pem = pem("PRIVATE KEY", &issued.key.serialize_der());
    put(folder, key, &key_pem, 0o600)?;
    put(
        folder,
        certificate,
        &pem("CERTIFICATE", &issued.certificate),
        0o644,
    )
}

/// Writes a file as a whole or not at all.
pub fn put(folder: &Path, name: &str, text: &str, mode: u32) -> Result<(), CaError> {
    let path = folder.join(name);
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        // A temporary file is readable by its owner only.
        file.as_file()
            .set_permissions(Permissions::from_mode(mode))?;
        file.as_file().sync_all()?;
        Ok(file.persist(&path)?)
    });
    written
        .map(drop)
        .map_err(|source| CaError::Write { path, source })
}
