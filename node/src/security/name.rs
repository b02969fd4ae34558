//! Whom a certificate is for.

use std::fmt;

use flitcast_proto::PeId;
use rustls::pki_types::{DnsName, ServerName};

/// Who a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// The one that launches, triggers and measures.
    Coordinator,
    /// One that plays a PE.
    Pe(PeId),
}

impl Name {
    /// As a host's name below a domain that nobody has (RFC 9476 and ICANN keep
    /// `internal` for such), since certificates are checked against those.
    pub fn host(self) -> String {
        format!("{}.flitcast.internal", self.stem())
    }

    /// What a certificate must be for.
    pub(super) fn on_certificates(self) -> ServerName<'static> {
        let host = DnsName::try_from(self.host());
        ServerName::DnsName(host.expect("letters, digits and dots"))
    }

    /// The file of the certificate, in a folder of credentials.
    pub fn certificate_file(self) -> String {
        format!("{}.pem", self.stem())
    }

    /// The file of its private key.
    pub fn key_file(self) -> String {
        format!("{}.key", self.stem())
    }

    fn stem(self) -> String {
        match self {
            Name::Coordinator => "coordinator".to_owned(),
            Name::Pe(pe) => format!("p{}", pe.0),
        }
    }

    /// Who it is that a host's name on a certificate means, if anybody.
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
