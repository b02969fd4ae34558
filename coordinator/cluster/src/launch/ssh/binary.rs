//! The copy of the program on a host. Its name contains the version and a hash of its content, so
//! two builds are two files, and no file is replaced while it runs.
//!
//! A host runs the copy only if the file and its folder belong to the user, no other user can write
//! them, and its hash matches its name. The parents of the folder are not checked.

use std::io;
use std::path::Path;

use flitcast_node::system::children::PROGRAM;
use flitcast_node::system::regular;
use std::sync::OnceLock;

use ring::digest::{SHA256, digest};
use twox_hash::XxHash3_128;

/// Maximum length of a program that is copied to hosts: several times one with all debug
/// information.
const MAX_BYTES: u64 = 1 << 30;

/// The program that hosts run.
pub struct Binary {
    pub content: Vec<u8>,
    /// Hash of the content, in hexadecimal digits.
    pub hash: String,
    /// The system that the program is built for, as `uname -s` and `uname -m` print it, if known.
    pub system: Option<String>,
    sha256: OnceLock<String>,
}

impl Binary {
    pub fn read(path: &Path) -> io::Result<Binary> {
        let content = regular::read_file(path, MAX_BYTES)?;
        let system = machine(&content).map(|machine| format!("Linux {machine}"));
        Ok(Binary::new(hash(&content), system, content))
    }

    /// Creates a binary from content that has been read.
    pub fn new(hash: String, system: Option<String>, content: Vec<u8>) -> Binary {
        Binary {
            content,
            hash,
            system,
            sha256: OnceLock::new(),
        }
    }

    /// Returns the SHA-256 in hexadecimal digits, which protects against a forged copy. It is
    /// computed once, and only if hosts copy the program from each other.
    pub fn sha256(&self) -> &str {
        self.sha256.get_or_init(|| {
            let digest = digest(&SHA256, &self.content);
            let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
            digits.collect()
        })
    }

    /// Returns the file name of the copy on a host.
    pub fn name(&self) -> String {
        format!("flitcast-{}-{}", env!("CARGO_PKG_VERSION"), self.hash)
    }
}

pub fn own_hash() -> io::Result<String> {
    std::fs::read(PROGRAM).map(|content| hash(&content))
}

/// Returns half of an XXH3-128 digest. It detects accidents only; an attacker who can write to the
/// folder can do worse.
fn hash(content: &[u8]) -> String {
    format!("{:016x}", (XxHash3_128::oneshot(content) >> 64) as u64)
}

/// Returns the machine that the program is built for, from its ELF header.
fn machine(content: &[u8]) -> Option<&'static str> {
    let header = content.get(..20)?;
    if !header.starts_with(b"\x7fELF") {
        return None;
    }
    match u16::from_le_bytes([header[18], header[19]]) {
        62 => Some("x86_64"),
        183 => Some("aarch64"),
        243 => Some("riscv64"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_binary_is_for_this_machine() {
        let own = Binary::read(Path::new(PROGRAM)).unwrap();
        let system = format!("Linux {}", std::env::consts::ARCH);
        assert_eq!(own.system, Some(system));
        assert_eq!(own.hash, own_hash().unwrap());
        assert_eq!(own.hash.len(), 16);
        assert!(own.name().ends_with(&own.hash));
    }

    #[test]
    fn files_that_are_no_programs_have_no_machine() {
        for content in [
            &b""[..],
            b"\x7fELF",
            b"#!/bin/sh\necho a script of some length",
        ] {
            assert_eq!(machine(content), None);
        }
    }
}
