//! An authority that issues certificates: for one launch, or for a folder of `flitcast ca`.

use std::time::{Duration, SystemTime};

use flitcast_node::security::{Name, Revoked};
use flitcast_proto::wire::admission::IssuedCredentials;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    DistinguishedName, DnType, Error, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair,
    KeyUsagePurpose, RevokedCertParams, SerialNumber,
};

use crate::system::process::drawn;

/// Tolerated difference between clocks: a certificate is valid from this time before its creation.
const CLOCKS_DIFFER: Duration = Duration::from_secs(24 * 3600);

/// Makes a certificate valid from now, minus the tolerated difference of clocks, for a time, but not beyond
/// `latest`. Returns the end.
fn put_validity(
    params: &mut CertificateParams,
    time: Duration,
    latest: Option<SystemTime>,
) -> SystemTime {
    let now = SystemTime::now();
    let until = latest.map_or(now + time, |latest| latest.min(now + time));
    params.not_before = (now - CLOCKS_DIFFER).into();
    params.not_after = until.into();
    until
}

/// An authority: its key and the end of its validity. Its certificate follows from the key and from
/// the name that all authorities have.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    ends: SystemTime,
}

pub struct Issued {
    /// The certificate in DER.
    pub certificate: Vec<u8>,
    pub key: KeyPair,
    pub serial: Vec<u8>,
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
    pub fn found(time: Duration) -> Result<(Authority, Issued), Error> {
        let (mut params, serial) = (authority_params(), serial()?);
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        let key = KeyPair::generate()?;
        let until = put_validity(&mut params, time, None);
        let issuer = CertifiedIssuer::self_signed(params, &key)?;
        let certificate = issuer.der().to_vec();
        let known = KeyPair::try_from(key.serialized_der())?;
        let issued = Issued {
            certificate,
            key,
            serial,
            until,
        };
        Ok((Authority::of_key(known, until), issued))
    }

    /// Returns the authority with this key, whose certificate is valid until `ends`.
    pub fn of_key(key: KeyPair, ends: SystemTime) -> Authority {
        Authority {
            issuer: Issuer::new(authority_params(), key),
            ends,
        }
    }

    pub fn ends(&self) -> SystemTime {
        self.ends
    }

    /// Issues a certificate for `name`, valid at most as long as the authority.
    pub fn issue(&self, name: Name, time: Duration) -> Result<Issued, Error> {
        let serial = serial()?;
        let mut params = CertificateParams::new(vec![name.host()])?;
        params.distinguished_name = called(&format!("Flitcast {name}"));
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        let until = put_validity(&mut params, time, Some(self.ends));
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
            until,
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
        let (authority, own) = Authority::found(Ephemeral::TIME)?;
        Ok(Ephemeral {
            authority,
            certificate: own.certificate,
        })
    }

    pub fn credentials(&self, name: Name) -> Result<IssuedCredentials, Error> {
        let issued = self.authority.issue(name, Ephemeral::TIME)?;
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

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Formats `der` as PEM (RFC 7468) between the lines that contain its label.
pub fn pem(label: &str, der: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in der.chunks(48) {
        for bytes in line.chunks(3) {
            let mut group = [0; 4];
            group[1..=bytes.len()].copy_from_slice(bytes);
            let group = u32::from_be_bytes(group);
            for digit in 0..4 {
                let value = (group >> (18 - 6 * digit)) & 63;
                text.push(match digit <= bytes.len() {
                    true => char::from(DIGITS[value as usize]),
                    false => '=',
                });
            }
        }
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}

#[cfg(test)]
mod tests;
