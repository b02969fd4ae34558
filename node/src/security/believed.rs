//! Whose certificates are believed: those that an authority has issued, as long as it lasts
//! itself, but for those that it has revoked. It is the library that checks all of this; here
//! it is asked.

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

/// When every certificate has expired: certificates count years in four digits.
const NEVER: Duration = Duration::from_secs(9_000 * 366 * 24 * 3600);

/// An authority, and whom it does not vouch for any more.
#[derive(Debug)]
pub struct Believed {
    authority: Vec<CertificateDer<'static>>,
    /// For whoever is called, whose name is known before.
    pub(super) servers: Arc<WebPkiServerVerifier>,
    /// For whoever calls. Who that is, it has yet to say: then [`Believed::check`] tells whether
    /// its certificate was revoked, in words that name it, as an alert of TLS could not.
    pub(super) clients: Arc<dyn ClientCertVerifier>,
}

impl Believed {
    /// Believes an authority, but for what a list of its own revokes.
    ///
    /// # Errors
    ///
    /// It is none, or no such list, or it does not last (any more).
    pub(super) fn new(
        authority: Vec<CertificateDer<'static>>,
        revoked: Option<CertificateRevocationListDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Believed, Error> {
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
            // Of whom an authority between has issued, that one's list tells, if it has any.
            .allow_unknown_revocation_status()
            .build()
            .map_err(unusable)?;
        let clients = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
        let believed = Believed {
            authority,
            servers,
            clients: clients.build().map_err(unusable)?,
        };
        believed.lasts()?;
        Ok(believed)
    }

    /// That the authority has begun, and not ended: the library looks at the dates of what was
    /// issued, but not at those of who has.
    ///
    /// # Errors
    ///
    /// It has not, or it has.
    pub(super) fn lasts(&self) -> Result<(), Error> {
        let mut all = self.authority.iter();
        all.try_for_each(|it| self.dated(it, UnixTime::now()))
    }

    /// When it ends.
    pub(super) fn ends(&self) -> Option<SystemTime> {
        let never = UnixTime::since_unix_epoch(NEVER);
        let ends = self
            .authority
            .iter()
            .filter_map(|it| match self.dated(it, never) {
                Err(Error::InvalidCertificate(CertificateError::ExpiredContext {
                    not_after,
                    ..
                })) => Some(UNIX_EPOCH + Duration::from_secs(not_after.as_secs())),
                _ => None,
            });
        ends.min()
    }

    /// Whether an authority's certificate is good at some time. It is no process's
    /// certificate, which is what the library finds wrong with it next.
    fn dated(&self, authority: &CertificateDer<'_>, at: UnixTime) -> Result<(), Error> {
        use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
        let name = Name::Coordinator.on_certificates();
        match self
            .servers
            .verify_server_cert(authority, &[], &name, &[], at)
        {
            Err(Error::InvalidCertificate(
                why @ (Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. }),
            )) => Err(why.into()),
            _ => Ok(()),
        }
    }

    /// That a certificate, with those between it and the authority, is `name`'s, good now,
    /// and not revoked.
    ///
    /// # Errors
    ///
    /// It is not.
    pub(super) fn check(&self, shown: &[CertificateDer<'_>], name: Name) -> Result<(), Error> {
        let (own, between) = shown.split_first().ok_or(Error::NoCertificatesPresented)?;
        let (name, now) = (name.on_certificates(), UnixTime::now());
        let checked = self
            .servers
            .verify_server_cert(own, between, &name, &[], now);
        checked.map(drop)
    }
}
