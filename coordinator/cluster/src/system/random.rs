//! Cryptographic random numbers.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

pub fn drawn<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes)
}
