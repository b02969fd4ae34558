//! The names in certificates.

use std::fmt;

use flitcast_proto::PeId;
use rustls::pki_types::{DnsName, ServerName};

/// The name of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// The process that launches, triggers and measures.
    Coordinator,
    /// A process that runs a PE.
    Pe(PeId),
}

impl Name {
    /// Returns a host name below a domain that is reserved for private use (`internal`, by RFC 9476 and
    /// ICANN), since certificates are checked against host names.
    pub fn host(self) -> String {
        format!("{}.flitcast.internal", self.stem())
    }

    /// Returns the name that a certificate must have.
    pub(super) fn on_certificates(self) -> ServerName<'static> {
        let host = DnsName::try_from(self.host());
        ServerName::DnsName(host.expect("letters, digits and dots"))
    }

    /// Returns the file of the certificate, in a folder of credentials.
    pub fn certificate_file(self) -> String {
        format!("{}.pem", self.stem())
    }

    /// Returns the file of its private key.
    pub fn key_file(self) -> String {
        format!("{}.key", self.stem())
    }

    fn stem(self) -> String {
        match self {
            Name::Coordinator => "coordinator".to_owned(),
            Name::Pe(pe) => format!("p{}", pe.0),
        }
    }

    /// Returns the process that a host name in a certificate means, if any.
    pub(super) fn of_host(host: &str) -> Option<Name> {
        let stem = host.strip_suffix(".flitcast.internal")?;
        match stem.strip_prefix('p') {
            Some(number) => number.parse().ok().map(|pe| Name::Pe(PeId(pe))),
            None => (stem == "coordinator").then_some(Name::Coordinator),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Coordinator => f.write_str("the coordinator"),
            Name::Pe(pe) => pe.fmt(f),
        }
    }
}
