//! PEM (RFC 7468), the text form of keys, certificates and revocation lists.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Formats `der` between the lines that contain its label.
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
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;

    use super::*;

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
}
