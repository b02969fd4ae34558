//! Issues certificates: for one launch, or for a folder that `flitcast ca` keeps.

use std::time::{Duration, SystemTime};

use flitcast_node::security::{Name, Revoked};
use flitcast_proto::wire::admission::IssuedCredentials;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    DistinguishedName, DnType, Error, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair,
    KeyUsagePurpose, RevokedCertParams, SerialNumber,
};

use crate::system::random::drawn;

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

    /// No longer than `end`.
    fn within(self, end: SystemTime) -> Validity {
        let until = self.until.min(end);
        Validity { until, ..self }
    }

    fn put(self, params: &mut CertificateParams) {
        params.not_before = self.from.into();
        params.not_after = self.until.into();
    }
}

/// Who issues certificates: its key, and nothing that was parsed. The certificate of the
/// authority follows from the key and the name that all authorities have; only when it ends
/// has to be told.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    ends: SystemTime,
}

/// A certificate with its private key.
pub struct Issued {
    /// In DER.
    pub certificate: Vec<u8>,
    /// In PEM.
    pub pem: String,
    /// Its key.
    pub key: KeyPair,
    /// Its number.
    pub serial: Vec<u8>,
    /// How long it is good.
    pub until: SystemTime,
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
        let (mut params, serial) = (authority_params(), serial()?);
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        let key = KeyPair::generate()?;
        validity.put(&mut params);
        let issuer = CertifiedIssuer::self_signed(params, &key)?;
        let (certificate, pem) = (issuer.der().to_vec(), issuer.pem());
        let known = KeyPair::try_from(key.serialized_der())?;
        let issued = Issued {
            certificate,
            pem,
            key,
            serial,
            until: validity.until,
        };
        Ok((Authority::of_key(known, validity.until), issued))
    }

    /// The one that has this key, and ends then.
    pub fn of_key(key: KeyPair, ends: SystemTime) -> Authority {
        Authority {
            issuer: Issuer::new(authority_params(), key),
            ends,
        }
    }

    /// When it ends.
    pub fn ends(&self) -> SystemTime {
        self.ends
    }

    /// A certificate for `name`, good no longer than the authority itself.
    pub fn issue(&self, name: Name, validity: Validity) -> Result<Issued, Error> {
        let (validity, serial) = (validity.within(self.ends), serial()?);
        let mut params = CertificateParams::new(vec![name.host()])?;
        params.distinguished_name = called(&format!("Flitcast {name}"));
        params.serial_number = Some(SerialNumber::from_slice(&serial));
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
            serial,
            until: validity.until,
        })
    }

    /// A list of what it has revoked, in PEM. There is none after it, but when more is
    /// revoked; so it holds as long as the authority.
    pub fn revoke(&self, list: &[Revoked], now: SystemTime) -> Result<String, Error> {
        let revoked = list.iter().map(|one| RevokedCertParams {
            serial_number: SerialNumber::from_slice(&one.serial),
            revocation_time: one.since.into(),
            reason_code: None,
            invalidity_date: None,
        });
        let since = now.duration_since(SystemTime::UNIX_EPOCH);
        let params = CertificateRevocationListParams {
            this_update: now.into(),
            next_update: self.ends.into(),
            // Each has to have a higher one than the last.
            crl_number: SerialNumber::from(since.unwrap_or_default().as_millis() as u64),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer)?.pem()
    }
}

/// A number that no other certificate has: 16 bytes, of which the first is such that they are
/// encoded as they are.
fn serial() -> Result<Vec<u8>, Error> {
    let drawn = drawn::<16>().map_err(|_| Error::RingUnspecified)?;
    let mut serial = drawn.to_vec();
    serial[0] = serial[0] & 0x3f | 0x40;
    Ok(serial)
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
