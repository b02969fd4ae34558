//! Explanations of certificate errors for users.

use std::io;
use std::time::{Duration, UNIX_EPOCH};

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error};

use super::{Name, REVOKED_FILE};

/// Rewrites an error of a connection for users.
pub fn explained(error: io::Error) -> io::Error {
    explained_by(error, told)
}

/// Rewrites an error of a connection to `name` for users.
pub fn explained_of(error: io::Error, name: Name) -> io::Error {
    explained_by(error, |tls| told_of(tls, name))
}

fn explained_by(error: io::Error, told: impl Fn(&Error) -> String) -> io::Error {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(tls) => io::Error::new(error.kind(), told(tls)),
        None if error.kind() == io::ErrorKind::UnexpectedEof => io::Error::new(
            error.kind(),
            "it closed the connection while TLS was being agreed on",
        ),
        None => error,
    }
}

/// Explains an error of TLS in a connection to `name`, or in a check of its certificate.
pub fn told_of(error: &Error, name: Name) -> String {
    match error {
        Error::InvalidCertificate(CertificateError::Revoked) => {
            format!("the certificate of {name} was revoked")
        }
        other => told(other),
    }
}

/// Explains an error of TLS.
pub fn told(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(why) => about_certificate(why),
        Error::NoCertificatesPresented => "it shows no certificate".to_owned(),
        Error::InvalidCertRevocationList(_) => format!(
            "{REVOKED_FILE} beside it is no list of certificates that the authority in ca.pem has revoked"
        ),
        Error::InconsistentKeys(_) => "its private key belongs to another certificate".to_owned(),
        Error::AlertReceived(alert) => format!("the other end refuses us: {}", heard(*alert)),
        Error::InvalidMessage(_) => "what came is not TLS: the other end is no process of this \
             cluster, or was told to do without"
            .to_owned(),
        Error::DecryptError => {
            "what came was changed on the way: it cannot be decrypted".to_owned()
        }
        Error::PeerIncompatible(_) => "the other end does not speak TLS 1.3 with us".to_owned(),
        other => other.to_string(),
    }
}

fn about_certificate(error: &CertificateError) -> String {
    match error {
        CertificateError::Revoked => "the certificate was revoked".to_owned(),
        CertificateError::Expired => "the certificate has expired".to_owned(),
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("the certificate expired on {}", date(*not_after))
        }
        CertificateError::NotValidYet => "the certificate is not valid yet".to_owned(),
        CertificateError::NotValidYetContext { not_before, .. } => {
            let from = date(*not_before);
            format!("the certificate is not valid before {from}; are both clocks right?")
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the certificate was issued by another authority".to_owned()
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let expected = owner(&expected.to_str());
            let presented: Vec<String> = presented.iter().map(|name| presented_as(name)).collect();
            let presented = presented.join(", ");
            format!("the certificate is for {presented}, not for {expected}")
        }
        CertificateError::BadEncoding => "what should be a certificate is none".to_owned(),
        other => other.to_string(),
    }
}

/// Extracts the name from rustls' form `DnsName("p3.flitcast.internal")`.
fn presented_as(name: &str) -> String {
    let host = name.split('"').nth(1).unwrap_or(name);
    owner(host)
}

fn owner(host: &str) -> String {
    Name::of_host(host).map_or(host.to_owned(), |name| name.to_string())
}

fn heard(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::CertificateExpired => {
            "our certificate has expired, or is not valid yet by its clock".to_owned()
        }
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "our certificate was issued by another authority".to_owned()
        }
        AlertDescription::BadRecordMac => "what we sent was changed on the way".to_owned(),
        AlertDescription::CertificateRevoked => "our certificate was revoked".to_owned(),
        AlertDescription::CertificateRequired => "we showed no certificate".to_owned(),
        AlertDescription::BadCertificate => "our certificate is for somebody else".to_owned(),
        AlertDescription::ProtocolVersion => "it does not speak TLS 1.3".to_owned(),
        other => format!("{other:?}"),
    }
}

fn date(time: UnixTime) -> String {
    let time = UNIX_EPOCH + Duration::from_secs(time.as_secs());
    humantime::format_rfc3339_seconds(time).to_string()
}
