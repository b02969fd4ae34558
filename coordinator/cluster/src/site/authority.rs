//! An authority that issues certificates: for one launch, or for a folder of `flitcast ca`.

use std::time::{Duration, SystemTime};

use flitcast_node::security::{Name, Revoked};
use flitcast_proto::wire::admission::IssuedCredentials;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    DistinguishedName, DnType, Error, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair,
    KeyUsagePurpose, RevokedCertParams, SerialNumber,
};

use crate::system::random::drawn;
use crate::text::pem::pem;

/// Tolerated difference between clocks: a certificate is valid from this time before its creation.
const CLOCKS_DIFFER: Duration = Duration::from_secs(24 * 3600);

/// The period in which a certificate is valid.
#[derive(Clone, Copy, Debug)]
pub struct Validity {
    from: SystemTime,
    until: SystemTime,
}

impl Validity {
    /// Returns the period from now, minus the tolerated difference of clocks, until `time` later.
    pub fn of(time: Duration) -> Validity {
        let now = SystemTime::now();
        Validity {
            from: now - CLOCKS_DIFFER,
            until: now + time,
        }
    }

    /// Shortens the period to end at `end` or before.
    fn within(self, end: SystemTime) -> Validity {
        let until = self.until.min(end);
        Validity { until, ..self }
    }

    fn put(self, params: &mut CertificateParams) {
        params.not_before = self.from.into();
        params.not_after = self.until.into();
    }
}

/// An authority: its key and the end of its validity. Its certificate follows from the key and from
/// the name that all authorities have.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    ends: SystemTime,
}

/// A certificate with its private key.
pub struct Issued {
    /// The certificate in DER.
    pub certificate: Vec<u8>,
    /// The private key.
    pub key: KeyPair,
    /// Serial number of the certificate.
    pub serial: Vec<u8>,
    /// End of the certificate's validity.
    pub until: SystemTime,
}

impl Issued {
    /// Returns the credentials of a process that trusts `authority`.
    fn believing(self, authority: &[u8]) -> IssuedCredentials {
        IssuedCredentials {
            authority: authority.to_vec().into(),
            certificate: self.certificate.into(),
            key: self.key.serialize_der().into(),
        }
    }
}

impl Authority {
    /// Creates an authority and its own certificate.
    pub fn found(validity: Validity) -> Result<(Authority, Issued), Error> {
        let (mut params, serial) = (authority_params(), serial()?);
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        let key = KeyPair::generate()?;
        validity.put(&mut params);
        let issuer = CertifiedIssuer::self_signed(params, &key)?;
        let certificate = issuer.der().to_vec();
        let known = KeyPair::try_from(key.serialized_der())?;
        let issued = Issued {
            certificate,
            key,
            serial,
            until: validity.until,
        };
        Ok((Authority::of_key(known, validity.until), issued))
    }

    /// Returns the authority with this key, whose certificate is valid until `ends`.
    pub fn of_key(key: KeyPair, ends: SystemTime) -> Authority {
        Authority {
            issuer: Issuer::new(authority_params(), key),
            ends,
        }
    }

    /// Returns the end of its validity.
    pub fn ends(&self) -> SystemTime {
        self.ends
    }

    /// Issues a certificate for `name`, valid at most as long as the authority.
    pub fn issue(&self, name: Name, validity: Validity) -> Result<Issued, Error> {
        let (validity, serial) = (validity.within(self.ends), serial()?);
        let mut params = CertificateParams::new(vec![name.host()])?;
        params.distinguished_name = called(&format!("Flitcast {name}"));
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        validity.put(&mut params);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // A PE accepts connections from its children and connects to its parent.
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Issued {
            certificate: certificate.der().to_vec(),
            key,
            serial,
            until: validity.until,
        })
    }

    /// Returns the revocation list in PEM. It is valid as long as the authority, because a new list
    /// is issued only for further revocations.
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
            // Each list must have a higher number than the one before.
            crl_number: SerialNumber::from(since.unwrap_or_default().as_millis() as u64),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = params.signed_by(&self.issuer)?;
        Ok(pem("X509 CRL", list.der()))
    }
}

/// Draws a serial number of 16 random bytes. The first byte is chosen so that the number is
/// positive and has no leading zero, and so is encoded unchanged.
fn serial() -> Result<Vec<u8>, Error> {
    let drawn = drawn::<16>().map_err(|_| Error::RingUnspecified)?;
    let mut serial = drawn.to_vec();
    serial[0] = serial[0] & 0x3f | 0x40;
    Ok(serial)
}

/// An authority for a single launch, with its own certificate.
pub struct Ephemeral {
    authority: Authority,
    certificate: Vec<u8>,
}

impl Ephemeral {
    /// Validity: the maximum time of a launch. Existing connections stay valid.
    const TIME: Duration = Duration::from_secs(24 * 3600);

    /// Creates an authority for a launch.
    pub fn new() -> Result<Ephemeral, Error> {
        let (authority, own) = Authority::found(Validity::of(Ephemeral::TIME))?;
        Ok(Ephemeral {
            authority,
            certificate: own.certificate,
        })
    }

    /// Issues the credentials of a process named `name`.
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
