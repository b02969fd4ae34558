//! Who is at the other end of a connection, and that nobody else reads it or writes to
//! it: TLS 1.3, with a certificate on both sides that one authority has issued for one
//! name. What is said over it is not this module's business, nor is issuing.

mod explain;
mod name;
mod read_ahead;
mod transport;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flitcast_proto::wire::admission::IssuedCredentials;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::{Acceptor, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::{LazyConfigAcceptor, TlsConnector};

use crate::door::Lease;
use crate::limits::ROUND_TRIP;
use explain::{explained, told};
pub use name::Name;
use read_ahead::ReadAhead;
pub use transport::{Shown, Transport};

/// Of the authority's certificate, in a folder of credentials.
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
}

impl Identity {
    /// What who started this process has issued for it.
    ///
    /// # Errors
    ///
    /// It is not for `name`, or not good now.
    pub fn issued(issued: &IssuedCredentials, name: Name) -> Result<Identity, SecurityError> {
        let authority = vec![CertificateDer::from(issued.authority.to_vec())];
        let certificate = vec![CertificateDer::from(issued.certificate.to_vec())];
        let key = PrivatePkcs8KeyDer::from(issued.key.to_vec());
        let what = format!("the certificate issued for {name}");
        Identity::new(authority, certificate, key.into(), name, &what)
    }

    /// What `folder` has for a process: `ca.pem`, and `p3.pem` with `p3.key` for P3.
    ///
    /// # Errors
    ///
    /// A file is not there, others can read the key, or the certificate is not for
    /// `name` or not good now.
    pub fn load(folder: &Path, name: Name) -> Result<Identity, SecurityError> {
        let authority = certificates(&folder.join(AUTHORITY_FILE))?;
        let path = folder.join(name.certificate_file());
        let certificate = certificates(&path)?;
        let key = private_key(&folder.join(name.key_file()))?;
        let what = path.display().to_string();
        Identity::new(authority, certificate, key, name, &what)
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
        authority: Vec<CertificateDer<'static>>,
        certificate: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        name: Name,
        what: &str,
    ) -> Result<Identity, SecurityError> {
        let unfit = |why: String| SecurityError::Unfit {
            what: what.to_owned(),
            why,
        };
        let refused = |error: rustls::Error| unfit(told(&error));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        for certificate in authority {
            roots.add(certificate).map_err(refused)?;
        }
        let roots = Arc::new(roots);
        let servers = WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone());
        let servers = servers.build().map_err(|e| unfit(e.to_string()))?;
        let clients = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
        let clients = clients.build().map_err(|e| unfit(e.to_string()))?;
        let (own, chain) = certificate
            .split_first()
            .ok_or_else(|| unfit("there is no certificate".to_owned()))?;
        servers
            .verify_server_cert(own, chain, &name.on_certificates(), &[], UnixTime::now())
            .map_err(refused)?;
        let versions = &[&rustls::version::TLS13];
        let client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .map_err(refused)?
            .with_webpki_verifier(servers)
            .with_client_auth_cert(certificate.clone(), key.clone_key())
            .map_err(refused)?;
        let server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(refused)?
            .with_client_cert_verifier(clients)
            .with_single_cert(certificate, key)
            .map_err(refused)?;
        Ok(Identity {
            client: Arc::new(client),
            server: Arc::new(server),
        })
    }
}

impl Identity {
    async fn answer(&self, stream: TcpStream, lease: &Lease) -> io::Result<Transport> {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), ReadAhead::new(stream));
        let hello = hello.await.map_err(explained)?;
        lease.renew(ROUND_TRIP);
        let secured = hello.into_stream(self.server.clone()).await;
        let secured = secured.map_err(explained)?;
        lease.settle();
        Ok(Transport::tls(secured.into()))
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
                let connector = TlsConnector::from(identity.client.clone());
                let stream = ReadAhead::new(stream);
                let secured = connector.connect(to.on_certificates(), stream).await;
                secured
                    .map(|stream| Transport::tls(stream.into()))
                    .map_err(explained)
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
    let is_handed = metadata.uid() == 0 && !rustix::process::geteuid().is_root();
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
