//! The revocation list of an authority: a file beside its certificate, read by every process that
//! trusts the authority. Without a list nothing is revoked.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::PemObject as _;
use webpki::{BorrowedCertRevocationList, EndEntityCert};

use super::{Name, SecurityError, certificates, read};

/// The list's file, in a folder of credentials.
pub const REVOKED_FILE: &str = "revoked.pem";

/// The fault of a list that is not from the authority.
pub(super) const NO_LIST: &str =
    "is no list of certificates that the authority in ca.pem has revoked";

/// A certificate on the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoked {
    /// The serial number, as it is encoded.
    pub serial: Vec<u8>,
    pub since: SystemTime,
}

/// Returns the entries of the list in a folder.
pub fn revoked(folder: &Path) -> Result<Vec<Revoked>, SecurityError> {
    let Some(list) = list(folder)? else {
        return Ok(Vec::new());
    };
    let parsed = BorrowedCertRevocationList::from_der(&list).map_err(|_| malformed(folder))?;
    let entries = parsed.into_iter().map(|entry| {
        let entry = entry.map_err(|_| malformed(folder))?;
        Ok(Revoked {
            serial: entry.serial_number.to_vec(),
            since: UNIX_EPOCH + Duration::from_secs(entry.revocation_date.as_secs()),
        })
    });
    entries.collect()
}

/// Returns the serial number of a process's certificate in a folder, if there is one.
pub fn serial(folder: &Path, name: Name) -> Result<Option<Vec<u8>>, SecurityError> {
    let path = folder.join(name.certificate_file());
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let all = certificates(&path)?;
    let own = all
        .first()
        .and_then(|own| EndEntityCert::try_from(own).ok());
    let serial = own.map(|own| own.serial().to_vec());
    let malformed = || SecurityError::of(path.display(), "it is no certificate");
    serial.ok_or_else(malformed).map(Some)
}

/// Returns the list in a folder, if there is one.
pub(super) fn list(
    folder: &Path,
) -> Result<Option<CertificateRevocationListDer<'static>>, SecurityError> {
    let path = folder.join(REVOKED_FILE);
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let list = CertificateRevocationListDer::from_pem_slice(&read(&path)?);
    list.map(Some).map_err(|_| malformed(folder))
}

/// Returns the error for a list that is not from the authority.
fn malformed(folder: &Path) -> SecurityError {
    let why = format!("it {NO_LIST}");
    SecurityError::of(folder.join(REVOKED_FILE).display(), why)
}
