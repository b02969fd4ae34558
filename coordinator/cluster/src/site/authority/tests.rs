//! Connections that certificates permit, and the errors of those that they reject.

use std::sync::Arc;

use flitcast_node::handshake_limiter::Lease;
use flitcast_node::security::{Identity, Security, Transport};
use flitcast_proto::PeId;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;

const P1: Name = Name::Pe(PeId(1));
const P2: Name = Name::Pe(PeId(2));
const HOUR: Duration = Duration::from_secs(3600);

fn founded() -> (Authority, Vec<u8>) {
    let (authority, own) = Authority::found(HOUR).expect("it can be");
    (authority, own.certificate)
}

/// Issues credentials from `authority` for `name`, with `believed` as the trusted authority.
fn issued(authority: &Authority, name: Name, believed: &[u8]) -> IssuedCredentials {
    let issued = authority.issue(name, HOUR);
    issued.expect("it can be").believing(believed)
}

fn guarded(authority: &(Authority, Vec<u8>), name: Name) -> Security {
    let issued = issued(&authority.0, name, &authority.1);
    Security::Tls(Identity::issued(&issued, name).expect("it is good"))
}

/// Returns both ends of a TCP connection.
async fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("it can");
    let calling = TcpStream::connect(listener.local_addr().expect("it has one"));
    let (calling, answering) = tokio::join!(calling, listener.accept());
    (calling.expect("it can"), answering.expect("it can").0)
}

/// Returns a lease without competing connections.
fn lease() -> Lease {
    Lease::new(Duration::ZERO)
}

/// Connects `caller` to `to`, exchanges a byte, and returns the results of both ends.
async fn meeting(
    caller: &Security,
    to: Name,
    answerer: &Security,
) -> (Result<Transport, String>, Result<Transport, String>) {
    let (calling, answering) = connection().await;
    let call = async {
        let mut transport = caller.call(calling, to).await?;
        transport.write_all(b"x").await?;
        transport.flush().await?;
        // The answer, or the error about the certificate that was shown.
        transport.read_u8().await?;
        anyhow::Ok(transport)
    };
    let answer = async {
        let mut transport = answerer.answer(answering, &lease()).await?;
        transport.read_u8().await?;
        transport.write_all(b"y").await?;
        transport.flush().await?;
        anyhow::Ok(transport)
    };
    let (call, answer) = tokio::join!(call, answer);
    (with_message(call), with_message(answer))
}

fn with_message<T>(end: Result<T, impl std::fmt::Display>) -> Result<T, String> {
    end.map_err(|error| error.to_string())
}

#[track_caller]
fn refuses<T: std::fmt::Debug>(end: Result<T, String>, why: &str) {
    let message = end.expect_err(why);
    assert!(message.contains(why), "`{message}` does not say `{why}`");
}

#[tokio::test]
async fn processes_of_one_authority_authenticate_each_other() {
    let authority = founded();
    let (p1, p2) = (guarded(&authority, P1), guarded(&authority, P2));
    let (calling, answering) = meeting(&p2, P1, &p1).await;
    let (calling, answering) = (calling.expect("it may"), answering.expect("it may"));
    assert_eq!(answering.is_of(P2), Ok(()));
    let disguised = answering.is_of(P1).expect_err("it is P2");
    assert_eq!(disguised, "the certificate is for P2, not for P1");
    assert_eq!(calling.is_of(P1), Ok(()));
}

#[tokio::test]
async fn messages_are_encrypted_on_the_wire() {
    let authority = founded();
    let (p1, p2) = (guarded(&authority, P1), guarded(&authority, P2));
    let (calling, mut tap_above) = connection().await;
    let (mut tap_below, answering) = connection().await;
    let plaintext = b"what nobody else shall read, said often enough to be found".repeat(20);
    let sending = async {
        let mut transport = p2.call(calling, P1).await.expect("it may");
        transport.write_all(&plaintext).await.expect("it is open");
        transport.shutdown().await.expect("it is open");
    };
    let receiving = async {
        let mut received = Vec::new();
        let mut transport = p1.answer(answering, &lease()).await.expect("it may");
        transport
            .read_to_end(&mut received)
            .await
            .expect("it is open");
        received
    };
    let tap = async {
        let mut seen = Vec::new();
        let (mut from_above, mut to_above) = tap_above.split();
        let (mut from_below, mut to_below) = tap_below.split();
        let up = tokio::io::copy(&mut from_below, &mut to_above);
        let down = async {
            let mut block = [0; 4096];
            loop {
                let n = from_above.read(&mut block).await.expect("it is open");
                seen.extend_from_slice(&block[..n]);
                to_below.write_all(&block[..n]).await.expect("it is open");
                if n == 0 {
                    break to_below.shutdown().await.expect("it is open");
                }
            }
        };
        // The answering end closes its connection first, which ends the copy.
        let _ = tokio::join!(up, down);
        seen
    };
    let ((), received, seen) = tokio::join!(sending, receiving, tap);
    assert_eq!(received, plaintext);
    assert!(seen.len() > plaintext.len());
    assert!(!seen.windows(12).any(|window| window == &plaintext[..12]));
}

#[tokio::test]
async fn another_authority_is_refused() {
    let (ours, theirs) = (founded(), founded());
    let (p1, stranger) = (guarded(&ours, P1), guarded(&theirs, P2));
    let (calling, _) = meeting(&stranger, P1, &p1).await;
    refuses(calling, "the certificate was issued by another authority");
    // A client that accepts any server certificate is rejected, too.
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from(ours.1.clone());
    roots.add(root).expect("it is one");
    let shown = issued(&theirs.0, P2, &theirs.1);
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(shown.key.to_vec());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = || {
        let config = rustls::ClientConfig::builder_with_provider(provider.clone());
        let config = config.with_safe_default_protocol_versions().expect("both");
        config.with_root_certificates(roots.clone())
    };
    let certificate = CertificateDer::from(shown.certificate.to_vec());
    let disguised = config().with_client_auth_cert(vec![certificate], key.into());
    let bare = config().with_no_client_auth();
    for (config, why) in [
        (disguised.expect("it is one"), "issued by another authority"),
        (bare, "it shows no certificate"),
    ] {
        let (calling, answering) = connection().await;
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let name = P1.host().try_into().expect("it is one");
        let lease = lease();
        let answering = p1.answer(answering, &lease);
        let (_, answered) = tokio::join!(connector.connect(name, calling), answering);
        refuses(with_message(answered), why);
    }
}

#[tokio::test]
async fn the_answering_process_must_be_the_called_one() {
    let authority = founded();
    let (p1, p2) = (guarded(&authority, P1), guarded(&authority, P2));
    let (calling, answering) = meeting(&p2, Name::Coordinator, &p1).await;
    let refused = "the other end refuses this process: its certificate is for another one";
    refuses(
        calling,
        "the certificate is for P1, not for the coordinator",
    );
    refuses(answering, refused);
}

#[tokio::test]
async fn processes_without_certificates_are_refused() {
    let authority = founded();
    let p1 = guarded(&authority, P1);
    let (_, answering) = meeting(&Security::Plain, P1, &p1).await;
    refuses(answering, "what came is not TLS");
    let (calling, _) = meeting(&p1, P1, &Security::Plain).await;
    refuses(calling, "what came is not TLS");
}

#[test]
fn the_key_of_another_certificate_is_refused() {
    let authority = founded();
    let [one, other] = [0, 1].map(|_| issued(&authority.0, P1, &authority.1));
    let crossed = IssuedCredentials {
        key: other.key,
        ..one
    };
    let refused = with_message(Identity::issued(&crossed, P1));
    refuses(refused, "its private key belongs to another certificate");
}

#[tokio::test]
async fn an_expired_authority_is_refused() {
    let soon = Duration::from_secs(2);
    let (authority, own) = Authority::found(soon).expect("it can be");
    let authority = (authority, own.certificate);
    let (p1, p2) = (guarded(&authority, P1), guarded(&authority, P2));
    let deadline = SystemTime::now() + 10 * Duration::from_secs(2);
    let expired = "of the authority in ca.pem, the certificate expired on ";
    loop {
        // The certificate may expire between the checks of the two ends.
        let (calling, _) = meeting(&p2, P1, &p1).await;
        if calling.is_err_and(|why| why.contains(expired)) {
            break;
        }
        assert!(SystemTime::now() < deadline, "it has ended long ago");
    }
    let (_, answering) = connection().await;
    let answered = p1.answer(answering, &lease()).await;
    refuses(with_message(answered), expired);
}

#[test]
fn what_is_written_is_read() {
    let der: Vec<u8> = (0..=255)
        .cycle()
        .take(600)
        .map(|byte: u8| byte ^ 0x5a)
        .collect();
    for bytes in (1..100).chain([600]) {
        let text = pem("CERTIFICATE", &der[..bytes]);
        let read = CertificateDer::from_pem_slice(text.as_bytes()).unwrap();
        assert_eq!(read.as_ref(), &der[..bytes]);
        assert!(text.lines().all(|line| line.len() <= 64));
    }
}
