//! Verification of certificates: those that a valid authority has issued and not revoked. The TLS
//! library makes all checks; this module calls it.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{CertificateError, Error, RootCertStore};

use super::Name;

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
