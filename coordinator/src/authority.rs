//! Issues certificates: for one launch, or for a folder that `flitcast ca` keeps.

use std::time::{Duration, SystemTime};

use flitcast_node::security::Name;
use flitcast_proto::wire::admission::IssuedCredentials;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, Error,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};

/// Clocks may differ by so much for a certificate to be good at once everywhere.
const CLOCKS_DIFFER: Duration = Duration::from_secs(24 * 3600);

/// When a certificate is good.
#[derive(Clone, Copy, Debug)]
pub struct Validity {
    from: SystemTime,
    until: SystemTime,
}

impl Validity {
    /// From now on, by anybody's clock.
    pub fn of(time: Duration) -> Validity {
        let now = SystemTime::now();
        Validity {
            from: now - CLOCKS_DIFFER,
            until: now + time,
        }
    }

    fn put(self, params: &mut CertificateParams) {
        params.not_before = self.from.into();
        params.not_after = self.until.into();
    }
}

/// Who issues certificates: its key, and nothing that was parsed. The certificate of the
/// authority follows from the key and the name that all authorities have.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its private key.
pub struct Issued {
    /// In DER.
    pub certificate: Vec<u8>,
    /// In PEM.
    pub pem: String,
    /// Its key.
    pub key: KeyPair,
}

impl Issued {
    /// All that a process needs that believes an authority.
    fn believing(self, authority: &[u8]) -> IssuedCredentials {
        IssuedCredentials {
            authority: authority.to_vec().into(),
            certificate: self.certificate.into(),
            key: self.key.serialize_der().into(),
        }
    }
}

impl Authority {
    /// A new one, and its certificate.
    pub fn found(validity: Validity) -> Result<(Authority, Issued), Error> {
        let mut params = authority_params();
        let key = KeyPair::generate()?;
        validity.put(&mut params);
        let issuer = CertifiedIssuer::self_signed(params, &key)?;
        let (certificate, pem) = (issuer.der().to_vec(), issuer.pem());
        let known = KeyPair::try_from(key.serialized_der())?;
        let issued = Issued {
            certificate,
            pem,
            key,
        };
        Ok((Authority::of_key(known), issued))
    }

    /// The one that has this key.
    pub fn of_key(key: KeyPair) -> Authority {
        Authority {
            issuer: Issuer::new(authority_params(), key),
        }
    }

    /// A certificate for `name`.
    pub fn issue(&self, name: Name, validity: Validity) -> Result<Issued, Error> {
        let mut params = CertificateParams::new(vec![name.host()])?;
        params.distinguished_name = called(&format!("Flitcast {name}"));
        validity.put(&mut params);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // A PE is called by its children and calls its parent.
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Issued {
            certificate: certificate.der().to_vec(),
            pem: certificate.pem(),
            key,
        })
    }
}

/// An authority that lives as long as one launch, and what it has issued for itself.
pub struct Ephemeral {
    authority: Authority,
    certificate: Vec<u8>,
}

impl Ephemeral {
    /// For as long as a launch may take: who is connected stays connected.
    const TIME: Duration = Duration::from_secs(24 * 3600);

    /// A new one.
    pub fn new() -> Result<Ephemeral, Error> {
        let (authority, own) = Authority::found(Validity::of(Ephemeral::TIME))?;
        Ok(Ephemeral {
            authority,
            certificate: own.certificate,
        })
    }

    /// All that a process needs to show that it is `name`.
    pub fn credentials(&self, name: Name) -> Result<IssuedCredentials, Error> {
        let issued = self.authority.issue(name, Validity::of(Ephemeral::TIME))?;
        Ok(issued.believing(&self.certificate))
    }
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = called("Flitcast cluster authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

#[cfg(test)]
mod tests;
