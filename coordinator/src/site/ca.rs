//! The folder of an authority, as `flitcast ca` keeps it.
//!
//! ```text
//! ca.pem  ca.key                      the authority: who has this key makes PEs
//! coordinator.pem  coordinator.key
//! p0.pem  p0.key  p1.pem  p1.key ..
//! issued.txt                          all that was issued
//! revoked.pem                         what was revoked, if anything
//! ```
//!
//! A PE needs `ca.pem`, its own two files, and `revoked.pem` where there is one. A certificate
//! that is issued again takes the place of the old one; who is connected stays so.

mod ledger;

use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use flitcast_node::security::{
    AUTHORITY_FILE, Identity, Name, SecurityError, authority_ends, private_key,
};
use flitcast_node::system::lock::{Lock, try_lock};
use flitcast_proto::PeId;
use flitcast_proto::tree::MAX_PES;
use rcgen::KeyPair;
use thiserror::Error;

use crate::site::authority::{Authority, Issued, Validity};
pub use ledger::{Entry, read};

const AUTHORITY_KEY_FILE: &str = "ca.key";
const DAY: Duration = Duration::from_secs(24 * 3600);
/// What a certificate may be good for: above ten years nobody remembers it.
pub const MOST_DAYS: u32 = 3660;

/// What is wrong with such a folder, or with what is asked of it.
#[derive(Debug, Error)]
pub enum CaError {
    /// There is something in the folder.
    #[error("{}: there is something here already; an authority is founded in an empty folder", .0.display())]
    Taken(PathBuf),
    /// A name that nobody has.
    #[error("`{0}` is nobody: write coordinator, or p and a PE's number")]
    Nobody(String),
    /// Too many, or none.
    #[error("--pes {0}: from 1 to {MAX_PES}")]
    Pes(u32),
    /// Too long, or no time at all.
    #[error("{option} {days}: from 1 to {MOST_DAYS}")]
    Days {
        /// Which option.
        option: &'static str,
        /// As typed.
        days: u32,
    },
    /// The authority's files are not good.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// The certificate cannot be made.
    #[error("cannot make the certificate of {name}: {source}")]
    Issue {
        /// Whose.
        name: String,
        /// Why not.
        source: rcgen::Error,
    },
    /// A list cannot be made.
    #[error("cannot make the list of revoked certificates: {source}")]
    List {
        /// Why not.
        source: rcgen::Error,
    },
    /// There is nothing to be revoked.
    #[error("{0} has no certificate that was issued here and is still good")]
    NotIssued(String),
    /// Two at the same time would lose what one of them notes.
    #[error("{}: another `flitcast ca` is at work here: try again when it is done", .0.display())]
    Busy(PathBuf),
    /// The ledger was changed by hand.
    #[error("{}:{line}: this is no line that `flitcast ca` has written", path.display())]
    Ledger {
        /// The ledger.
        path: PathBuf,
        /// Which line.
        line: usize,
    },
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Founds an authority in a folder that is not there yet, and issues certificates for the
/// coordinator and so many PEs; all for so many days.
///
/// # Errors
///
/// It cannot be done.
pub fn make(folder: &Path, pes: u32, days: u32) -> Result<(), CaError> {
    let authority = found(folder, days)?;
    let pes = (0..pes).map(|pe| Name::Pe(PeId(pe)));
    let names: Vec<Name> = std::iter::once(Name::Coordinator).chain(pes).collect();
    issue_all(folder, &authority, &names, days).map(drop)
}

/// Who that is: `coordinator`, or `p3`.
pub fn name(text: &str) -> Result<Name, CaError> {
    let name = match text.strip_prefix(['p', 'P']) {
        Some(number) => number.parse().ok().map(|pe| Name::Pe(PeId(pe))),
        None => (text == "coordinator").then_some(Name::Coordinator),
    };
    name.ok_or_else(|| CaError::Nobody(text.chars().take(40).collect()))
}

/// Founds an authority in a folder, which is made, good for so many days.
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

/// The authority of a folder.
pub fn authority_in(folder: &Path) -> Result<Authority, CaError> {
    let path = folder.join(AUTHORITY_KEY_FILE);
    let key = private_key(&path)?;
    let key = KeyPair::try_from(&key).map_err(|_| SecurityError::Malformed {
        path,
        why: "it is no key of an authority that `flitcast ca init` has founded".to_owned(),
    })?;
    Ok(Authority::of_key(key, authority_ends(folder)?))
}

/// Nobody else issues or revokes there meanwhile.
pub fn locked(folder: &Path) -> Result<File, CaError> {
    let failed = |source| CaError::Read {
        path: folder.join(AUTHORITY_KEY_FILE),
        source,
    };
    let lock = File::open(folder.join(AUTHORITY_KEY_FILE)).map_err(failed)?;
    match try_lock(&lock, Lock::Exclusive) {
        Ok(()) => Ok(lock),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            Err(CaError::Busy(folder.to_owned()))
        }
        Err(error) => Err(failed(error)),
    }
}

/// Issues certificates for so many days; until when the last of them is good.
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
        // What cannot be used is told now: a key that is not the certificate's, say.
        Identity::load(folder, name)?;
    }
    Ok(until)
}

/// Writes both files, the key first: nobody but their owner ever has it, and a certificate is
/// for all to see.
fn write(folder: &Path, issued: &Issued, certificate: &str, key: &str) -> Result<(), CaError> {
    put(folder, key, &issued.key.serialize_pem(), 0o600)?;
    put(folder, certificate, &issued.pem, 0o644)
}

/// Writes a file, whole or not at all.
pub fn put(folder: &Path, name: &str, text: &str, mode: u32) -> Result<(), CaError> {
    let path = folder.join(name);
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        // A temporary file is its owner's alone.
        file.as_file()
            .set_permissions(Permissions::from_mode(mode))?;
        file.as_file().sync_all()?;
        Ok(file.persist(&path)?)
    });
    written
        .map(drop)
        .map_err(|source| CaError::Write { path, source })
}
