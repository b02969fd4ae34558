//! Protected connections with an end of the TLS library, in each role and with each algorithm, and
//! records that were changed on the way.

use flitcast_proto::seeded::SplitMix64;
use proptest::prelude::*;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::{ConnectionTrafficSecrets, Error, RootCertStore, SupportedCipherSuite};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use super::records::{ContentType, MAX_CONTENT_BYTES, OVERHEAD_BYTES, Opened, RecordKey};
use super::*;

const COORDINATOR: Name = Name::Coordinator;

/// Returns credentials for the coordinator, which are enough for both ends.
fn credentials() -> IssuedCredentials {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let certificate = authority.self_signed(&key).expect("a certificate");
    let issuer = Issuer::new(authority, key);
    let mut params = CertificateParams::new(vec![COORDINATOR.host()]).expect("a name");
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let key = KeyPair::generate().expect("a key");
    let issued = params.signed_by(&key, &issuer).expect("a certificate");
    IssuedCredentials {
        authority: certificate.der().to_vec().into(),
        certificate: issued.der().to_vec().into(),
        key: key.serialize_der().into(),
    }
}

/// Returns the library's configurations of a client and a server with one algorithm.
fn library(issued: &IssuedCredentials, suite: SupportedCipherSuite) -> (TlsConnector, TlsAcceptor) {
    let provider = Arc::new(CryptoProvider {
        cipher_suites: vec![suite],
        ..rustls::crypto::ring::default_provider()
    });
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from(issued.authority.to_vec());
    roots.add(root).expect("a root");
    let key = || PrivateKeyDer::from(PrivatePkcs8KeyDer::from(issued.key.to_vec()));
    let chain = || vec![CertificateDer::from(issued.certificate.to_vec())];
    let client = ClientConfig::builder_with_provider(provider.clone());
    let client = client.with_protocol_versions(&[&rustls::version::TLS13]);
    let client = client.expect("TLS 1.3").with_root_certificates(roots);
    let client = client.with_client_auth_cert(chain(), key());
    let server = ServerConfig::builder_with_provider(provider);
    let server = server.with_protocol_versions(&[&rustls::version::TLS13]);
    let server = server.expect("TLS 1.3").with_no_client_auth();
    let server = server.with_single_cert(chain(), key());
    (
        Arc::new(client.expect("a client")).into(),
        Arc::new(server.expect("a server")).into(),
    )
}

/// Returns numbers below `limit` that look random.
fn numbers(limit: u64) -> impl Iterator<Item = usize> {
    let mut random = SplitMix64::new(17);
    std::iter::repeat_with(move || random.below(limit) as usize)
}

/// Returns the bytes of one direction.
fn text(bytes: usize) -> Vec<u8> {
    numbers(256).take(bytes).map(|byte| byte as u8).collect()
}

const BYTES: usize = 600_000;

/// Sends all bytes in parts of many lengths; `before` is called before each part.
async fn send<S: AsyncWrite + Unpin>(stream: &mut S, mut before: impl FnMut(&mut S)) {
    let text = text(BYTES);
    let (mut left, mut lengths) = (&text[..], numbers(70_000));
    while !left.is_empty() {
        before(stream);
        let length = lengths.next().expect("it is endless");
        let (now, later) = left.split_at(length.min(left.len()));
        let (first, second) = now.split_at(now.len() / 3);
        let slices = [first, &[], second].map(io::IoSlice::new);
        let sent = stream.write_vectored(&slices).await.expect("it is open");
        stream.write_all(&now[sent..]).await.expect("it is open");
        left = later;
    }
    stream.flush().await.expect("it is open");
}

async fn receives(stream: &mut (impl AsyncRead + Unpin)) {
    let mut received = vec![0; BYTES];
    stream.read_exact(&mut received).await.expect("all arrives");
    assert!(received == text(BYTES));
}

#[tokio::test]
async fn each_algorithm_carries_bytes_to_and_from_the_library_with_new_keys_on_the_way() {
    let issued = credentials();
    let ours = Identity::issued(&issued, COORDINATOR).expect("an identity");
    let ours = Security::Tls(ours);
    let lease = Lease::new(std::time::Duration::ZERO);
    for suite in rustls::crypto::ring::default_provider().cipher_suites {
        if suite.tls13().is_none() {
            continue;
        }
        let (connector, acceptor) = library(&issued, suite);
        for we_call in [true, false] {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let calling = TcpStream::connect(listener.local_addr().expect("an address"));
            let (calling, (called, _)) =
                tokio::try_join!(calling, listener.accept()).expect("both");
            let (mut one, mut other): (Transport, TlsStream<TcpStream>) = match we_call {
                true => {
                    let accepted = async { Ok(acceptor.accept(called).await?.into()) };
                    tokio::try_join!(ours.call(calling, COORDINATOR), accepted).expect("both")
                }
                false => {
                    let name = COORDINATOR.on_certificates();
                    // What follows the handshake at once arrives with its end.
                    let connected = async {
                        let mut stream = connector.connect(name, calling).await?;
                        stream.write_all(&text(10)).await?;
                        stream.write_all(&text(20_000)).await?;
                        stream.flush().await?;
                        Ok(stream.into())
                    };
                    tokio::try_join!(ours.answer(called, &lease), connected).expect("both")
                }
            };
            if !we_call {
                let mut received = vec![0; 20_010];
                one.read_exact(&mut received).await.expect("all arrives");
                assert!(received == [text(10), text(20_000)].concat());
            }
            one.set_most_records(5);
            send(&mut one, |_| {}).await;
            receives(&mut other).await;
            let refresh = |stream: &mut TlsStream<TcpStream>| {
                let refreshed = match stream {
                    TlsStream::Client(stream) => stream.get_mut().1.refresh_traffic_keys(),
                    TlsStream::Server(stream) => stream.get_mut().1.refresh_traffic_keys(),
                };
                refreshed.expect("it can");
            };
            tokio::join!(send(&mut other, refresh), receives(&mut one));
            send(&mut one, |_| {}).await;
            receives(&mut other).await;
            one.shutdown().await.expect("it is open");
            assert_eq!(other.read(&mut [0]).await.expect("a proper end"), 0);
        }
    }
}

/// Returns the two ends' keys of one direction.
fn keys() -> [RecordKey; 2] {
    [(); 2].map(|()| {
        let secrets = ConnectionTrafficSecrets::Aes256Gcm {
            key: [7; 32].into(),
            iv: [9; 12].into(),
        };
        RecordKey::new((0, secrets)).expect("a key")
    })
}

fn sealed(key: &mut RecordKey, content: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    let append = |out: &mut Vec<u8>| out.extend(content);
    key.seal(ContentType::Data, &mut record, append);
    record
}

proptest! {
    #[test]
    fn a_record_is_opened_as_it_was_sealed_or_not_at_all(
        content in proptest::collection::vec(any::<u8>(), 0..300),
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let [mut sending, mut receiving] = keys();
        let record = sealed(&mut sending, &content);
        prop_assert_eq!(record.len(), content.len() + OVERHEAD_BYTES);
        for bytes in 0..record.len() {
            let mut part = record[..bytes].to_vec();
            prop_assert_eq!(receiving.open(&mut part).expect("it may go on"), None);
        }
        let mut whole = record.clone();
        let opened = receiving.open(&mut whole).expect("it is good").expect("it is whole");
        let Opened { kind, content: place, bytes } = opened;
        prop_assert_eq!((kind, bytes), (ContentType::Data, record.len()));
        prop_assert_eq!(&whole[place], &content[..]);

        let mut changed = record.clone();
        changed[at.index(record.len())] ^= 1 << bit;
        // A longer length has the rest awaited.
        let [_, mut receiving] = keys();
        prop_assert!(!matches!(receiving.open(&mut changed), Ok(Some(_))));
    }
}

#[test]
fn records_are_opened_once_and_in_order() {
    let [mut sending, mut receiving] = keys();
    let [first, second] = ["first", "second"].map(|text| sealed(&mut sending, text.as_bytes()));
    let open = |key: &mut RecordKey, record: &[u8]| key.open(&mut record.to_vec());
    assert!(open(&mut receiving, &first).is_ok());
    assert_eq!(open(&mut receiving, &first), Err(Error::DecryptError));
    let [_, mut receiving] = keys();
    assert_eq!(open(&mut receiving, &second), Err(Error::DecryptError));
}

#[test]
fn a_record_is_no_longer_than_the_standard_permits() {
    let [mut sending, mut receiving] = keys();
    let mut longest = sealed(&mut sending, &[1; MAX_CONTENT_BYTES]);
    assert!(matches!(receiving.open(&mut longest), Ok(Some(_))));
    let mut head = [23, 3, 3, 0x41, 1];
    assert_eq!(
        receiving.open(&mut head),
        Err(Error::PeerSentOversizedRecord)
    );
}
