//! Explanations of certificate errors for users.

use std::io;
use std::time::{Duration, UNIX_EPOCH};

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error};

use super::Name;
use super::peer_verifier::{NO_LIST, REVOKED_FILE};
use crate::dates;

/// Rewrites an error of a connection, to a process that may be known, for users.
pub fn explained(error: io::Error, of: Option<Name>) -> io::Error {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(tls) => io::Error::new(error.kind(), describe(tls, of)),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            let why = "it closed the connection while TLS was being agreed on";
            io::Error::new(error.kind(), why)
        }
        None => error,
    }
}

/// Explains an error of TLS in a connection to a process, or in a check of its certificate.
pub fn describe(error: &Error, of: Option<Name>) -> String {
    let why = match error {
        Error::InvalidCertificate(why) => return about_certificate(why, of),
        Error::AlertReceived(alert) => {
            return format!(
                "the other end refuses this process: {}",
                describe_alert(*alert)
            );
        }
        Error::InvalidCertRevocationList(_) => {
            return format!("{REVOKED_FILE} beside it {NO_LIST}");
        }
        Error::NoCertificatesPresented => "it shows no certificate",
        Error::InconsistentKeys(_) => "its private key belongs to another certificate",
        Error::InvalidMessage(_) => {
            "what came is not TLS: the other end is no process of this cluster, or was told to do \
             without"
        }
        Error::DecryptError => "what came was changed on the way: it cannot be decrypted",
        Error::PeerIncompatible(_) => "the other end does not speak TLS 1.3 with us",
        other => return other.to_string(),
    };
    why.to_owned()
}

fn about_certificate(error: &CertificateError, of: Option<Name>) -> String {
    match error {
        CertificateError::Revoked => match of {
            Some(name) => format!("the certificate of {name} was revoked"),
            None => "the certificate was revoked".to_owned(),
        },
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
            // Each in rustls' form `DnsName("p3.flitcast.internal")`.
            let presented = presented.iter();
            let hosts = presented.map(|name| name.split('"').nth(1).unwrap_or(name));
            let presented = hosts.map(owner).collect::<Vec<_>>().join(", ");
            format!("the certificate is for {presented}, not for {expected}")
        }
        CertificateError::BadEncoding => "what should be a certificate is none".to_owned(),
        other => other.to_string(),
    }
}

fn owner(host: &str) -> String {
    Name::of_host(host).map_or(host.to_owned(), |name| name.to_string())
}

fn describe_alert(alert: AlertDescription) -> String {
    let why = match alert {
        AlertDescription::CertificateExpired => {
            "its certificate has expired or is not valid yet, by the clock of the other end"
        }
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "its certificate was issued by another authority"
        }
        AlertDescription::BadRecordMac => "what it sent was changed on the way",
        AlertDescription::CertificateRevoked => "its certificate was revoked",
        AlertDescription::CertificateRequired => "it showed no certificate",
        AlertDescription::BadCertificate => "its certificate is for another one",
        AlertDescription::ProtocolVersion => "both ends support different versions of TLS",
        other => return format!("{other:?}"),
    };
    why.to_owned()
}

fn date(time: UnixTime) -> String {
    let time = UNIX_EPOCH + Duration::from_secs(time.as_secs());
    dates::text(time)
}
