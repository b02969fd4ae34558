//! The program as it is put on a host: under a name that has its version and a hash of its
//! content, so that two builds are two files, and none is ever replaced while it runs.
//!
//! It is run only if it and its folder are the user's own and nobody else can write them, and if its
//! hash is what its name says. Folders above are not looked at.

use std::io;
use std::path::Path;

use flitcast_node::system::children::PROGRAM;
use std::sync::OnceLock;

use ring::digest::{SHA256, digest};
use xxhash_rust::xxh3::xxh3_128;

/// What a host runs.
pub struct Binary {
    /// All of it.
    pub content: Vec<u8>,
    /// Hexadecimal digits that tell it from others.
    pub hash: String,
    /// The machine it is for, as `uname -s` and `uname -m` call it, if that can be seen.
    pub system: Option<String>,
    sha256: OnceLock<String>,
}

impl Binary {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn read(path: &Path) -> io::Result<Binary> {
        let content = std::fs::read(path)?;
        let system = machine(&content).map(|machine| format!("Linux {machine}"));
        Ok(Binary::new(hash(&content), system, content))
    }

    /// One that has been read.
    pub fn new(hash: String, system: Option<String>, content: Vec<u8>) -> Binary {
        Binary {
            content,
            hash,
            system,
            sha256: OnceLock::new(),
        }
    }

    /// Its SHA-256 in hexadecimal digits, against whoever hands out another: worked out once,
    /// and only where hosts take it from each other.
    pub fn sha256(&self) -> &str {
        self.sha256.get_or_init(|| {
            let digest = digest(&SHA256, &self.content);
            let digits = digest.as_ref().iter().map(|byte| format!("{byte:02x}"));
            digits.collect()
        })
    }

    /// What it is called on a host.
    pub fn name(&self) -> String {
        format!("flitcast-{}-{}", env!("CARGO_PKG_VERSION"), self.hash)
    }
}

/// The hash of the program that runs.
///
/// # Errors
///
/// It cannot be read.
pub fn own_hash() -> io::Result<String> {
    std::fs::read(PROGRAM).map(|content| hash(&content))
}

/// Half of an XXH3-128, against accidents: who can write there can do worse.
fn hash(content: &[u8]) -> String {
    format!("{:016x}", (xxh3_128(content) >> 64) as u64)
}

/// For which machine it is, by its ELF header.
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
    fn this_test_is_for_this_machine() {
        let own = Binary::read(Path::new(PROGRAM)).unwrap();
        let system = format!("Linux {}", std::env::consts::ARCH);
        assert_eq!(own.system, Some(system));
        assert_eq!(own.hash, own_hash().unwrap());
        assert_eq!(own.hash.len(), 16);
        assert!(own.name().ends_with(&own.hash));
    }

    #[test]
    fn of_what_is_no_program_nothing_is_said() {
        for content in [
            &b""[..],
            b"\x7fELF",
            b"#!/bin/sh\necho a script of some length",
        ] {
            assert_eq!(machine(content), None);
        }
    }
}
