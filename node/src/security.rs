//! Who is at the other end of a connection, and that nobody else reads it or writes to
//! it: TLS 1.3, with a certificate on both sides that one authority has issued for one
//! name. What is said over it is not this module's business, nor is issuing.

mod believed;
mod explain;
mod name;
mod read_ahead;
mod revoked;
mod transport;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use flitcast_proto::wire::admission::IssuedCredentials;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::Acceptor;
use rustls::{ClientConfig, ServerConfig};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::{LazyConfigAcceptor, TlsConnector};

use crate::door::Lease;
use crate::limits::ROUND_TRIP;
use crate::system::process;
use believed::Believed;
use explain::{explained, explained_of, told, told_of};
pub use name::Name;
use read_ahead::ReadAhead;
pub use revoked::{REVOKED_FILE, Revoked, revoked, serial};
pub use transport::{Shown, Transport};

/// The file of the authority's certificate, in a folder of credentials.
pub const AUTHORITY_FILE: &str = "ca.pem";
/// The longest file of credentials: a chain of certificates has a few KiB.
const LONGEST_FILE: u64 = 1 << 20;

/// Why credentials are none.
#[derive(Debug, Error)]
pub enum SecurityError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {why}", path.display())]
    Malformed {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Others can read a private key.
    #[error("{}: others can read this private key (mode {mode:03o}); chmod 600 it", path.display())]
    Exposed {
        /// Which.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A certificate is not good for what it is to be used for.
    #[error("{what}: {why}")]
    Unfit {
        /// Which certificate.
        what: String,
        /// Why not.
        why: String,
    },
}

impl SecurityError {
    fn unfit(what: &str, why: String) -> SecurityError {
        let what = what.to_owned();
        SecurityError::Unfit { what, why }
    }
}

/// How connections are guarded, seen from one process.
#[derive(Clone, Debug)]
pub enum Security {
    /// Not at all, but for the secret that the processes of a launch share.
    Plain,
    /// By certificates on both sides.
    Tls(Identity),
}

/// A process's certificate, ready to be shown, and whose certificates it believes.
#[derive(Clone, Debug)]
pub struct Identity {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    believed: Arc<Believed>,
}

impl Identity {
    /// What who started this process has issued for it.
    ///
    /// # Errors
    ///
    /// It is not for `name`, or not good now.
    pub fn issued(issued: &IssuedCredentials, name: Name) -> Result<Identity, SecurityError> {
        let authority = vec![CertificateDer::from(issued.authority.to_vec())];
        let what = format!("the certificate of the authority that has issued that of {name}");
        // It lasts as long as a launch, or as a cluster is up, and revokes nothing.
        let believed = Believed::new(authority, None, &provider());
        let believed = believed.map_err(|error| SecurityError::unfit(&what, told(&error)))?;
        let certificate = vec![CertificateDer::from(issued.certificate.to_vec())];
        let key = PrivatePkcs8KeyDer::from(issued.key.to_vec());
        let what = format!("the certificate issued for {name}");
        Identity::new(believed, certificate, key.into(), name, &what)
    }

    /// What `folder` has for a process: `ca.pem`, and `p3.pem` with `p3.key` for P3.
    ///
    /// # Errors
    ///
    /// A file is not there, others can read the key, or the certificate is not for
    /// `name` or not good now.
    pub fn load(folder: &Path, name: Name) -> Result<Identity, SecurityError> {
        let believed = believed_in(folder)?;
        let path = folder.join(name.certificate_file());
        let certificate = certificates(&path)?;
        let key = private_key(&folder.join(name.key_file()))?;
        let what = path.display().to_string();
        Identity::new(believed, certificate, key, name, &what)
    }

    /// What `folder` has for a process, to be told to it.
    ///
    /// # Errors
    ///
    /// As of [`Identity::load`], but for what becomes of it.
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

    /// Checks at once what the others will check: a mistake is told where it was made.
    fn new(
        believed: Believed,
        certificate: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        name: Name,
        what: &str,
    ) -> Result<Identity, SecurityError> {
        let refused = |error: rustls::Error| SecurityError::unfit(what, told_of(&error, name));
        believed.check(&certificate, name).map_err(refused)?;
        let provider = provider();
        let versions = &[&rustls::version::TLS13];
        let client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .map_err(refused)?
            .with_webpki_verifier(believed.servers.clone())
            .with_client_auth_cert(certificate.clone(), key.clone_key())
            .map_err(refused)?;
        let server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(refused)?
            .with_client_cert_verifier(believed.clients.clone())
            .with_single_cert(certificate, key)
            .map_err(refused)?;
        Ok(Identity {
            client: Arc::new(client),
            server: Arc::new(server),
            believed: Arc::new(believed),
        })
    }

    /// Checks that the authority has not ended since this was loaded.
    fn lasts(&self) -> io::Result<()> {
        let invalid = |error| {
            let why = format!("of the authority in ca.pem, {}", told(&error));
            io::Error::new(io::ErrorKind::InvalidData, why)
        };
        self.believed.lasts().map_err(invalid)
    }
}

/// When the authority whose certificate lies in a folder ends.
///
/// # Errors
///
/// It is none, or has ended.
pub fn authority_ends(folder: &Path) -> Result<SystemTime, SecurityError> {
    let ends = believed_in(folder)?.ends();
    ends.ok_or_else(|| {
        let what = folder.join(AUTHORITY_FILE).display().to_string();
        SecurityError::unfit(&what, "it does not say when it ends".to_owned())
    })
}

/// Whom who has a folder believes: its authority, but for what the list beside that revokes.
fn believed_in(folder: &Path) -> Result<Believed, SecurityError> {
    let path = folder.join(AUTHORITY_FILE);
    let (authority, revoked) = (certificates(&path)?, revoked::list(folder)?);
    let believed = Believed::new(authority, revoked, &provider());
    believed.map_err(|error| SecurityError::unfit(&path.display().to_string(), told(&error)))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

impl Identity {
    async fn answer(&self, stream: TcpStream, lease: &Lease) -> io::Result<Transport> {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), ReadAhead::new(stream));
        let hello = hello.await.map_err(explained)?;
        lease.renew(ROUND_TRIP);
        let secured = hello.into_stream(self.server.clone()).await;
        let secured = secured.map_err(explained)?;
        lease.settle();
        Ok(Transport::tls(secured.into(), self.believed.clone()))
    }
}

impl Security {
    /// Guards a connection that this process has made to `to`, and no one else.
    ///
    /// # Errors
    ///
    /// It is somebody else, or will not have us.
    pub async fn call(&self, stream: TcpStream, to: Name) -> io::Result<Transport> {
        match self {
            Security::Plain => Ok(Transport::plain(stream)),
            Security::Tls(identity) => {
                identity.lasts()?;
                let connector = TlsConnector::from(identity.client.clone());
                let stream = ReadAhead::new(stream);
                let secured = connector.connect(to.on_certificates(), stream).await;
                secured
                    .map(|stream| Transport::tls(stream.into(), identity.believed.clone()))
                    .map_err(|error| explained_of(error, to))
            }
        }
    }

    /// Guards a connection that was made to this process, by anybody that the authority
    /// knows; [`Transport::shown`] tells by whom. The further that is, the longer its lease.
    ///
    /// # Errors
    ///
    /// The authority does not know it.
    pub async fn answer(&self, stream: TcpStream, lease: &Lease) -> io::Result<Transport> {
        match self {
            Security::Plain => Ok(Transport::plain(stream)),
            Security::Tls(identity) => {
                identity.lasts()?;
                // Nothing is reserved for who says nothing.
                stream.peek(&mut [0]).await?;
                Box::pin(identity.answer(stream, lease)).await
            }
        }
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, SecurityError> {
    let text = read(path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(SecurityError::Malformed {
            path: path.to_owned(),
            why: "it is no certificate in PEM".to_owned(),
        }),
    }
}

/// A private key that only its owner can read. Who is not root may read one of root's by its
/// group: so orchestrators hand secrets to their processes.
///
/// # Errors
///
/// It cannot be read, or others can.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, SecurityError> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let unreadable = |source| SecurityError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    let mode = metadata.permissions().mode() & 0o777;
    let is_handed = metadata.uid() == 0 && !process::is_root();
    let others = if is_handed { 0o037 } else { 0o077 };
    if mode & others != 0 {
        let path = path.to_owned();
        return Err(SecurityError::Exposed { path, mode });
    }
    // The reason is not told: it may quote the key.
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|_| SecurityError::Malformed {
        path: path.to_owned(),
        why: "it is no private key in PEM".to_owned(),
    })
}

fn read(path: &Path) -> Result<Vec<u8>, SecurityError> {
    use std::io::Read as _;
    let unreadable = |source| SecurityError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let mut text = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let read = file.take(LONGEST_FILE + 1).read_to_end(&mut text);
    read.map_err(unreadable)?;
    match text.len() as u64 > LONGEST_FILE {
        true => Err(SecurityError::Malformed {
            path: path.to_owned(),
            why: "it is far too long".to_owned(),
        }),
        false => Ok(text),
    }
}
