//! Verification of certificates: those that a valid authority has issued and not revoked. The TLS
//! library makes all checks; this module calls it.
//!
//! The revocation list is a file beside the authority's certificate, read by every process that trusts
//! the authority. Without a list nothing is revoked.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{CertificateError, Error, RootCertStore};
use webpki::{BorrowedCertRevocationList, EndEntityCert};

use super::{Name, SecurityError, certificates, read};

/// Time after which every certificate has expired: certificates count years in four digits.
const NEVER: Duration = Duration::from_secs(9_000 * 366 * 24 * 3600);

/// An authority with its revocation list.
#[derive(Debug)]
pub struct PeerVerifier {
    authority: Vec<CertificateDer<'static>>,
    /// The verifier of servers, whose names are known beforehand.
    pub(super) servers: Arc<WebPkiServerVerifier>,
    /// The verifier of clients. Their names are not known beforehand: [`PeerVerifier::check`] checks the
    /// name and the revocation later, with an error that contains the name, as a TLS alert could not.
    pub(super) clients: Arc<dyn ClientCertVerifier>,
}

impl PeerVerifier {
    /// Creates a verifier for an authority with its revocation list.
    ///
    /// # Errors
    ///
    /// Returns an error if the authority or the revocation list cannot be parsed, or if the authority
    /// is not valid now.
    pub(super) fn new(
        authority: Vec<CertificateDer<'static>>,
        revoked: Option<CertificateRevocationListDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<PeerVerifier, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in &authority {
            roots.add(certificate.clone())?;
        }
        let roots = Arc::new(roots);
        let unusable = |error: rustls::server::VerifierBuilderError| match error {
            rustls::server::VerifierBuilderError::InvalidCrl(error) => error.into(),
            other => Error::General(other.to_string()),
        };
        let servers = WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone())
            .with_crls(revoked)
            // An intermediate authority may have its own list, or none.
            .allow_unknown_revocation_status()
            .build()
            .map_err(unusable)?;
        let clients = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
        let verifier = PeerVerifier {
            authority,
            servers,
            clients: clients.build().map_err(unusable)?,
        };
        verifier.lasts()?;
        Ok(verifier)
    }

    /// Checks that the authority is valid now: the library checks the dates of certificates, but not
    /// those of their authority.
    pub(super) fn lasts(&self) -> Result<(), Error> {
        let mut all = self.authority.iter();
        all.try_for_each(|it| self.dated(it, UnixTime::now()))
    }

    /// Returns the end of the authority's validity.
    pub(super) fn ends(&self) -> Option<SystemTime> {
        let never = UnixTime::since_unix_epoch(NEVER);
        let ends = self.authority.iter().filter_map(|it| {
            let Err(Error::InvalidCertificate(why)) = self.dated(it, never) else {
                return None;
            };
            let CertificateError::ExpiredContext { not_after, .. } = why else {
                return None;
            };
            Some(UNIX_EPOCH + Duration::from_secs(not_after.as_secs()))
        });
        ends.min()
    }

    /// Checks that an authority's certificate is valid at some time. The library also finds that it is
    /// not a process's certificate, which is ignored.
    fn dated(&self, authority: &CertificateDer<'_>, at: UnixTime) -> Result<(), Error> {
        use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
        let name = Name::Coordinator.on_certificates();
        let checked = self
            .servers
            .verify_server_cert(authority, &[], &name, &[], at);
        match checked {
            Err(Error::InvalidCertificate(
                why @ (Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. }),
            )) => Err(why.into()),
            _ => Ok(()),
        }
    }

    /// Checks that a certificate, with the intermediate ones, is valid now, has the name `name`, and is
    /// not revoked.
    pub(super) fn check(&self, shown: &[CertificateDer<'_>], name: Name) -> Result<(), Error> {
        let (own, between) = shown.split_first().ok_or(Error::NoCertificatesPresented)?;
        let (name, now) = (name.on_certificates(), UnixTime::now());
        let servers = &self.servers;
        servers
            .verify_server_cert(own, between, &name, &[], now)
            .map(drop)
    }
}

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
