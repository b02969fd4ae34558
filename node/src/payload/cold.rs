//! Estimate of how much of a file is not in memory and has to be read from its disk.

use std::fs::File;
use std::io::IoSliceMut;

use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::tuning::cold::{APART, PLACES};

/// Estimates how many of `size` bytes of a file from `begin` on are not in memory. Reads single
/// bytes without waiting for the disk; if the kernel does not support that, all bytes count as
/// present.
pub(super) fn cold_bytes(file: &File, begin: u64, size: u64) -> u64 {
    let places = size.div_ceil(APART).min(PLACES);
    let is_cold = |place: &u64| {
        let mut byte = [0];
        let at = begin + (u128::from(*place) * u128::from(size) / u128::from(places)) as u64;
        let read = preadv2(
            file,
            &mut [IoSliceMut::new(&mut byte)],
            at,
            ReadWriteFlags::NOWAIT,
        );
        read == Err(Errno::AGAIN)
    };
    let cold = (0..places).filter(is_cold).count() as u64;
    match places {
        0 => 0,
        _ => (u128::from(size) * u128::from(cold) / u128::from(places)) as u64,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_was_just_written_is_in_memory() -> std::io::Result<()> {
        let mut file = tempfile::tempfile()?;
        file.write_all(&[1; 300_000])?;
        assert_eq!(cold_bytes(&file, 0, 300_000), 0);
        assert_eq!(cold_bytes(&file, 100_000, 200_000), 0);
        assert_eq!(cold_bytes(&file, 0, 0), 0);
        Ok(())
    }
}
