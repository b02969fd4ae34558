//! Mutual authentication and encryption of connections: TLS 1.3, with a certificate on both sides that
//! one authority has issued for one name. The content of connections and the issue of certificates are
//! in other modules.

mod explain;
mod handshake;
mod name;
mod peer_verifier;
mod protected;
mod records;
#[cfg(test)]
mod tests;
mod transport;

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use flitcast_proto::wire::admission::IssuedCredentials;
use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::UnbufferedServerConnection;
use rustls::{ClientConfig, ServerConfig, SupportedCipherSuite};
use thiserror::Error;
use tokio::net::TcpStream;

use crate::handshake_limiter::Lease;
use crate::limits::{CREDENTIALS_FILE_BYTES, ROUND_TRIP};
use crate::system::{process, regular};
use explain::{describe, explained};
use handshake::{failed, handshake};
pub use name::Name;
use peer_verifier::PeerVerifier;
pub use peer_verifier::{REVOKED_FILE, Revoked, revoked, serial};
use protected::Protected;
pub use transport::Transport;

/// The file of the authority's certificate, in a folder of credentials.
pub const AUTHORITY_FILE: &str = "ca.pem";

/// An error in credentials.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct SecurityError(String);

impl SecurityError {
    /// Returns the error that a file or a certificate is at fault.
    fn of(what: impl Display, why: impl Display) -> SecurityError {
        SecurityError(format!("{what}: {why}"))
    }

    /// Returns a function for `map_err` that adds the path to an error of the operating system.
    fn at(path: &Path) -> impl FnOnce(io::Error) -> SecurityError {
        move |error| SecurityError::of(path.display(), error)
    }
}

/// The protection of connections, seen from one process.
#[derive(Clone, Debug)]
pub enum Security {
    /// No protection, except for the secret that the processes of a launch share.
    Plain,
    /// Certificates on both sides.
    Tls(Identity),
}

/// A process's certificate, and the verifier of others' certificates.
#[derive(Clone, Debug)]
pub struct Identity {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    verifier: Arc<PeerVerifier>,
}

impl Identity {
    /// Reads credentials that the launcher of this process has issued for it.
    ///
    /// # Errors
    ///
    /// Returns an error if the certificate is not for `name`, or is not valid now.
    pub fn issued(issued: &IssuedCredentials, name: Name) -> Result<Identity, SecurityError> {
        let authority = vec![CertificateDer::from(issued.authority.to_vec())];
        let what = format!("the certificate of the authority that has issued that of {name}");
        // The authority lasts as long as a launch or a running cluster, and revokes nothing.
        let verifier = PeerVerifier::new(authority, None, &provider());
        let verifier = verifier.map_err(|error| SecurityError::of(what, describe(&error, None)))?;
        let certificate = vec![CertificateDer::from(issued.certificate.to_vec())];
        let key = PrivatePkcs8KeyDer::from(issued.key.to_vec());
        let what = format!("the certificate issued for {name}");
        Identity::new(verifier, certificate, key.into(), name, &what)
    }

    /// Reads a process's credentials in `folder`: `ca.pem`, and `p3.pem` with `p3.key` for P3.
    ///
    /// # Errors
    ///
    /// Returns an error if a file is missing, if others can read the key, or if the certificate is not
    /// for `name` or not valid now.
    pub fn load(folder: &Path, name: Name) -> Result<Identity, SecurityError> {
        let verifier = verifier_for(folder)?;
        let path = folder.join(name.certificate_file());
        let certificate = certificates(&path)?;
        let key = private_key(&folder.join(name.key_file()))?;
        let what = path.display().to_string();
        Identity::new(verifier, certificate, key, name, &what)
    }

    /// Reads a process's credentials in `folder`, to be sent to it.
    pub fn to_issue(folder: &Path, name: Name) -> Result<IssuedCredentials, SecurityError> {
        let first = |path: PathBuf| {
            let certificate = certificates(&path)?.into_iter().next();
            Ok(certificate.map(|it| it.to_vec()).unwrap_or_default().into())
        };
        let key = private_key(&folder.join(name.key_file()))?;
        Ok(IssuedCredentials {
            authority: first(folder.join(AUTHORITY_FILE))?,
            certificate: first(folder.join(name.certificate_file()))?,
            key: key.secret_der().to_vec().into(),
        })
    }

    /// Makes the checks that the other processes will make, so that an error is reported where it was
    /// made.
    fn new(
        verifier: PeerVerifier,
        certificate: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        name: Name,
        what: &str,
    ) -> Result<Identity, SecurityError> {
        let refused = |error: rustls::Error| SecurityError::of(what, describe(&error, Some(name)));
        verifier.check(&certificate, name).map_err(refused)?;
        let provider = provider();
        let versions = &[&rustls::version::TLS13];
        let mut client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .map_err(refused)?
            .with_webpki_verifier(verifier.servers.clone())
            .with_client_auth_cert(certificate.clone(), key.clone_key())
            .map_err(refused)?;
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(refused)?
            .with_client_cert_verifier(verifier.clients.clone())
            .with_single_cert(certificate, key)
            .map_err(refused)?;
        // For `RecordKey`.
        client.enable_secret_extraction = true;
        server.enable_secret_extraction = true;
        // All connections verify certificates.
        client.resumption = Resumption::disabled();
        server.send_tls13_tickets = 0;
        Ok(Identity {
            client: Arc::new(client),
            server: Arc::new(server),
            verifier: Arc::new(verifier),
        })
    }

    /// Checks that the authority's validity has not ended since this was loaded.
    fn lasts(&self) -> io::Result<()> {
        let invalid = |error| {
            let why = format!("of the authority in ca.pem, {}", describe(&error, None));
            io::Error::new(io::ErrorKind::InvalidData, why)
        };
        self.verifier.lasts().map_err(invalid)
    }
}

/// Returns the end of validity of the authority whose certificate is in a folder, if it has not ended.
pub fn authority_ends(folder: &Path) -> Result<SystemTime, SecurityError> {
    let ends = verifier_for(folder)?.ends();
    ends.ok_or_else(|| {
        let path = folder.join(AUTHORITY_FILE);
        SecurityError::of(path.display(), "it does not say when it ends")
    })
}

/// Returns the verifier for a folder: its authority, and the revocation list beside it.
fn verifier_for(folder: &Path) -> Result<PeerVerifier, SecurityError> {
    let path = folder.join(AUTHORITY_FILE);
    let (authority, revoked) = (certificates(&path)?, peer_verifier::list(folder)?);
    let verifier = PeerVerifier::new(authority, revoked, &provider());
    verifier.map_err(|error| SecurityError::of(path.display(), describe(&error, None)))
}

/// Returns the algorithms. AES-128 comes first, since it is the fastest, and every implementation of TLS
/// 1.3 has it.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = rustls::crypto::ring::default_provider();
    let is_other = |suite: &SupportedCipherSuite| *suite != TLS13_AES_128_GCM_SHA256;
    provider.cipher_suites.sort_by_key(is_other);
    Arc::new(provider)
}

impl Security {
    /// Protects a connection that this process has made to `to`.
    ///
    /// # Errors
    ///
    /// Returns an error if the other end has another name, or rejects this process.
    pub async fn call(&self, mut stream: TcpStream, to: Name) -> io::Result<Transport> {
        match self {
            Security::Plain => Ok(Transport::plain(stream)),
            Security::Tls(identity) => {
                identity.lasts()?;
                let config = identity.client.clone();
                let end = UnbufferedClientConnection::new(config, to.on_certificates());
                let agreed = handshake(end.map_err(failed)?, &mut stream, || {}).await;
                let agreed = agreed.map_err(|error| explained(error, Some(to)))?;
                let stream = Protected::new(stream, agreed);
                Ok(Transport::tls(stream, identity.verifier.clone()))
            }
        }
    }

    /// Protects a connection that any process with a certificate of the authority has made to this one;
    /// [`Transport::shown`] returns its certificate. The lease is extended with each step of the
    /// handshake.
    ///
    /// # Errors
    ///
    /// Returns an error if the authority has not issued the certificate.
    pub async fn answer(&self, mut stream: TcpStream, lease: &Lease) -> io::Result<Transport> {
        match self {
            Security::Plain => Ok(Transport::plain(stream)),
            Security::Tls(identity) => {
                identity.lasts()?;
                // No memory is allocated for a client that sends nothing.
                stream.peek(&mut [0]).await?;
                Box::pin(async {
                    let end = UnbufferedServerConnection::new(identity.server.clone());
                    let answered = || lease.renew(ROUND_TRIP);
                    let agreed = handshake(end.map_err(failed)?, &mut stream, answered).await;
                    let agreed = agreed.map_err(|error| explained(error, None))?;
                    lease.settle();
                    let stream = Protected::new(stream, agreed);
                    Ok(Transport::tls(stream, identity.verifier.clone()))
                })
                .await
            }
        }
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, SecurityError> {
    let text = read(path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates = certificates.ok().filter(|all| !all.is_empty());
    certificates.ok_or_else(|| SecurityError::of(path.display(), "it is no certificate in PEM"))
}

/// Reads a private key that only its owner can read. A user other than root may read one of root's
/// through its group: orchestrators provide secrets in this way.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, SecurityError> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let metadata = std::fs::metadata(path).map_err(SecurityError::at(path))?;
    let mode = metadata.permissions().mode() & 0o777;
    let is_handed = metadata.uid() == 0 && !process::is_root();
    let others = if is_handed { 0o037 } else { 0o077 };
    if mode & others != 0 {
        let why = format!("others can read this private key (mode {mode:03o}); chmod 600 it");
        return Err(SecurityError::of(path.display(), why));
    }
    // The reason is not reported, because it may quote the key.
    PrivateKeyDer::from_pem_slice(&read(path)?)
        .map_err(|_| SecurityError::of(path.display(), "it is no private key in PEM"))
}

fn read(path: &Path) -> Result<Vec<u8>, SecurityError> {
    regular::read_file(path, CREDENTIALS_FILE_BYTES).map_err(SecurityError::at(path))
}
