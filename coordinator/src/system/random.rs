//! Random numbers that nobody can guess.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// Bytes that nobody knows yet.
///
/// # Errors
///
/// The system gives none.
pub fn drawn<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes)
}
